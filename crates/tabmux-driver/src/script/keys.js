// Where keys go, and how far a page was scrolled.

// The element that has the focus, through shadow roots and frames of the same origin; `foreign` where a frame of another
// origin has it.
function focused() {
  let at = document.activeElement;
  for (;;) {
    if (at && shadowOf(at)?.activeElement) at = shadowOf(at).activeElement;
    else if (/^i?frame$/.test(at?.localName ?? "")) {
      const inner = documentInside(at);
      if (!inner) return { foreign: true };
      at = inner.activeElement;
    } else return { element: at ?? document.body ?? document.documentElement };
  }
}

let typing = null;

verbs.focus = async ({ selector, token, times, text, anyway, ...wanted }) => {
  let element;
  let matched = 1;
  if (selector) {
    const got = await ready({ selector, ...wanted }, async (found) => {
      const own = fieldOf(found);
      return takesFocus(own) ?? { own };
    });
    if (got.fault) return got;
    ({ own: element, matched } = got);
    if (typeof element.value === "string" && /^(text|search|tel|url|password|textarea)$/.test(element.type)) {
      element.setSelectionRange(element.value.length, element.value.length);
    } else if (element.isContentEditable) {
      const selection = element.ownerDocument.defaultView.getSelection();
      selection.selectAllChildren(element);
      selection.collapseToEnd();
    }
  } else {
    await verbs.notice();
    await drawn();
    const now = focused();
    if (now.foreign || !(anyway || document.hasFocus())) return { fault: "foreign" };
    element = now.element;
  }
  const root = element === element.ownerDocument.body || element === element.ownerDocument.documentElement;
  if (text && root) return { fault: "nowhere" };
  arm(element, { token, ends: "keydown", times, kind: "keys" });
  typing = { element, before: valueOf(element), text };
  return { label: root ? "the page" : labelOf(element), matched };
};

function takesFocus(element) {
  const wrong = unfit(element, "act");
  if (wrong) return wrong;
  element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  element.focus({ preventScroll: true });
  const now = element.getRootNode().activeElement;
  return now === element || isWithin(now ?? element.ownerDocument, element) ? null : blocked(element, "does not take the focus");
}

// Whether the keys of a text came to something.
verbs.typed = async ({ token, any }) => {
  await rest();
  const keys = armed;
  // Where no key was pressed, none is missed.
  const landed = any && armed?.hit !== false ? {} : await verbs.landed({ token, patience: 0 });
  disarm();
  if (landed.fault || !typing) return landed;
  const { element, before, text } = typing;
  const editable = kindOfField(element) === "text" || element.isContentEditable;
  if (!editable || !text) return {};
  if (!element.isConnected) return drawnAnew(element, keys, text);
  const now = valueOf(element);
  const stays = element.getRootNode().activeElement === element;
  // Enter may have sent it away.
  const sent = text.includes("\n");
  if (now === before && /\S/.test(text) && stays && !sent) return blocked(element, `did not take the text: it is ${shown(element)} now`);
  if (sent || letters(now).includes(letters(text))) return { now: `It is ${shown(element)} now.` };
  // Fields of one letter each hand the focus on; where it stays, the rest is lost.
  if (stays && element.maxLength > 0 && now.length >= element.maxLength) {
    return blocked(element, `did not take all of the text: it is ${shown(element)} now. It takes ${element.maxLength} characters.`);
  }
  return { now: `It is ${shown(element)} now, which is not all of the text.` };
};

// The field is gone. One that got every key may have been done with; else the one in its place must have the text.
function drawnAnew(former, keys, text) {
  if (text.includes("\n") || !keys || keys.own >= keys.clicks) return {};
  const { element } = focused();
  if (element && kindOfField(element) && letters(valueOf(element)).includes(letters(text))) return { now: `The page drew it anew, and it is ${shown(element)} now.` };
  return blocked(former, `went away while it was typed into: it got ${keys.own} of ${keys.clicks} keys`);
}

const moves = (element, axis) => {
  const overflow = getComputedStyle(element)[axis === "y" ? "overflowY" : "overflowX"];
  const room = axis === "y" ? element.scrollHeight - element.clientHeight : element.scrollWidth - element.clientWidth;
  const root = element === element.ownerDocument.scrollingElement;
  return room > 0 && (root ? overflow !== "hidden" : /auto|scroll|overlay/.test(overflow));
};

let scrolling = null;

// What moves when the wheel is turned over an element, and where to turn it.
verbs.scrolling = async ({ selector, x, y, ...wanted }) => {
  let element = document.scrollingElement ?? document.documentElement;
  let place = { label: "the page", matched: 1, path: [], point: onScreen({ x: innerWidth / 2, y: innerHeight / 2 }) };
  if (selector) {
    const got = await ready({ selector, need: "look", ...wanted });
    if (got.fault) return got;
    element = got.element;
    place = told(got);
  }
  // A screenful, but for what one wants to see again.
  if (x === null && y === null) y = Math.round(innerHeight * 0.8);
  const by = { x: x ?? 0, y: y ?? 0 };
  const axis = Math.abs(by.y) >= Math.abs(by.x) ? "y" : "x";
  const root = element.ownerDocument.scrollingElement ?? element.ownerDocument.documentElement;
  let mover = element;
  while (mover && !moves(mover, axis)) mover = mover === root ? null : (above(mover) ?? root);
  mover ??= root;
  stirred();
  scrolling = { mover, from: { x: mover.scrollLeft, y: mover.scrollTop } };
  return { ...place, by };
};

// Once it rests: how far it went, and how far it can go.
verbs.scrolled = async ({ x, y, turned }) => {
  if (!scrolling) return { fault: "unknown", text: "The page forgot what it was asked" };
  const { mover, from } = scrolling;
  const at = () => [mover.scrollLeft, mover.scrollTop].join();
  if (!turned) mover.scrollBy({ left: x, top: y, behavior: "instant" });
  const until = performance.now() + 1000;
  for (let before, still = 0; still < 2 && performance.now() < until; ) {
    before = at();
    await frame();
    still = at() === before ? still + 1 : 0;
  }
  const moved = { x: Math.round(mover.scrollLeft - from.x), y: Math.round(mover.scrollTop - from.y) };
  return {
    moved,
    left: { x: Math.round(mover.scrollWidth - mover.clientWidth - mover.scrollLeft), y: Math.round(mover.scrollHeight - mover.clientHeight - mover.scrollTop) },
  };
};
