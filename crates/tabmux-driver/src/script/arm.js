// Watches where what was sent really arrives. What would hit another element than the one that was meant is held back from
// the page, and what arrived is reported at once, since the document may be gone before anybody can ask.

const PRESSES = ["pointerdown", "mousedown", "touchstart"];
const WATCHED = [...PRESSES, "pointerup", "mouseup", "touchend", "click", "auxclick", "dblclick", "contextmenu", "keydown", "beforeinput"];

// How long it is watched at most: when nobody asks any more, a person's own clicks are their own again.
const LONGEST_MS = 10_000;

let armed = null;

// A window that shows another site by now is none of ours, and what listened there went with its document.
function unheard(at, kinds, hear) {
  try {
    for (const kind of kinds) at.removeEventListener(kind, hear, true);
  } catch (error) {
    if (error.name !== "SecurityError") throw error;
  }
}

function disarm() {
  if (!armed) return;
  for (const [at, hear] of armed.listeners) unheard(at, WATCHED, hear);
  armed.callOff();
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
  const mine = {
    element, token, ends, times, kind, hit: null, missed: null, pressed: null, released: null, up: false, clicks: 0, own: 0, listeners: [], callOff: NOTHING, done: () => {},
  };
  const hear = (event) => armed === mine && event.isTrusted && heard(mine, event, closed);
  mine.listeners.push([element.ownerDocument.defaultView, hear]);
  if (closed) mine.listeners.push([closed, hear]);
  for (const [at, listener] of mine.listeners) for (const type of WATCHED) at.addEventListener(type, listener, true);
  // Keys are only counted, and a long text takes its time.
  if (kind === "pointer") mine.callOff = later(disarm, LONGEST_MS);
  armed = mine;
}

function heard(mine, event, closed) {
  // A person's own clicks come after ours.
  if (mine.kind === "pointer" && mine.times <= 0) return;
  if (!(mine.kind === "pointer" ? pointedWell(mine, event, closed) : keyedWell(mine, event))) return;
  if (event.type === "touchend") later(() => event.defaultPrevented && finish(mine));
  if (event.type === mine.ends && ++mine.clicks && --mine.times <= 0) finish(mine);
}

function holdBack(event) {
  event.preventDefault();
  event.stopImmediatePropagation();
}

// Whether it happened to the element that was meant; what would happen to another is held back.
function pointedWell(mine, event, closed) {
  const path = event.composedPath();
  const meant = path.some((node) => node === mine.element || [...(mine.element.labels ?? [])].includes(node));
  // Seen from outside, all that is in a closed shadow root is its host; the listener within knows better.
  if (closed && event.currentTarget !== closed && path.includes(closed.host)) return false;
  // Every press anew: after the first of two clicks something else may be there.
  if (PRESSES.includes(event.type) && (mine.hit === null || event.type === "pointerdown")) {
    mine.hit = meant;
    mine.pressed = path[0];
    if (!meant) mine.missed = path[0];
  }
  if (event.type === "mouseup") [mine.up, mine.released] = [meant, path[0]];
  // A finger that was put on one element may be lifted from another.
  if (mine.hit === false || (event.type === "click" && mine.ends === "click" && !meant)) holdBack(event);
  return meant && mine.hit;
}

// Keys have to begin where the focus was put; later ones may move it on, as Tab does.
function keyedWell(mine, event) {
  if (event.type !== "keydown" && event.type !== "beforeinput") return false;
  const path = event.composedPath();
  const own = path.includes(seenAs(mine.element));
  mine.hit ??= own;
  if (own && event.type === mine.ends) mine.own++;
  if (mine.hit) return true;
  mine.missed ??= path[0];
  holdBack(event);
  return false;
}

// What an element in a closed shadow root is to those outside: its host.
function seenAs(element) {
  for (let root; (root = closedRoot(element)); ) element = root.host;
  return element;
}

// The page has got it: a finger whose touch the page keeps to itself makes no click.
function finish(mine) {
  mine.times = 0;
  stirredAt = performance.now();
  globalThis.tabmuxHeard?.(JSON.stringify({ token: mine.token }));
  mine.done();
}

const named = (node, element) => (node?.localName ? cover(node, element) : "the page");

// What became of what was armed: nothing wrong, or what.
verbs.landed = async ({ token, patience }) => {
  const mine = armed?.token === token ? armed : null;
  if (!mine) return { fault: "unknown", text: "The page was busy for too long" };
  if (mine.times > 0 && patience > 0) await Promise.race([new Promise((done) => (mine.done = done)), pause(patience)]);
  disarm();
  const { element, hit, missed, times, clicks } = mine;
  if (mine.kind === "keys" && hit === false) {
    return blocked(element, `lost the focus before the keys came: ${named(missed, element)} had it, and was kept from them`);
  }
  if (times <= 0) return {};
  if (mine.kind === "keys") return clicks ? {} : { fault: "unknown", text: "Nobody saw the keys arrive" };
  // Pressed where nothing covers it; what happens in a frame is told to nobody outside.
  if (hit === null && /^i?frame$/.test(element.localName)) return { now: `What is there in ${labelOf(element)} was clicked; a snapshot shows what it has.` };
  if (hit === null) return { fault: "unknown", text: `Nobody saw it arrive at ${labelOf(element)}` };
  if (clicks > 0) {
    const why = hit ? "it moved or went away" : `${named(missed, element)} was in its place then, and kept from it`;
    return blocked(element, `got ${clicks} of ${clicks + times} clicks: ${why}`);
  }
  if (!hit) return { ...blocked(element, `was not where it had been: ${named(missed, element)} was hit in its place, and kept from it`), fault: "missed" };
  return unclicked(mine);
};

// It was pressed, and nobody saw a click.
function unclicked({ element, pressed, released, up }) {
  if (!element.isConnected || !isSeen(element)) {
    // Drawn anew, it has the place of the one that was pressed, and heard nothing of it.
    const anew = released?.closest?.(element.localName);
    if (anew && anew !== element && anew.textContent === element.textContent) return blocked(element, "was replaced when it was pressed, so it was not clicked");
    return { now: "It went away when it was pressed, so no click followed." };
  }
  if (element.matches(":disabled")) return blocked(element, "was disabled when it was pressed, so it was not clicked");
  // A click follows where what was pressed is still there: then the page hides it from us.
  if (up && pressed.isConnected) return {};
  if (up) return blocked(element, "was drawn anew while it was pressed, so it was not clicked");
  const over = released && !isWithin(element, released) ? `was covered by ${cover(released, element)}` : "moved away";
  return blocked(element, `was pressed, but ${over} before it was released, so it was not clicked`);
}

verbs.disarm = () => disarm();

// Counts the acts that were given up: whoever still waits for an element then lies in wait for nothing.
let givenUp = 0;

verbs.giveUp = () => {
  givenUp++;
  disarm();
  field?.leave();
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

// In old pages without a doctype a bare `:hover` means links only.
const HOVERED = ":is(:hover)";

// Whether the pointer has come to what lies in wait. A move takes until the next picture.
verbs.under = async () => {
  for (const until = performance.now() + 100; armed && !armed.element.matches(HOVERED); ) {
    if (performance.now() > until) return blocked(armed.element, "is not under the pointer");
    await pause(10);
  }
  return {};
};

verbs.hovered = async () => {
  if (!pointed?.isConnected) return { fault: "unknown", text: "The element went away under the pointer" };
  if (pointed.matches(HOVERED)) return {};
  const over = [...pointed.ownerDocument.querySelectorAll(HOVERED)].at(-1);
  return blocked(pointed, over ? `is not under the pointer: ${cover(over, pointed)} is` : "is not under the pointer");
};
