// Comes when everything wanted can be seen, or seen no more. It looks when something happens in the document, never by the
// clock; a page that changes all the time is looked at for a fifth of the time at most.
function (wanted, key) {
  const LONGEST_PAUSE_MS = 1000;
  const EVENTS = ["load", "readystatechange", "transitionend", "animationend", "toggle", "change", "focusin"];
  const waits = (globalThis.tabmuxWaits ??= new Map());

  const plain = (text) => text.replace(/\s+/g, " ").trim().toLowerCase();
  const page = () => document.body ?? document.documentElement;
  const shows = (text) => plain(page()?.innerText ?? page()?.textContent ?? "").includes(plain(text));
  // What is no selector names nothing.
  const has = (selector) => tabmux.sees(selector) === true;
  // Before the document is there, everything is gone from it.
  const isGone = () => document.readyState !== "loading" && !shows(wanted.gone) && !(wanted.goneSelector && has(wanted.goneSelector));
  const holds = () =>
    (wanted.selector === undefined || has(wanted.selector)) &&
    (wanted.text === undefined || shows(wanted.text)) &&
    (wanted.gone === undefined || isGone());

  const wrong = wanted.selector === undefined ? false : tabmux.sees(wanted.selector);
  if (typeof wrong === "string") return wrong;
  return new Promise((resolve) => {
    let timer;
    let pause = 0;
    const changed = () => (timer ??= setTimeout(look, pause));
    const observer = new MutationObserver(changed);
    const stop = () => {
      clearTimeout(timer);
      observer.disconnect();
      for (const event of EVENTS) removeEventListener(event, changed, true);
      waits.delete(key);
    };
    function look() {
      const began = performance.now();
      timer = undefined;
      if (holds()) {
        stop();
        resolve("seen");
      }
      pause = Math.min(4 * (performance.now() - began), LONGEST_PAUSE_MS);
    }
    waits.set(key, stop);
    for (const event of EVENTS) addEventListener(event, changed, true);
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    look();
  });
}
