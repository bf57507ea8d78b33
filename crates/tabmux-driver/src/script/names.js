// What an element is called, by the rules for accessible names: `nameOf(element)`. One line; long ones are cut.
const LONGEST_NAME = 200;
const NONE = [];
// Without a prototype, since the browser looks for five members each time.
const SEEN = { __proto__: null, visibilityProperty: true };

const squeezed = (text) => text.replace(/\s+/g, " ");
const plain = (text) => squeezed(text).trim();
const cut = (text, most) => (text.length <= most ? text : `${text.slice(0, most)}… [${text.length} characters]`);

const BLOCKS = new Set(
  ("address article aside blockquote br button dd details dialog div dl dt fieldset figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr " +
    "iframe img input li main nav ol option p pre section select summary table tbody td textarea tfoot th thead tr ul video audio canvas").split(" "),
);
// Shown nowhere, or only where a drawing uses it.
const NEVER = new Set(
  "script style template noscript head datalist title desc metadata source track param defs symbol clipPath mask marker pattern".split(" "),
);

const rendered = (element) => {
  if (element.checkVisibility(SEEN)) return true;
  return !element.checkVisibility() && getComputedStyle(element).display === "contents";
};

// The words in a node, for a name. `asked` is the element whose name it is, which says nothing about itself in its label.
// `transform` is how its own text is shown, where that is known.
function wordsIn(node, asked, hidden, transform) {
  const words = wordsWithin(node, asked, hidden, transform);
  if (!mayAdorn(node.getRootNode())) return words;
  const [before, after] = [styled(node, "::before"), styled(node, "::after")];
  return words.trim() === "" ? `${before}${words}${after}` : `${legible(before)}${words}${legible(after)}`;
}

function wordsWithin(node, asked, hidden, transform) {
  if (isLeaf(node)) return transform === undefined ? asShown(node.textContent, node) : transformed(node.textContent, transform);
  let words = "";
  for (let child = firstInside(node); child !== null; child = child.nextSibling) {
    if (child.nodeType === 3) words += asShown(child.data, node);
    else if (child.nodeType === 1) words += wordsOf(child, asked, hidden);
    if (words.length > 20 * LONGEST_NAME) break;
  }
  return words;
}

// Capitals that the style makes are on the page too.
function asShown(text, element) {
  return element.nodeType !== 1 || text.trim() === "" ? text : transformed(text, getComputedStyle(element).textTransform);
}

function transformed(text, how) {
  switch (how) {
    case "uppercase":
      return text.toUpperCase();
    case "lowercase":
      return text.toLowerCase();
    case "capitalize":
      return text.replace(/(^|[\s\-(["'])(\p{L})/gu, (_, before, letter) => before + letter.toUpperCase());
    default:
      return text;
  }
}

// Holds nothing but text.
const isLeaf = (node) => node.childElementCount === 0 && node.localName !== "slot" && shadowOf(node) === null;

const firstInside = (node) => (node.shadowRoot ?? opened.get(node) ?? node).firstChild;

function wordsOf(element, asked, hidden) {
  const tag = element.localName;
  if (element === asked || NEVER.has(tag)) return "";
  if (element.getAttribute("aria-hidden") === "true" && !hidden) return "";
  if (tag === "slot" && element.assignedNodes().length > 0) {
    return element.assignedNodes().map((node) => (node.nodeType === 3 ? node.data : wordsOf(node, asked, hidden))).join("");
  }
  if (!hidden && tag !== "slot" && tag !== "br" && !rendered(element)) return "";
  const label = element.getAttribute("aria-label");
  if (label !== null && label.trim() !== "") return ` ${label} `;
  const control = controlWords(element, tag);
  if (control !== undefined) return control;
  if (tag === "img" || tag === "area") return ` ${element.alt || element.title} `;
  if (tag === "svg") return ` ${element.querySelector(":scope > title")?.textContent ?? wordsIn(element, asked, hidden)} `;
  const words = wordsIn(element, asked, hidden);
  const apart = BLOCKS.has(tag) || (element.attributes.length > 0 && !/^(inline|contents)$/.test(getComputedStyle(element).display));
  const titled = words.trim() === "" && element.title ? element.title : words;
  return apart ? ` ${titled} ` : titled;
}

// A field within a name stands for what is in it.
function controlWords(element, tag) {
  switch (tag) {
    case "input":
      if (secrets.has(element) || element.type === "hidden" || element.type === "checkbox" || element.type === "radio") return "";
      return ` ${element.value} `;
    case "textarea":
      return secrets.has(element) ? "" : ` ${element.value} `;
    case "select":
      return ` ${[...element.selectedOptions].map((option) => option.label).join(" ")} `;
    case "iframe": case "video": case "audio": case "canvas":
      return ` ${element.title} `;
    default:
      return undefined;
  }
}

function nameOf(element, role = roleOf(element), transform = undefined) {
  return cut(plain(fullNameOf(element, role, transform)), LONGEST_NAME);
}

function fullNameOf(element, role, transform) {
  const by = element.getAttribute("aria-labelledby");
  if (by !== null) {
    const root = element.getRootNode();
    const parts = by.split(/\s+/).map((id) => root.getElementById?.(id)).filter(Boolean);
    const name = parts.map((part) => (part === element ? ownName(part, role) : labelText(part, element))).join(" ");
    if (name.trim() !== "") return name;
  }
  return ownName(element, role, transform);
}

// A label that is not shown names as well as one that is.
function labelText(label, asked) {
  const given = label.getAttribute("aria-label");
  if (given !== null && given.trim() !== "") return given;
  return controlWords(label, label.localName) ?? wordsIn(label, asked, !rendered(label));
}

function ownName(element, role, transform) {
  const label = element.getAttribute("aria-label");
  if (label !== null && label.trim() !== "") return label;
  const native = nativeName(element, role);
  if (native !== undefined && native.trim() !== "") return native;
  if (NAMED_BY_CONTENT.has(role)) {
    const words = wordsIn(element, element, false, transform);
    return words.trim() === "" ? titleOf(element) : words;
  }
  return titleOf(element);
}

const titleOf = (element) => element.getAttribute("title") || element.getAttribute("placeholder") || element.getAttribute("aria-placeholder") || "";

// What a style writes before or after an element. To ask is dear, so nobody is asked where no style sheet does that.
function styled(element, where) {
  const { content, display } = getComputedStyle(element, where);
  if (content === "none" || content === "normal" || display === "none" || /\bcounters?\(/.test(content)) return "";
  // What is written for those who do not see it comes last.
  const said = content.split(/ \/ (?=")/).at(-1);
  const text = [...said.matchAll(/"((?:[^"\\]|\\.)*)"/g)].map(([, text]) => text.replace(/\\(.)/g, "$1")).join("");
  return text === "" || display === "inline" ? text : ` ${text} `;
}

// The signs that fonts of icons have for themselves are no words, and where there are words nobody misses them.
const legible = (text) => text.replace(/\p{Co}/gu, "");

const ADORNS = /::?(before|after)\b/;

// Whether a style sheet of this tree may write before or after elements. One of another site does not say.
function mayAdorn(root) {
  const book = bookOf(root);
  return (book.adorned ??= [...(root.styleSheets ?? NONE), ...(root.adoptedStyleSheets ?? NONE)].some(sheetAdorns));
}

const sheetsRead = new WeakMap();

function sheetAdorns(sheet) {
  let rules;
  try {
    rules = sheet.cssRules;
  } catch {
    return true;
  }
  const known = sheetsRead.get(rules);
  if (known?.length === rules.length) return known.adorns;
  const adorns = [...rules].some(ruleAdorns);
  sheetsRead.set(rules, { length: rules.length, adorns });
  return adorns;
}

function ruleAdorns(rule) {
  if (ADORNS.test(rule.selectorText ?? "")) return true;
  if (rule.styleSheet) return sheetAdorns(rule.styleSheet);
  return rule.cssRules?.length > 0 && [...rule.cssRules].some(ruleAdorns);
}

const fromChild = (element, selector) => {
  const child = element.querySelector(selector);
  return child === null ? undefined : labelText(child, element);
};

function nativeName(element, role) {
  switch (element.localName) {
    case "input":
      return inputName(element);
    case "button": case "textarea": case "select": case "meter": case "progress": case "output":
      return labelsOf(element);
    case "img": case "area":
      return element.getAttribute("alt") ?? undefined;
    case "fieldset":
      return fromChild(element, ":scope > legend");
    case "table":
      return fromChild(element, ":scope > caption");
    case "figure":
      return fromChild(element, ":scope > figcaption");
    case "svg":
      return element.querySelector(":scope > title")?.textContent;
    case "optgroup":
      return element.label;
    case "option":
      return element.label;
    default:
      return undefined;
  }
}

function labelsOf(element) {
  const labels = labelsBy(element);
  return labels?.map((label) => (rendered(label) ? labelText(label, element) : "")).join(" ");
}

// What is known of each tree: the labels by what they are for, since `element.labels` goes through the whole tree for each element
// that is asked, and whether its styles write words. It holds for as long as no other script can have run; a walk keeps its own.
let treeBook = null;

function bookOf(root) {
  if (treeBook === null) {
    treeBook = new Map();
    queueMicrotask(() => (treeBook = null));
  }
  let book = treeBook.get(root);
  if (book === undefined) treeBook.set(root, (book = { labels: null, adorned: null }));
  return book;
}

function labelsBy(element) {
  const root = element.getRootNode();
  return (bookOf(root).labels ??= labelsIn(root)).get(element);
}

function labelsIn(root) {
  const labels = new Map();
  for (const label of root.querySelectorAll?.("label") ?? NONE) {
    const control = label.control;
    if (labels.has(control)) labels.get(control).push(label);
    else if (control !== null) labels.set(control, [label]);
  }
  return labels;
}

function inputName(element) {
  switch (element.type) {
    case "submit": case "reset": case "button": {
      const standard = { submit: "Submit", reset: "Reset", button: "" }[element.type];
      return labelsOf(element) || (element.hasAttribute("value") ? element.value : element.title || standard);
    }
    case "image":
      return labelsOf(element) || element.alt || element.getAttribute("value") || element.title || "Submit";
    default:
      return labelsOf(element);
  }
}
