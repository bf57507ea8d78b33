const MAY_ACT = "a[href], button, input:not([type=hidden]), select, textarea, summary, [role], [tabindex], [contenteditable], [onclick]";

// What can be acted upon or bears words and is in sight, each with a selector that means it in any page like this one. `others` are
// selectors of elements in frames: those that mean something here too are `taken`.
verbs.elements = ({ most, others = [] }) => {
  const found = [];
  const where = globalThis !== globalThis.top ? { frame: siteOf() } : {};
  let left = 0;
  for (const [element, selectors] of elementsIn(document)) {
    const bears = bearsWords(element);
    const mayAct = element.matches(MAY_ACT);
    if (!bears && !mayAct) continue;
    const role = roleOf(element);
    const active = mayAct && (ACTIVE_ROLES.has(role) || tabStop(element) || element.hasAttribute("onclick"));
    // Of what cannot be acted upon, only what bears words of its own.
    if (!active && !bears) continue;
    if (!element.checkVisibility(SEEN)) continue;
    const { width, height } = element.getBoundingClientRect();
    if (width <= 0 || height <= 0) continue;
    if (found.length === most) {
      left++;
      continue;
    }
    const text = active ? nameOf(element, role) || shownIn(element) : shownIn(element) || nameOf(element, role);
    found.push({ text, cssSelector: selectors.of(element), role, tag: element.localName, ...where });
  }
  const taken = others.filter((selector) => document.querySelector(selector) !== null);
  return { elements: found, left, taken, path: framePath(globalThis) };
};

// With those in shadow trees, each with the selectors of its tree.
function* elementsIn(root, before = "") {
  const selectors = new Selectors(root, before);
  for (const element of root.querySelectorAll("*")) {
    yield [element, selectors];
    const shadow = shadowOf(element);
    if (shadow !== null) yield* elementsIn(shadow, `${selectors.of(element)} >> `);
  }
}

// Scripts and what is hidden are among its text too, but nobody sees them.
function shownIn(element) {
  return cut(plain(controlWords(element, element.localName) ?? wordsIn(element, element, false)), LONGEST_NAME);
}

// An option's words are its field's.
function bearsWords(element) {
  if (NEVER.has(element.localName) || element.localName === "option") return false;
  for (let child = element.firstChild; child !== null; child = child.nextSibling) {
    if (child.nodeType === 3 && child.data.trim() !== "") return true;
  }
  return false;
}

const TELLING = ["data-testid", "data-test", "name", "aria-label", "href"];

// Selectors of one moment, in one tree. Who else has an attribute, and which of its kind an element is, is counted once for all.
class Selectors {
  #count = new Map();
  #places = new Map();
  #root;
  #before;

  constructor(root, before) {
    this.#root = root;
    this.#before = before;
    for (const element of root.querySelectorAll(TELLING.map((name) => `[${name}]`).join())) {
      for (const name of TELLING) {
        const value = element.getAttribute(name);
        if (value === null) continue;
        const key = this.#key(element, name, value);
        this.#count.set(key, (this.#count.get(key) ?? 0) + 1);
      }
    }
  }

  #key({ localName }, name, value) {
    return `${localName} ${name} ${value}`;
  }

  of(element) {
    return this.#before + this.#within(element);
  }

  #within(element) {
    const { id, localName, parentNode: parent } = element;
    if (id !== "" && this.#root.querySelectorAll(`#${CSS.escape(id)}`).length === 1) return `#${CSS.escape(id)}`;
    for (const name of TELLING) {
      const value = element.getAttribute(name);
      if (value === null || value.length > 100 || this.#count.get(this.#key(element, name, value)) > 1) continue;
      return `${CSS.escape(localName)}[${name}=${inCss(value)}]`;
    }
    if (parent === document || localName === "body") return localName;
    const { place, all } = this.#among(parent);
    const which = all.get(localName) > 1 ? `:nth-of-type(${place.get(element)})` : "";
    return `${parent === this.#root ? ":host" : this.#within(parent)} > ${CSS.escape(localName)}${which}`;
  }

  // Which of its kind each child is, and how many there are of the kind.
  #among(parent) {
    const known = this.#places.get(parent);
    if (known !== undefined) return known;
    const places = { place: new Map(), all: new Map() };
    for (const child of parent.children) {
      const place = (places.all.get(child.localName) ?? 0) + 1;
      places.all.set(child.localName, place);
      places.place.set(child, place);
    }
    this.#places.set(parent, places);
    return places;
  }
}

const inCss = (value) => `"${value.replace(/["\\]/g, "\\$&").replace(/[\n\r\f]/g, (sign) => `\\${sign.charCodeAt(0).toString(16)} `)}"`;
