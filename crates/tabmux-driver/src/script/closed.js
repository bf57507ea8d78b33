// Closed shadow roots. No script can look into them from outside; the driver can, and hands them over, and from then on they
// are walked like open ones. Which elements have one cannot be seen either, so those are named that look like it: elements of the
// page's own making that keep their inside to themselves, those that are drawn and hold nothing, and those that hold elements that
// are not drawn. A plain element that holds words, or all of what its closed root shows in slots, looks like any other.
const opened = new WeakMap();
const shadowOf = (element) => element.shadowRoot ?? opened.get(element) ?? null;

const HOSTS = new Set("article aside blockquote body div footer h1 h2 h3 h4 h5 h6 header main nav p section span".split(" "));
const MOST_SUSPECTS = 200;

const suspects = {
  list: new Set(),
  // What was asked for already and answered, and what was asked for and not answered yet: nobody may wait for it any more.
  cleared: new WeakSet(),
  asked: new Map(),
  number: 0,

  add(element) {
    if (this.list.size < MOST_SUSPECTS && shadowOf(element) === null) this.list.add(element);
  },

  addNew(element) {
    if (!this.cleared.has(element)) this.add(element);
  },

  // A number for the question, and the elements.
  take() {
    this.asked.delete(this.number - 3);
    this.asked.set(++this.number, [...this.list]);
    this.list.clear();
    return [this.number, ...this.asked.get(this.number)];
  },

  // These are all their closed roots.
  answered(number, roots) {
    this.asked.get(number)?.forEach((element) => this.cleared.add(element));
    this.asked.delete(number);
    roots.forEach((root) => opened.set(root.host, root));
  },
};

const ownMade = (element) => element.localName.includes("-") && element.matches(":defined");
const emptyBox = (element) => HOSTS.has(element.localName) && element.offsetHeight > 0 && element.offsetWidth > 0;

const holdsUndrawn = ({ localName, firstElementChild: child }) =>
  child !== null && HOSTS.has(localName) && child.parentElement.checkVisibility() && !child.checkVisibility() && !/^(none|contents)$/.test(getComputedStyle(child).display);

// The roots below a root, in the order of the page.
function* rootsBelow(root) {
  for (const element of root.querySelectorAll("*")) {
    const inner = shadowOf(element) ?? (/^i?frame$/i.test(element.localName) ? documentInside(element) : null);
    if (inner) {
      yield inner;
      yield* rootsBelow(inner);
    }
  }
}

function documentInside(frame) {
  try {
    return frame.contentDocument;
  } catch {
    return null;
  }
}

// Whether there may be closed roots that were not handed over: any, or `new` ones that nobody asked about yet.
function mayHide(which = "any") {
  suspects.list.clear();
  for (const root of [document, ...rootsBelow(document)]) {
    for (const element of root.querySelectorAll("*")) {
      if (which === "new" && suspects.cleared.has(element)) continue;
      if (ownMade(element) || (element.firstChild === null ? emptyBox(element) : holdsUndrawn(element))) suspects.add(element);
    }
  }
  return suspects.list.size > 0;
}
