// How an element looks, as far as it matters for what is said of it. To ask is dear, and on a page of ten thousand elements few
// kinds differ: what has the same attributes and class in the same place looks the same, unless it has a style or an id of its
// own. Whether something is shown at all is never taken from another.
class Manner {
  below = new Map();
  #style;
  #pointer;
  #inline;
  #transform;

  constructor(element) {
    this.#style = element.nodeType === 1 ? getComputedStyle(element) : { cursor: "auto", display: "block", textTransform: "none" };
  }

  // Whether the pointer over it says that it can be clicked.
  get pointer() {
    return (this.#pointer ??= this.#style.cursor === "pointer");
  }

  get inline() {
    return (this.#inline ??= this.#style.display === "inline");
  }

  get transform() {
    return (this.#transform ??= this.#style.textTransform);
  }

  of(element, tag, marked) {
    let kind = tag;
    if (marked) {
      const names = element.getAttributeNames();
      if (names.includes("style") || names.includes("id")) return new Manner(element);
      kind = `${tag} ${names.join(" ")} ${element.getAttribute("class") ?? ""}`;
    }
    let manner = this.below.get(kind);
    if (manner === undefined) this.below.set(kind, (manner = new Manner(element)));
    return manner;
  }
}

// That of the element whose inside is walked now.
function mannerHere({ stack }) {
  let known = stack.length - 1;
  while (known >= 0 && stack[known].manner === null) known--;
  let manner = known < 0 ? null : stack[known].manner;
  for (let at = known + 1; at < stack.length; at++) {
    const { element } = stack[at];
    manner = manner === null || element.nodeType !== 1 ? new Manner(element) : manner.of(element, element.localName, element.hasAttributes());
    stack[at].manner = manner;
  }
  return manner;
}
