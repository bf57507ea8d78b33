// Makes sure that an element can be acted upon, as a person would see it: it is there, seen, at rest, enabled, and gets what
// happens at its point. What is not so yet is waited for, frame by frame, and what is in the way is named.

// Comes when the page was drawn for the first time: until then the browser takes clicks and keys, and throws them away. A page
// that has nothing to draw never says so; the browser takes them from about its first picture on.
const isDrawn = () => performance.getEntriesByType("paint").length > 0;
const MOST_BLANK_PICTURES = 3;
async function drawn() {
  const until = performance.now() + 2000;
  for (let blank = 0; blank < MOST_BLANK_PICTURES && !isDrawn() && performance.now() < until; ) {
    const came = await frame();
    blank = came && isBlank() ? blank + 1 : 0;
  }
}

// Whether all of it has come and there is nothing to see.
function isBlank() {
  const page = document.body ?? document.documentElement;
  return document.readyState === "complete" && (!page || (oneLine(page.innerText ?? "") === "" && ![...page.querySelectorAll("*")].some(isSeen)));
}

// Moves the windows around its own too, as far as it has to be. A frame that is out of sight draws nothing.
const toWindow = (element) => figureOf(element).scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });

const blocked = (element, why) => ({ fault: "blocked", text: `${labelOf(element)} ${why}` });

// Up the page as it is drawn: through slots, shadow roots and frames of the same origin.
function above(node) {
  if (node.assignedSlot) return node.assignedSlot;
  if (node.parentElement) return node.parentElement;
  const parent = node.parentNode;
  if (parent?.host) return parent.host;
  return null;
}
function isWithin(node, element) {
  for (let at = node; at; at = above(at)) if (at === element) return true;
  return false;
}

// Styled checkboxes hide the real one and show its label, which does the same.
function standIn(element) {
  if (isSeen(element) || !/^(checkbox|radio|file)$/.test(element.type ?? "")) return element;
  return [...(element.labels ?? [])].find(isSeen) ?? element;
}

// What is wrong with it before its place matters; none is fine.
function unfit(element, need) {
  if (!isSeen(element)) return blocked(element, "cannot be seen");
  if (need === "look") return null;
  if (element.matches(":disabled")) return blocked(element, "is disabled");
  if (element.closest("[aria-disabled=true]")) return blocked(element, "is disabled (aria-disabled)");
  if (element.closest("[inert]")) return blocked(element, "is inert: something else has to be finished first");
  return null;
}

// What is drawn for an element: mostly itself.
function figureOf(element) {
  if (element.localName === "area") return imageOf(element) ?? element;
  if (hasExtent(element)) return element;
  const inner = spilt(element).find(isSeen);
  return inner ? figureOf(inner) : element;
}

// The part of a document that its window shows. Pinched, the page's own shows less of it than is laid out.
function shownOf(view) {
  if (view !== view.top || !view.visualViewport) return { left: 0, top: 0, right: view.innerWidth, bottom: view.innerHeight };
  const { offsetLeft: left, offsetTop: top, width, height } = view.visualViewport;
  return { left, top, right: left + width, bottom: top + height };
}

// The part of each of its boxes that the window shows, the largest first.
function boxesOf(element) {
  const shown = shownOf(element.ownerDocument.defaultView);
  const boxes = [];
  for (const { left, top, right, bottom } of element.localName === "area" ? areaBoxes(element) : element.getClientRects()) {
    const box = {
      left: Math.max(left, shown.left),
      top: Math.max(top, shown.top),
      right: Math.min(right, shown.right),
      bottom: Math.min(bottom, shown.bottom),
    };
    box.size = (box.right - box.left) * (box.bottom - box.top);
    if (box.right > box.left && box.bottom > box.top) boxes.push(box);
  }
  if (!boxes.length && element.localName !== "area" && !hasExtent(element)) return spilt(element).filter(isSeen).flatMap(boxesOf);
  return boxes.sort((a, b) => b.size - a.size);
}

// The middle first, then what is left of it when something small lies there.
function* pointsOf(element) {
  for (const { left, top, right, bottom } of boxesOf(element)) {
    for (const [across, down] of [[0.5, 0.5], [0.25, 0.5], [0.75, 0.5], [0.5, 0.25], [0.5, 0.75], [0.1, 0.1], [0.9, 0.9], [0.9, 0.1], [0.1, 0.9]]) {
      yield { x: left + (right - left) * across, y: top + (bottom - top) * down };
    }
  }
}

const placeOf = (element) => {
  const { x, y, width, height } = figureOf(element).getBoundingClientRect();
  return [x, y, width, height].join();
};

// The innermost element at a point, as the root of `element` sees it.
function topmostAt(element, { x, y }) {
  let hit = element.getRootNode().elementFromPoint(x, y);
  while (hit && shadowOf(hit) && hit !== element) {
    const inner = shadowOf(hit).elementFromPoint(x, y);
    if (!inner || inner === hit) break;
    hit = inner;
  }
  return hit;
}

// Whether what happens at the point happens to the element: to it, to what is in it, or to a label that stands for it.
function gets(element, hit) {
  if (!hit) return false;
  if (isWithin(hit, element)) return true;
  return [...(element.labels ?? [])].some((label) => isWithin(hit, label));
}

// What lies over an element, as a person would call it: the dialog rather than a paragraph of it.
function cover(hit, element) {
  let shown = hit;
  for (let at = hit; at && !isWithin(element, at); at = above(at)) {
    shown = at;
    if (/^(dialog|alertdialog|banner|navigation|menu|tooltip|alert|button|link|img|image)$/.test(roleOf(at) ?? "")) break;
  }
  const [ref, ...rest] = labelOf(shown).split(" ");
  return `${rest.join(" ")} (${ref})`;
}

// A point in a frame, in the window around it.
function aroundFrame(holder, { x, y }) {
  const box = holder.getBoundingClientRect();
  const style = getComputedStyle(holder);
  const [across, down] = [box.width / (holder.offsetWidth || 1), box.height / (holder.offsetHeight || 1)];
  return {
    x: box.left + (x + holder.clientLeft + parseFloat(style.paddingLeft)) * across,
    y: box.top + (y + holder.clientTop + parseFloat(style.paddingTop)) * down,
  };
}

// The same, or what takes it there.
function throughFrame(holder, inner) {
  const point = aroundFrame(holder, inner);
  const hit = topmostAt(holder, point);
  return gets(holder, hit) ? { point } : { holder, hit };
}

// As far out as frames of the same origin lead. `path` is where that window is: its place among the frames of each window
// around it, the outermost first; empty for the page itself.
function outwards(view, point) {
  for (let holder; (holder = holderOf(view)); view = holder.ownerDocument.defaultView) {
    const outer = throughFrame(holder, point);
    if (outer.holder) return outer;
    point = outer.point;
  }
  return view === view.top ? { point: onScreen(point), path: [] } : { point, path: framePath(view) };
}

function holderOf(view) {
  try {
    return view.frameElement;
  } catch {
    return null;
  }
}

// Pinched or zoomed out, as on a small screen: input counts from the corner of the part that is shown, in pixels of the page
// whatever their size on the screen.
function onScreen({ x, y }) {
  const { offsetLeft, offsetTop } = globalThis.top.visualViewport ?? visualViewport;
  return { x: x - offsetLeft, y: y - offsetTop };
}

const WAYS = ["center", "end", "start", "nearest"];

function isInView(element) {
  const [box] = boxesOf(element);
  if (!box) return false;
  const whole = hasExtent(element) ? element.getBoundingClientRect() : { ...box, width: box.right - box.left, height: box.bottom - box.top };
  const middle = { x: whole.left + whole.width / 2, y: whole.top + whole.height / 2 };
  const hit = topmostAt(element, middle);
  return gets(element, hit);
}

// What of the browser's own moving it, or something it is in, is under way.
const animationsOf = (element) =>
  element.ownerDocument
    .getAnimations()
    .filter(({ effect, playState }) => playState === "running" && effect?.target && isWithin(element, effect.target));

// Comes when each has gone on with a picture: one that has only just begun stands still for some.
const MOST_STANDING = 5;
async function goneOn(animations) {
  const began = animations.map(({ currentTime }) => currentTime);
  const stands = ({ playState, pending, currentTime }, at) => playState === "running" && (pending || currentTime === began[at]);
  for (let drawn = 0; drawn < MOST_STANDING; drawn++) {
    await frame();
    if (!animations.some(stands)) return;
  }
}

// In a frame of another site, whose place on the page is not known here.
const isAbroad = (view) => {
  while (holderOf(view)) view = view.parent;
  return view !== view.top;
};

// `{ point }` where the element gets what happens, or why there is none.
async function reach(element, need, bring, attempt) {
  const wrong = unfit(element, need);
  if (wrong) return wrong;
  const view = element.ownerDocument.defaultView;
  const away = bring && (attempt > 0 || !isInView(element));
  if (away) {
    const block = WAYS[attempt % WAYS.length];
    figureOf(element).scrollIntoView({ block, inline: block, behavior: "instant" });
  } else if (bring && isAbroad(view)) toWindow(element);
  const before = placeOf(element);
  const animations = animationsOf(element);
  if (animations.length > 0) await goneOn(animations);
  else if (away) await frame();
  else await settled(view);
  if (!element.isConnected) return { fault: "stale" };
  if (placeOf(element) !== before) return blocked(element, "moves");
  let other;
  for (const point of pointsOf(element)) {
    const hit = topmostAt(element, point);
    if (need !== "look" && !gets(element, hit)) {
      other ??= hit;
      continue;
    }
    const outer = outwards(view, point);
    if (!outer.holder) return { ...outer, brought: away };
    other ??= outer.hit;
  }
  if (!boxesOf(element).length) return blocked(element, bring ? "cannot be scrolled to" : "is outside of the part of the page that is shown");
  if (!other) return blocked(element, "is covered by something outside of its frame");
  if (isWithin(element, other)) return blocked(element, "takes no clicks: what is behind it gets them");
  return blocked(element, `is covered by ${cover(other, element)}`);
}

// Finds the element and waits until it can be acted upon: `{ element, matched, … }` or what is wrong.
// `way` is how it is brought into view first, where an earlier way did not do.
async function ready({ selector, need = "act", bring = true, patience, opened = true, way = 0 }, fit) {
  const until = performance.now() + patience;
  for (let attempt = way; ; attempt++) {
    const began = performance.now();
    const found = find(selector);
    let wrong = found.fault ? found : null;
    if (wrong && wrong.fault !== "none") return wrong;
    if (wrong && !opened && mayHide()) return { ...wrong, hidden: true };
    if (!wrong) {
      const element = standIn(found.element);
      await verbs.notice();
      if (bring && !isDrawn()) toWindow(element);
      await drawn();
      const got = fit ? await fit(found.element, attempt) : await reach(element, need, bring, attempt);
      if (!got.fault) return { ...found, stand: element, ...got };
      wrong = got;
      // Named by its place, another one may be there by now.
      if (wrong.fault === "stale" && selector.by !== "ref") wrong = blocked(element, "went away");
      if (wrong.fault === "stale") return wrong;
      if (wrong.final) return wrong;
    }
    if (performance.now() >= until) return wrong.fault === "none" ? { ...wrong, near: nearest(selector) } : wrong;
    const cost = performance.now() - began;
    await frame();
    await pause(Math.min(4 * cost, 500, Math.max(0, until - performance.now())));
  }
}

// Where an element is in the document of the page, for pictures; seen is enough, and nothing is waited for.
verbs.box = async ({ selector }) => {
  const { element, fault, text } = find(selector);
  if (fault) return fault === "none" ? { fault, near: nearest(selector) } : { fault, text };
  if (!isSeen(element)) return blocked(element, "cannot be seen");
  element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  await frame();
  const { x, y, width, height } = element.getBoundingClientRect();
  let corner = { x, y };
  let view = element.ownerDocument.defaultView;
  for (let holder; (holder = holderOf(view)); view = holder.ownerDocument.defaultView) corner = aroundFrame(holder, corner);
  if (view !== view.top) return blocked(element, 'is in a frame of another site, of which only all can be pictured: selector "iframe" is the first frame of the page');
  return { place: { ratio: devicePixelRatio, x: corner.x + view.scrollX, y: corner.y + view.scrollY, width, height } };
};

// What an action is told of the element it goes to.
const told = ({ element, matched, point, path, brought }) => ({ label: labelOf(element), matched, point, path, brought });

// The window at a path, where this script may look into it; else null.
function windowAt(path) {
  const own = framePath(globalThis);
  if (own.some((place, at) => place !== path[at])) return null;
  let view = globalThis;
  try {
    for (const place of path.slice(own.length)) view = view[place].document.defaultView;
  } catch {
    return null;
  }
  return view;
}

function holderIn(view, inner) {
  const roots = [view.document, ...rootsBelow(view.document)];
  return roots.flatMap((root) => [...root.querySelectorAll("iframe,frame,object,embed")]).find((one) => one.contentWindow === inner);
}

// A frame that came into view stands still for some pictures, until input finds it there.
const STILL_PICTURES = 2;
const MOST_MOVING_MS = 1000;

// A point of a frame of another origin, seen from the window around it; null where that is not for this script to look into.
verbs.outwards = async ({ path, point, patience, brought }) => {
  const around = windowAt(path.slice(0, -1));
  if (!around) return null;
  const until = performance.now() + patience;
  let still = brought ? 0 : STILL_PICTURES;
  for (let before = null; ; ) {
    const holder = holderIn(around, around[path.at(-1)]);
    if (!holder) return { fault: "blocked", text: "Its frame went away" };
    let outer = throughFrame(holder, point);
    if (!outer.holder) outer = outwards(around, outer.point);
    const [place, now] = [placeOf(holder), performance.now()];
    if (outer.holder) still = 0;
    else if (still < STILL_PICTURES) still = place === before ? still + 1 : 0;
    if (!outer.holder && still === STILL_PICTURES) return outer;
    if (outer.holder && now >= until) {
      const what = outer.hit ? cover(outer.hit, outer.holder) : "the edge of the part that is shown";
      return { fault: "blocked", text: `Its frame is covered by ${what}` };
    }
    if (now >= until + MOST_MOVING_MS) return { fault: "blocked", text: "Its frame moves" };
    before = place;
    await frame();
  }
};
