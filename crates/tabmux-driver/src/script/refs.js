// Names of elements: e1, e2, … An element keeps its number for as long as its document lives, and no number is ever given
// twice: the driver says which ones are free, over all documents and frames of the page.
const verbs = { __proto__: null };

const refs = {
  next: 1,
  step: 1,
  numbers: new WeakMap(),
  elements: new Map(),

  // The driver's count is behind after a call that nobody waited for.
  free(first, step) {
    this.step = step;
    if (this.next < first || (this.next - first) % step !== 0) {
      this.next = Math.max(first, first + Math.ceil((this.next - first) / step) * step);
    }
  },

  of(element) {
    let number = this.numbers.get(element);
    if (number === undefined) {
      number = this.next;
      this.next += this.step;
      this.numbers.set(element, number);
      this.elements.set(number, new WeakRef(element));
    }
    return number;
  },

  // Its element, while it is in a document that is shown.
  element(number) {
    const element = this.elements.get(number)?.deref();
    if (element === undefined) this.elements.delete(number);
    return element !== undefined && isShownDocument(element) ? element : undefined;
  },
};

function isShownDocument(node) {
  if (!node.isConnected) return false;
  for (let view = node.ownerDocument.defaultView; view !== globalThis; view = view.parent) {
    // Of an iframe that is gone, or of one that we may not look out of.
    if (view === null || view.parent === view) return false;
    const frame = view.frameElement;
    if (frame === null || !frame.isConnected) return false;
  }
  return true;
}
