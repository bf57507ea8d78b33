// Where frames are, seen from the windows around them. Sites of other origins may be asked this much.

// Which of its window's frames an element shows.
const frameIndex = (element) => {
  const view = element.ownerDocument.defaultView;
  for (let at = 0; at < view.length; at++) if (view[at] === element.contentWindow) return at;
  return -1;
};

// Which frame of which frame this is.
function framePath(view) {
  const path = [];
  for (let inner = view; inner !== inner.parent; inner = inner.parent) {
    let at = 0;
    while (at < inner.parent.length && inner.parent[at] !== inner) at++;
    path.unshift(at);
  }
  return path;
}

// Where a document is from. One in a sandbox is of no site, whatever its address; one without an address is called as its frame is.
const siteOf = () => [globalThis.origin, location.origin].find((origin) => origin !== "null") ?? location.href.split(",")[0].slice(0, 100);
