// Finds the element that a selector means. Shadow roots and frames of the same origin are searched where the document
// itself has no match; what is in frames of other origins is found by the script that runs there.

const NEAREST = 3;
// What is cut says so, also to those who look for what may not be shown.
const shortened = (text) => (text.length <= 60 ? text : `${text.slice(0, 60)}…`);
const oneLine = (text) => text.replace(/\s+/g, " ").trim();

// Whether a person could see it: drawn, and not without any extent.
function isSeen(element) {
  if (element.localName === "area") return isSeenArea(element);
  if (!element.checkVisibility({ visibilityProperty: true, contentVisibilityAuto: true })) return false;
  return hasExtent(element) || spilt(element).some(isSeen);
}

function hasExtent(element) {
  for (const { width, height } of element.getClientRects()) if (width > 0 && height > 0) return true;
  return false;
}

// What shows an element that has no extent of its own: what is in it, and floats or stands elsewhere.
function spilt(element) {
  const { display, overflow } = getComputedStyle(element);
  return display === "contents" || overflow === "visible" ? [...element.children] : [];
}

function byXPath(root, path) {
  const within = root.ownerDocument ?? root;
  const found = within.evaluate(path, root, null, XPathResult.ORDERED_NODE_SNAPSHOT_TYPE, null);
  const nodes = Array.from({ length: found.snapshotLength }, (_, at) => found.snapshotItem(at));
  return nodes.map((node) => (node.nodeType === Node.ELEMENT_NODE ? node : node.parentElement)).filter(Boolean);
}

const fits = (text, { text: wanted, exact }) =>
  exact ? oneLine(text) === wanted : oneLine(text).toLowerCase().includes(wanted.toLowerCase());

// The words on an element: buttons of old have theirs in an attribute.
function wordsOn(element) {
  if (element.localName === "input") return /^(submit|button|reset)$/.test(element.type) ? element.value : "";
  return element.innerText ?? element.textContent ?? "";
}

// The innermost elements that bear the words: a text is its paragraph's, not its page's. What a branch says is read cheaply,
// without its layout; only where it may be is it read as it is shown.
function byText(root, words) {
  const squeezed = (text) => text.replace(/\s+/g, "").toLowerCase();
  const sought = squeezed(words.text);
  const wordless = /^(script|style|noscript|template|head|title)$/;
  const mayBear = (element) => !wordless.test(element.localName) && squeezed(element.textContent).includes(sought);
  const inner = (element) => {
    const within = [...element.children].filter(mayBear).flatMap(inner);
    return within.length || !fits(wordsOn(element), words) ? within : [element];
  };
  const buttons = [...root.querySelectorAll("input")].filter((element) => fits(wordsOn(element), words));
  return [...(root.body ?? root).children].filter(mayBear).flatMap(inner).concat(buttons);
}

function byRole(root, named, words) {
  const role = named === "img" ? "image" : named;
  const of = (element) => roleOf(element) === role && (!words || fits(nameOf(element), words));
  return [...root.querySelectorAll("*")].filter(of);
}

function byId(root, id) {
  const quoted = CSS.escape(id);
  const direct = root.querySelectorAll(`[aria-label="${quoted}"],[data-testid="${quoted}"],[accessibility-id="${quoted}"]`);
  if (direct.length) return [...direct];
  const called = [...root.querySelectorAll(ACTIONABLE)].filter((element) => oneLine(nameOf(element)) === oneLine(id));
  return called.length ? called : [...root.querySelectorAll(`#${quoted}`)];
}

// Each step is looked for in what the one before means and in its shadow tree. A frame is told by where it is.
function byChain(root, { frame, steps }) {
  if (frame && (!root.defaultView || framePath(root.defaultView).join() !== frame.join())) return [];
  let within = [root];
  let found = [];
  for (const css of steps) {
    found = [...new Set(within.flatMap((outer) => [...outer.querySelectorAll(css)]))];
    within = found.flatMap((element) => [element, shadowOf(element) ?? []].flat());
  }
  return found;
}

const ACTIONABLE =
  "a[href],button,input:not([type=hidden]),select,textarea,summary,label,option,[role],[tabindex],[contenteditable],[onclick],[aria-label]";

function matchesIn(root, selector) {
  switch (selector.by) {
    case "css":
      return [...root.querySelectorAll(selector.css)];
    case "chain":
      return byChain(root, selector);
    case "xpath":
      // Of shadow trees there is no XPath.
      return root.evaluate ? byXPath(root, selector.path) : [];
    case "id":
      return byId(root, selector.id);
    case "text":
      return byText(root, selector.words);
    case "role":
      return byRole(root, selector.role, selector.words);
    default:
      return [];
  }
}

// All that match, in the order of the page; in shadow roots and frames only where the document has none that is seen.
function matchesOf(selector) {
  if (selector.by === "ref") return [refs.element(selector.ref)].filter(Boolean);
  const matches = matchesIn(document, selector);
  if (!matches.some(isSeen)) for (const root of rootsBelow(document)) matches.push(...matchesIn(root, selector));
  return matches;
}

const said = (error) => oneLine(String(error.message)).replace(/^Failed to execute .*?: /, "");

// `{ element, matched }`, or what is wrong: `stale`, `bad` or `none`.
function find(selector) {
  let matches;
  try {
    matches = matchesOf(selector);
  } catch (error) {
    return { fault: "bad", text: said(error) };
  }
  if (selector.by === "text") matches = best(matches, selector.words);
  const element = matches.find(isSeen) ?? matches[0];
  if (!element) return { fault: selector.by === "ref" ? "stale" : "none" };
  return { element, matched: matches.filter(isSeen).length || matches.length };
}

// For looking at a part of the page.
verbs.find = (selector) => {
  const found = find(selector);
  return found.fault === "none" ? { ...found, near: nearest(selector) } : found;
};

const CONTROLS =
  "button,a[href],input,select,textarea,label,summary,option,[role=button],[role=link],[role=tab],[role=menuitem],[role=option]," +
  "[role=checkbox],[role=radio],[role=switch],[role=treeitem],[onclick]";

// How well one that bears the words fits them, less being better: what is seen before what is not, then what can be acted upon before
// headings and prose, then what says just that before what says more.
const UNSEEN = 4;

function rankOf(element, { text }) {
  const control = element.closest(CONTROLS);
  const exactly = oneLine(wordsOn(control ?? element)).toLowerCase() === oneLine(text).toLowerCase();
  return (isSeen(element) ? 0 : UNSEEN) + (control ? 0 : 2) + (exactly ? 0 : 1);
}

function best(matches, words) {
  const ranked = matches.map((element) => [rankOf(element, words), element]);
  const least = Math.min(...ranked.map(([rank]) => rank));
  return ranked.filter(([rank]) => rank === least).map(([, element]) => element);
}

// How many of this very document are meant, and how well they fit; or whether it has the focus. Each document answers for itself, so that
// nothing is counted twice, and nothing is done to it: only one of several is to be acted in.
verbs.seek = ({ selector, anyway, opened }) => {
  const path = framePath(globalThis);
  if (!selector) {
    const has = document.hasFocus();
    return { path, matched: !focused().foreign && (anyway || has) ? 1 : 0, rank: has ? 0 : UNSEEN };
  }
  let matches = [];
  try {
    matches = matchesOf(selector).filter((element) => element.ownerDocument === document);
  } catch {
    // What is no selector, the page's own document says.
  }
  if (selector.by === "text") matches = best(matches, selector.words);
  if (matches.length === 0) return { path, matched: 0, hidden: !opened && mayHide() };
  const seen = matches.filter(isSeen).length;
  const rank = selector.by === "text" ? rankOf(matches[0], selector.words) : seen > 0 ? 0 : UNSEEN;
  return { path, matched: seen || matches.length, rank };
};

// Whether one can be seen in this very document, be it without any extent; a text says why the selector is none.
verbs.sees = (selector) => {
  try {
    return matchesOf(selector).some((element) => element.ownerDocument === document && element.checkVisibility({ visibilityProperty: true }));
  } catch (error) {
    return said(error);
  }
};

// How much two texts have in common, from 0 to 1: pairs of neighbouring letters.
function likeness(one, other) {
  const pairs = (text) => new Set(Array.from({ length: Math.max(0, text.length - 1) }, (_, at) => text.slice(at, at + 2)));
  const [a, b] = [pairs(one), pairs(other)];
  let common = 0;
  for (const pair of a) if (b.has(pair)) common++;
  return (2 * common) / (a.size + b.size || 1);
}

// What may have been meant by a selector that matches nothing.
function nearest(selector) {
  const wanted = (selector.words?.text ?? selector.id ?? selector.css ?? selector.steps?.at(-1) ?? selector.path ?? selector.role ?? "").toLowerCase();
  const scored = [];
  const roots = [document];
  for (const root of rootsBelow(document)) roots.push(root);
  for (const element of roots.flatMap((root) => [...root.querySelectorAll(ACTIONABLE)]).slice(0, 2000)) {
    if (!isSeen(element)) continue;
    const { id, localName, classList } = element;
    const texts = [nameOf(element), `${localName}#${id}`, `${localName}.${[...classList].join(".")}`, element.getAttribute("name") ?? ""];
    const score = Math.max(...texts.map((text) => likeness(wanted, text.slice(0, 100).toLowerCase())));
    const sameRole = selector.by === "role" && roleOf(element) === selector.role ? 0.3 : 0;
    if (score + sameRole > 0.3) scored.push([score + sameRole, element]);
  }
  scored.sort(([a], [b]) => b - a);
  return scored.slice(0, NEAREST).map(([, element]) => labelOf(element));
}

// `e12 button "Save"`: how replies call an element, on one line whatever the page wrote.
function labelOf(element) {
  const name = oneLine(nameOf(element) || (element.matches("input,select,textarea") ? "" : (element.innerText ?? "")));
  return [`e${refs.of(element)}`, kindOf(element), name && JSON.stringify(shortened(name))].filter(Boolean).join(" ");
}

// Its role, or what it is in the page's own words.
function kindOf(element) {
  const role = roleOf(element);
  if (role && role !== "generic" && role !== "none") return role;
  const { localName, id } = element;
  return /^[\w-]{1,40}$/.test(id) ? `${localName}#${id}` : localName;
}
