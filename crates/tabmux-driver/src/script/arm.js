// Watches where what was sent really arrives. What would hit another element than the one that was meant is held back from
// the page, and what arrived is reported at once, since the document may be gone before anybody can ask.

const PRESSES = ["pointerdown", "mousedown", "touchstart"];
const WATCHED = [...PRESSES, "pointerup", "mouseup", "touchend", "click", "auxclick", "dblclick", "contextmenu", "keydown"];

// How long it is watched at most: when nobody asks any more, a person's own clicks are their own again.
const LONGEST_MS = 10_000;

let armed = null;

function disarm() {
  if (!armed) return;
  for (const [at, hear] of armed.listeners) for (const kind of WATCHED) at.removeEventListener(kind, hear, true);
  clearTimeout(armed.timer);
  armed = null;
}

// The innermost closed shadow root around an element, which hides from others what happens in it.
function closedRoot(element) {
  for (let root = element.getRootNode(); root.host; root = root.host.getRootNode()) if (root.mode === "closed") return root;
  return null;
}

// `ends` is the event with which it is done, after so many of them.
function arm(element, { token, ends, times = 1, kind = "pointer" }) {
  disarm();
  stirred();
  const closed = kind === "pointer" ? closedRoot(element) : null;
  const mine = { element, token, ends, times, kind, hit: null, missed: null, up: false, keys: 0, listeners: [], timer: 0, done: () => {} };
  const hear = (event) => armed === mine && event.isTrusted && heard(mine, event, closed);
  mine.listeners.push([element.ownerDocument.defaultView, hear]);
  if (closed) mine.listeners.push([closed, hear]);
  for (const [at, listener] of mine.listeners) for (const type of WATCHED) at.addEventListener(type, listener, true);
  // Keys are only counted, and a long text takes its time.
  if (kind === "pointer") mine.timer = later(disarm, LONGEST_MS);
  armed = mine;
}

function heard(mine, event, closed) {
  if (event.type === "keydown") mine.keys++;
  if (mine.kind === "pointer" && !pointedWell(mine, event, closed)) return;
  if (event.type === "touchend") later(() => event.defaultPrevented && finish(mine));
  if (event.type === mine.ends && --mine.times <= 0) finish(mine);
}

// Whether it happened to the element that was meant; what would happen to another is held back.
function pointedWell(mine, event, closed) {
  const path = event.composedPath();
  const meant = path.some((node) => node === mine.element || [...(mine.element.labels ?? [])].includes(node));
  // Seen from outside, all that is in a closed shadow root is its host; the listener within knows better.
  if (closed && event.currentTarget !== closed && path.includes(closed.host)) return false;
  if (PRESSES.includes(event.type) && mine.hit === null) {
    mine.hit = meant;
    if (!meant) mine.missed = path[0];
  }
  if (mine.hit === false) {
    event.preventDefault();
    event.stopImmediatePropagation();
  }
  if (event.type === "mouseup") mine.up = meant;
  return meant && mine.hit;
}

// The page has got it: a finger whose touch the page keeps to itself makes no click.
function finish(mine) {
  mine.times = 0;
  globalThis.tabmuxHeard?.(JSON.stringify({ token: mine.token }));
  mine.done();
}

// What became of what was armed: nothing wrong, or what.
verbs.landed = async ({ token, patience }) => {
  const mine = armed?.token === token ? armed : null;
  if (!mine) return { fault: "unknown", text: "The page was busy for too long" };
  if (mine.times > 0 && patience > 0) await Promise.race([new Promise((done) => (mine.done = done)), pause(patience)]);
  disarm();
  const { element, hit, missed, times } = mine;
  if (times <= 0 && hit !== false) return {};
  if (hit === null && mine.kind === "pointer") return { fault: "unknown", text: `Nobody saw it arrive at ${labelOf(element)}` };
  if (mine.kind !== "pointer") return mine.keys ? {} : { fault: "unknown", text: "Nobody saw the keys arrive" };
  if (!hit) return { ...blocked(element, `was not where it had been: ${missed?.localName ? cover(missed, element) : "the page"} was hit in its place, and kept from it`), fault: "missed" };
  // Some act when they are pressed and are gone before the release; of some, the page hides the click from us.
  if (mine.up || !element.isConnected || !isSeen(element)) return {};
  return blocked(element, "was pressed, but moved away before it was released, so it was not clicked");
};

verbs.disarm = () => disarm();

// Counts the acts that were given up: whoever still waits for an element then lies in wait for nothing.
let givenUp = 0;

verbs.giveUp = () => {
  givenUp++;
  disarm();
};

const ENDS = { left: "click", middle: "auxclick", right: "contextmenu" };

// For a click or a tap: finds the element and lies in wait there.
verbs.aim = async ({ token, button = "left", count = 1, ...wanted }) => {
  const before = givenUp;
  const got = await ready(wanted);
  if (got.fault) return got;
  if (before !== givenUp) return blocked(got.element, "is not wanted any more");
  if (got.element.matches("select:not([multiple])") && got.element.size <= 1 && button === "left") {
    return { fault: "list", text: `${labelOf(got.element)} opens its choices outside of the page` };
  }
  arm(got.stand, { token, ends: ENDS[button], times: count });
  return told(got);
};

// The element that was pointed at last, until somebody asks what became of it.
let pointed = null;

// For what needs only a place: hovering, scrolling to it, dropping on it.
verbs.point = async (wanted) => {
  const got = await ready(wanted);
  if (got.fault) return got;
  pointed = got.stand;
  stirred();
  return told(got);
};

verbs.hovered = async () => {
  if (!pointed?.isConnected) return { fault: "unknown", text: "The element went away under the pointer" };
  if (pointed.matches(":hover")) return {};
  const over = [...pointed.ownerDocument.querySelectorAll(":hover")].at(-1);
  return blocked(pointed, over ? `is not under the pointer: ${cover(over, pointed)} is` : "is not under the pointer");
};
