// Waiting: says how far what is wanted can be seen in this frame, as soon as that is another than what is known already. It looks
// when something happens in the document, and once a second for what makes no event; a page that changes all the time is looked
// at for a fifth of the time at most.
const LONGEST_PAUSE_MS = 1000;
const TELLING = ["load", "readystatechange", "transitionend", "animationend", "toggle", "change", "focusin"];

// By key: how to end one, and when it may look again.
const watches = new Map();

const plainly = (text) => text.replace(/\s+/g, " ").trim().toLowerCase();

function* shadowsBelow(root) {
  for (const element of root.querySelectorAll("*")) {
    const inner = shadowOf(element);
    if (inner) {
      yield inner;
      yield* shadowsBelow(inner);
    }
  }
}

// What a person reads in this frame, also in its shadow roots.
function wordsShown() {
  const page = document.body ?? document.documentElement;
  const texts = [page?.innerText ?? page?.textContent ?? ""];
  for (const { host, childNodes } of shadowsBelow(document)) {
    if (!host.checkVisibility({ visibilityProperty: true })) continue;
    for (const node of childNodes) texts.push(node.nodeType === 3 ? node.data : node.checkVisibility?.() ? (node.innerText ?? "") : "");
  }
  return plainly(texts.join("\n"));
}

// What is no selector names nothing.
const sees = (selector) => verbs.sees(selector) === true;

// Before the page is there, everything is gone from it.
const isGone = ({ gone, goneSelector, main }) =>
  !(main && document.readyState === "loading") && !wordsShown().includes(plainly(gone)) && !(goneSelector && sees(goneSelector));

const holdersHere = () =>
  globalThis.length === 0 ? [] : [document, ...shadowsBelow(document)].flatMap((root) => [...root.querySelectorAll("iframe,frame,object,embed")]);

// Which frames in this document nobody sees, by their places in its window. Only the document around a frame knows that.
function framesHidden(holders = holdersHere()) {
  const hidden = new Set();
  for (const holder of holders) {
    if (!holder.checkVisibility({ visibilityProperty: true }) || holder.clientWidth < 2 || holder.clientHeight < 2) hidden.add(holder.contentWindow);
  }
  return Array.from({ length: globalThis.length }, (_, at) => at).filter((at) => hidden.has(globalThis[at]));
}

// Frames have their places in a window as they came into it; in the document they may stand in another order.
verbs.hiding = () => {
  const holders = holdersHere();
  return { path: framePath(globalThis), hidden: framesHidden(holders), order: holders.map(frameIndex).filter((at) => at >= 0) };
};

function outlook(wanted) {
  const selector = wanted.selector === undefined || verbs.sees(wanted.selector);
  if (typeof selector === "string") return { problem: selector };
  const text = wanted.text === undefined || wordsShown().includes(plainly(wanted.text));
  const gone = wanted.gone === undefined || isGone(wanted);
  const unseen = !text || !selector || (wanted.gone !== undefined && gone);
  return { text, selector, gone, hides: unseen && mayHide("new"), hidden: framesHidden() };
}

const PARTS = ["text", "selector", "gone", "hides", "hidden"];
const differ = (now, known) => known === null || now.problem !== undefined || PARTS.some((part) => String(now[part]) !== String(known[part]));

verbs.watch = (wanted, known, key) =>
  new Promise((resolve) => {
    let next = watches.get(key)?.next ?? 0;
    let soon;
    const changed = () => (soon ??= later(look, Math.max(0, next - performance.now())));
    const observer = new MutationObserver(changed);
    let clock;
    const tick = () => {
      clock = later(tick, LONGEST_PAUSE_MS);
      changed();
    };
    const observed = new WeakSet();
    const stop = () => {
      soon?.();
      clock?.();
      observer.disconnect();
      for (const event of TELLING) removeEventListener(event, changed, true);
    };
    function look() {
      const began = performance.now();
      soon = undefined;
      for (const root of [document, ...shadowsBelow(document)]) {
        if (!observed.has(root)) observer.observe(root, { subtree: true, childList: true, attributes: true, characterData: true });
        observed.add(root);
      }
      const now = outlook(wanted);
      const ended = performance.now();
      next = ended + Math.min(4 * (ended - began), LONGEST_PAUSE_MS);
      watches.set(key, { stop, next });
      if (!differ(now, known)) return;
      stop();
      resolve(now);
    }
    for (const event of TELLING) addEventListener(event, changed, true);
    watches.set(key, { stop, next });
    tick();
  });

verbs.unwatch = (key) => {
  watches.get(key)?.stop();
  watches.delete(key);
};

verbs.watching = () => watches.size;
