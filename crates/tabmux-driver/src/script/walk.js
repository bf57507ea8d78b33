// Walks what is shown: shadow trees, slots and frames of the same site as if they were one document. What comes out is a tree of
// what matters: texts, breaks between them, and nodes `{head, role, ref, inline, children}`. Large pages are walked in slices, so
// that the page goes on meanwhile.
const SLICE_MS = 40;
const LONGEST_TEXT = 3000;
const DEEPEST = 100;
const MOST_OPTIONS = 12;
const BREAK = { role: "" };
const GONE = "gone";

const quote = (text) => JSON.stringify(text);
const pause = () => globalThis.scheduler?.yield?.() ?? new Promise((resolve) => later(resolve));

// Roles that are said with their name, and what stands in them below.
const SECTIONS = new Set(
  ("navigation main banner contentinfo complementary region form search article dialog alertdialog alert status log group radiogroup " +
    "toolbar tablist tabpanel menu menubar tree treegrid grid table feed figure application note tooltip timer marquee listbox").split(" "),
);
const POINTED = new Set(["dialog", "alertdialog", "tabpanel", "grid", "treegrid", "listbox", "menu"]);
const CELLS = new Set(["cell", "gridcell", "columnheader", "rowheader"]);
// Say nothing of themselves.
const HOLDERS = new Set(["", "list", "listitem", "row", "rowgroup", "paragraph", "definition", "term", "blockquote", "caption"]);
// Worth a line only when they are called something, or hold something that is.
const NAMELESS = new Set(["group", "figure", "status", "note", "application", "log", "article", "tooltip", "timer"]);

async function survey(root) {
  const walk = { stack: [], frames: [], active: deepActive(), count: 0 };
  const children = [];
  const top = entry(children, document, { quiet: false, mute: false, level: 0, acted: false });
  walk.stack.push({ ...top, child: root, list: [root] });
  const book = (treeBook = new Map());
  let until = performance.now() + SLICE_MS;
  while (walk.stack.length > 0) {
    if ((++walk.count & 127) === 0 && performance.now() > until) {
      treeBook = null;
      await pause();
      treeBook = book;
      until = performance.now() + SLICE_MS;
    }
    const inner = walk.stack.at(-1);
    const node = next(inner);
    if (node === null) close(walk.stack.pop(), walk);
    else if (node.nodeType === 3) say(inner, node.data, walk);
    else if (node.nodeType === 1) open(node, inner, walk);
  }
  treeBook = null;
  return { children, frames: walk.frames };
}

// What is for reading is made clickable by what marks it, if at all.
const PROSE = new Set(["p", "b", "i", "em", "strong", "code", "pre", "blockquote", "small", "body", "html", "sub", "sup", "font"]);

// Which of its nodes an element shows, where it is not simply those in it.
function shownOf(container) {
  if (container.localName === "slot") return container.assignedNodes();
  if (container.localName === "details" && !container.open) {
    const summary = container.querySelector(":scope > summary");
    return summary === null ? NONE : [summary];
  }
  return NONE;
}

function entry(out, container, { quiet, mute, level, acted }) {
  const list = shownOf(container);
  const child = list.length > 0 ? list[0] : firstInside(container);
  return {
    out, element: container, child, list, at: 0, quiet, mute, level, acted, from: out.length,
    block: false, checked: false, clickable: false, named: false, scrolls: false, node: null, manner: null,
  };
}

function next(top) {
  const node = top.child;
  if (node !== null) top.child = top.list.length > 0 ? (top.list[++top.at] ?? null) : node.nextSibling;
  return node;
}

function say(top, data, walk) {
  if (top.quiet || top.mute === true) return;
  const text = squeezed(data);
  if (text === "" || (text !== " " && isMute(top))) return;
  put(top.out, text, top.from, () => getComputedStyle(top.element).display === "inline");
  if (text !== " " && !top.checked && !top.acted) findClickable(top, walk);
}

function put(out, text, from, isInline) {
  const last = out.length - 1;
  if (typeof out[last] === "string") {
    // Two pieces without a space between them may still stand apart.
    const apart = out[last].at(-1) !== " " && text[0] !== " " && from > last && !isInline();
    out[last] += apart ? ` ${text}` : text;
  } else if (text !== " " || last >= 0) {
    out.push(text);
  }
}

// Scripts that listen for clicks cannot be seen, but the pointer over what they are for can.
function findClickable(top, walk) {
  top.checked = true;
  if (!mannerHere(walk).pointer) return;
  let found = top;
  for (let at = walk.stack.length - 1; at > 0; at--) {
    const above = walk.stack[at - 1];
    if (above.out !== top.out || above.node !== null || !above.manner.pointer) break;
    found = above;
  }
  found.clickable = true;
  for (let at = walk.stack.indexOf(found); at < walk.stack.length; at++) walk.stack[at].acted = true;
}

// What says nothing and can be clicked all the same, as icons do.
function wordless(element, tag, marked, top, walk) {
  if (top.acted || !mannerHere(walk).of(element, tag, marked).pointer) return;
  const { width, height } = element.getBoundingClientRect();
  if (width < 2 || height < 2) return;
  if (!top.checked && mannerHere(walk).pointer) return void findClickable(top, walk);
  const number = refs.of(element);
  top.out.push({ head: `e${number} clickable${hint(element)}`, role: "clickable", ref: number, inline: true, children: [] });
}

// What an element without words is for, if that is said at all.
function hint(element) {
  const words = plain(element.getAttribute("aria-label") || element.getAttribute("title") || "");
  return words === "" ? "" : ` ${quote(cut(words, LONGEST_NAME))}`;
}

function close(top, walk) {
  if (top.clickable) {
    const children = top.out.splice(top.from);
    const number = refs.of(top.element);
    const words = plain(children.filter((child) => typeof child === "string").join(" "));
    const rest = children.filter((child) => typeof child === "object" && child !== BREAK);
    const head = `e${number} clickable${words === "" ? hint(top.element) : ` ${quote(cut(words, LONGEST_NAME))}`}`;
    top.out.push({ head, role: "clickable", ref: number, inline: true, children: rest });
  }
  if (top.block) top.out.push(BREAK);
  if (top.node !== null) finish(top);
}

function finish({ node, element, scrolls }) {
  if (!scrolls || node.ref === 0) return;
  if (element.scrollHeight > element.clientHeight + 1 && element.clientHeight > 0) {
    node.head = `${node.head.replace(/:$/, "")} scrolls ${Math.round(element.scrollTop)}+${element.clientHeight}/${element.scrollHeight}px:`;
  }
}

function open(element, top, walk) {
  const tag = element.localName;
  if (NEVER.has(tag)) return;
  if (tag === "br") return say(top, " ", walk);
  const marked = element.hasAttributes();
  if (marked && (element.getAttribute("aria-hidden") === "true" || element.inert)) return;
  const role = marked ? roleOf(element) : tagRole(element);
  const mute = muteness(element, tag, role, marked, top);
  if (mute === GONE) return leaveUndrawn(walk);
  if (tag.includes("-") && ownMade(element)) suspects.addNew(element);
  const inherited = { quiet: top.quiet, mute, level: top.level, acted: top.acted };
  if (mute === true || role === "") return plainElement(element, tag, marked, top, inherited, walk);
  if (ACTIVE_ROLES.has(role)) return control(element, tag, role, top, inherited, walk);
  switch (role) {
    case "heading":
      return heading(element, top, inherited, walk);
    case "image":
      return image(element, tag, marked, top, inherited, walk);
    case "iframe":
      return frame(element, top, inherited, walk);
    case "canvas": case "video": case "audio": case "embed":
      return media(element, role, top, inherited, walk);
    case "progressbar": case "meter": case "scrollbar":
      return leaf(element, role, marked, top, `${name(element, role, walk)}${valueNow(element)}`);
    case "separator":
      if (isActive(element, marked)) return leaf(element, role, marked, top, `${name(element, role, walk)}${valueNow(element)}`);
      return void top.out.push(BREAK);
    case "listitem":
      return container(element, role, "-", top, inherited, walk);
    case "row":
      return container(element, role, "", top, inherited, walk);
    default:
      if (CELLS.has(role)) return cell(element, role, top, inherited, walk);
      if (SECTIONS.has(role)) return section(element, role, top, inherited, walk);
      return plainElement(element, tag, marked, top, inherited, walk);
  }
}

// Whether an element is drawn but not seen; null is: nobody asked yet. To ask is dear, so what only holds others is asked when it
// says something itself, and without a mark of its own it is not even asked whether it is drawn: those in it are.
function muteness(element, tag, role, marked, top) {
  if (tag === "slot" || tag === "area") return isMute(top);
  const saysNothing = HOLDERS.has(role) && tag !== "label" && !(marked && (tabStop(element) || element.hasAttribute("onclick")));
  if (saysNothing && element.childElementCount > 0) {
    return !marked || element.checkVisibility() || isContents(element) ? null : GONE;
  }
  if (element.checkVisibility(SEEN)) return false;
  if (element.checkVisibility()) return true;
  return isContents(element) ? isMute(top) : GONE;
}

// What has no box, and yet shows what is in it.
function isContents(element) {
  const { display } = getComputedStyle(element);
  if (display !== "none" && display !== "contents") notDrawn(element);
  return display === "contents";
}

// What would be shown and is not, is held by an element that shows something else in its place.
function notDrawn(element) {
  let holder = element.parentElement;
  while (holder !== null && !holder.checkVisibility()) {
    if (getComputedStyle(holder).display === "none") return;
    holder = holder.parentElement;
  }
  if (holder !== null && (HOSTS.has(holder.localName) || ownMade(holder))) suspects.addNew(holder);
}

// Where one is not drawn, what holds it may not be either; then nothing in it is.
function leaveUndrawn({ stack }) {
  for (let at = stack.length - 1; at >= 0 && stack[at].mute === null; at--) {
    const holder = stack[at];
    if (holder.element.checkVisibility() || isContents(holder.element)) return void isMute(holder);
    holder.mute = true;
    holder.child = null;
  }
}

function isMute(top) {
  return (top.mute ??= !top.element.checkVisibility(SEEN) && !(isContents(top.element) && getComputedStyle(top.element).visibility === "visible"));
}

function name(element, role, walk) {
  const text = nameIn(element, role, walk);
  return text === "" ? "" : ` ${quote(text)}`;
}

function nameIn(element, role, walk) {
  const byText = NAMED_BY_CONTENT.has(role) && isLeaf(element);
  return nameOf(element, role, byText ? mannerHere(walk).of(element, element.localName, element.hasAttributes()).transform : undefined);
}

// Something without a meaning of its own: what is in it stands where it stands.
function plainElement(element, tag, marked, top, inherited, walk) {
  const active = marked && inherited.mute === false && (tabStop(element) || element.hasAttribute("onclick"));
  if (active && !top.acted) return reachable(element, tag, top, inherited, walk);
  if (tag === "label" && element.control !== null && element.control !== undefined) return label(element, top, inherited, walk);
  if (tag === "legend" || tag === "caption" || tag === "figcaption") inherited = { ...inherited, quiet: top.quiet || top.named === true };
  const block = BLOCKS.has(tag) || tag.includes("-");
  if (isLeaf(element) && leafSaid(element, tag, marked, block, top, inherited, walk)) return;
  if (block && !top.quiet) top.out.push(BREAK);
  const inner = entry(top.out, element, inherited);
  inner.block = block && !top.quiet;
  inner.named = top.named;
  inner.checked = !marked && PROSE.has(tag);
  walk.stack.push(inner);
}

// Most elements hold nothing but words, and need no steps of their own unless they can be clicked.
function leafSaid(element, tag, marked, block, top, { quiet, mute, acted }, walk) {
  const text = squeezed(element.textContent);
  if (text === "" && mute === false && emptyBox(element)) suspects.addNew(element);
  if (!quiet && text === "" && mute === false) wordless(element, tag, marked, top, walk);
  if (quiet || text === "") return true;
  // Words set in another type are their paragraph's.
  const plain = !marked && (PROSE.has(tag) || (!block && top.checked));
  if (!plain && !acted && !mute && text !== " " && mannerHere(walk).of(element, tag, marked).pointer) return false;
  if (block) top.out.push(BREAK);
  if (!mute) put(top.out, text, top.out.length, () => plain || mannerHere(walk).of(element, tag, marked).inline);
  if (block) top.out.push(BREAK);
  return true;
}

// The words of a label are its field's name already, unless the field itself is not shown.
function label(element, top, inherited, walk) {
  if (element.control.checkVisibility(SEEN)) {
    walk.stack.push(entry(top.out, element, { ...inherited, quiet: true }));
    return;
  }
  const number = refs.of(element);
  const words = cut(plain(wordsIn(element, null, false)), LONGEST_NAME);
  const role = roleOf(element.control);
  node(top, { head: `e${number} ${role} ${quote(words)}${states(element.control, role, walk)}`, role, ref: number, inline: true }, element, {
    ...inherited, quiet: true, acted: true,
  }, walk);
}

function node(top, made, element, inherited, walk) {
  made.children = [];
  top.out.push(made);
  if (inherited.quiet && isLeaf(element)) return null;
  // What is nested beyond all measure is told flat.
  const out = top.level < DEEPEST ? made.children : top.out;
  const inner = entry(out, element, { ...inherited, level: top.level + 1 });
  inner.node = made;
  walk.stack.push(inner);
  return inner;
}

const isActive = (element, marked) => marked && (tabStop(element) || element.hasAttribute("onclick"));

function leaf(element, role, marked, top, rest) {
  const made = { head: `${role}${rest}`, role, ref: 0, inline: true, children: [] };
  if (isActive(element, marked) && !top.acted) pointAt(made, element);
  if (!top.quiet || made.ref > 0) top.out.push(made);
}

// Nothing but that it can be reached with the keyboard, or that it listens for clicks itself.
function reachable(element, tag, top, inherited, walk) {
  const number = refs.of(element);
  const role = element.hasAttribute("onclick") ? "clickable" : "focusable";
  const label = element.getAttribute("aria-label") ?? "";
  const named = label.trim() === "" ? "" : ` ${quote(cut(plain(label), LONGEST_NAME))}`;
  const made = { head: `e${number} ${role}${named}`, role, ref: number, inline: !BLOCKS.has(tag) };
  const inner = node(top, made, element, { ...inherited, acted: inherited.acted || role === "clickable" }, walk);
  inner.scrolls = true;
}

function heading(element, top, inherited, walk) {
  if (top.quiet) return void walk.stack.push(entry(top.out, element, inherited));
  const level = Number.parseInt(element.getAttribute("aria-level") ?? element.localName[1], 10) || 2;
  const words = nameIn(element, "heading", walk);
  const made = { head: `${"#".repeat(Math.min(Math.max(level, 1), 6))} ${quote(words)}`, role: "heading", ref: 0, inline: false };
  if (element.hasAttribute("tabindex") || element.hasAttribute("onclick")) pointAt(made, element);
  node(top, made, element, { ...inherited, quiet: true }, walk);
}

const pointAt = (made, element) => {
  made.ref = refs.of(element);
  made.head = `e${made.ref} ${made.head}`;
};

function image(element, tag, marked, top, { mute, acted }, walk) {
  if (top.quiet) return;
  const words = nameOf(element, "image");
  const made = { head: words === "" ? "image" : `image ${quote(words)}`, role: "image", ref: 0, inline: true, children: [] };
  const clicked = !acted && mute === false && (isActive(element, marked) || mannerHere(walk).of(element, tag, marked).pointer);
  // In something that is clicked as a whole, it is a part of that.
  if (clicked && !isActive(element, marked) && mannerHere(walk).pointer) {
    if (!top.checked) findClickable(top, walk);
  } else if (clicked) pointAt(made, element);
  if (words !== "" || made.ref > 0) top.out.push(made);
}

function container(element, role, head, top, inherited, walk) {
  if (top.quiet) return void walk.stack.push(entry(top.out, element, inherited));
  const made = { head, role, ref: 0, inline: false };
  const marked = element.hasAttributes();
  if (marked && (tabStop(element) || element.hasAttribute("onclick"))) {
    made.ref = refs.of(element);
    made.head = `${head === "" ? "" : `${head} `}e${made.ref} ${role}${states(element, role, walk)}`;
  } else if (marked && element.hasAttribute("aria-selected")) {
    made.head += states(element, role, walk);
  }
  filled(top, made, element, marked, inherited, walk);
}

function cell(element, role, top, inherited, walk) {
  if (top.quiet) return void walk.stack.push(entry(top.out, element, inherited));
  const made = { head: "|", role: "cell", ref: 0, inline: true };
  const marked = element.hasAttributes();
  if (marked && (tabStop(element) || element.hasAttribute("onclick"))) {
    made.ref = refs.of(element);
    made.head = `| e${made.ref}${states(element, role, walk)}`;
  }
  filled(top, made, element, marked, inherited, walk);
}

// A node with what is in it, which is often nothing but words.
function filled(top, made, element, marked, inherited, walk) {
  made.children = [];
  const said = isLeaf(element) && leafSaid(element, element.localName, marked, false, { out: made.children, checked: false }, inherited, walk);
  if (said) top.out.push(made);
  else node(top, made, element, inherited, walk);
}

function section(element, role, top, inherited, walk) {
  // What is named by a heading in it is named by that.
  const by = element.getAttribute("aria-labelledby");
  const words = by !== null && element.contains(element.getRootNode().getElementById?.(by)) ? "" : name(element, role, walk);
  const active = element.hasAttributes() && (tabStop(element) || element.hasAttribute("onclick") || editing(element));
  if (top.quiet || (words === "" && !active && NAMELESS.has(role))) {
    const inner = entry(top.out, element, inherited);
    if (!top.quiet) {
      top.out.push(BREAK);
      inner.block = true;
      inner.from = top.out.length;
    }
    return void walk.stack.push(inner);
  }
  const made = { head: `${role}${words}${states(element, role, walk)}${hiddenRows(element)}:`, role, ref: 0, inline: false };
  if (active || POINTED.has(role)) pointAt(made, element);
  const inner = node(top, made, element, inherited, walk);
  inner.named = words !== "";
  inner.scrolls = true;
}

// A list that shows some rows of many says how many there are.
function hiddenRows(element) {
  const all = Number.parseInt(element.getAttribute("aria-rowcount") ?? "", 10);
  if (!(all > 0)) return "";
  const shown = element.querySelectorAll("[role=row], tr").length;
  return shown < all ? ` ${shown} of ${all} rows are in the page` : "";
}

function media(element, role, top, inherited, walk) {
  const number = refs.of(element);
  const { width, height } = element.getBoundingClientRect();
  const size = role === "canvas" ? ` ${Math.round(width)}x${Math.round(height)}, drawn: only a screenshot shows it` : "";
  const title = nameOf(element, role);
  const made = { head: `e${number} ${role}${title === "" ? "" : ` ${quote(title)}`}${size}`, role, ref: number, inline: role !== "canvas" };
  if (role === "canvas") node(top, made, element, inherited, walk);
  else top.out.push({ ...made, children: [] });
}

function frame(element, top, inherited, walk) {
  const number = refs.of(element);
  const inside = element.contentDocument;
  const made = { head: `e${number} iframe${name(element, "iframe", walk)}`, role: "iframe", ref: number, inline: false };
  if (inside?.documentElement) {
    made.head += ":";
    node(top, made, inside.documentElement, { ...inherited, quiet: false, acted: false }, walk);
  } else {
    walk.frames.push({ ref: number, path: [...framePath(globalThis), frameIndex(element)] });
    top.out.push({ ...made, children: [] });
  }
}
