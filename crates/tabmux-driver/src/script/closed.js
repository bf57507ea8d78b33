// Closed shadow roots. No script can look into them from outside; the driver can, and hands them over, and from then on they
// are walked like open ones.
const opened = new WeakMap();
const shadowOf = (element) => element.shadowRoot ?? opened.get(element) ?? null;

const HOSTS = "article,aside,blockquote,body,div,footer,h1,h2,h3,h4,h5,h6,header,main,nav,p,section,span";

// Whether there may be some that were not handed over: something is drawn where nothing is, or an element of the page's own
// making keeps its inside to itself.
function mayHide() {
  const hides = (element) => {
    if (shadowOf(element)) return false;
    if (element.localName.includes("-")) return element.matches(":defined");
    return element.firstChild === null && element.matches(HOSTS) && element.offsetHeight > 0 && element.offsetWidth > 0;
  };
  return Array.prototype.some.call(document.querySelectorAll("*"), hides);
}
