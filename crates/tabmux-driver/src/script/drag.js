// Drags: whether the page's own drag and drop began, and whether what was dragged came down where it was meant to.

let dragged = null;

verbs.grab = async ({ token, ...wanted }) => {
  const got = await ready(wanted);
  if (got.fault) return got;
  const { stand: element } = got;
  arm(element, { token, ends: "mouseup" });
  const view = element.ownerDocument.defaultView;
  const mine = { element, view, started: null, dropped: null, let: null };
  mine.hear = (event) => {
    if (!event.isTrusted) return;
    if (event.type === "dragstart") mine.started = event;
    if (event.type === "drop") mine.dropped = event.composedPath();
    if (event.type === "mouseup") mine.let = { over: elementsAt(event).includes(pointed) };
  };
  dragged?.stop();
  mine.kinds = ["dragstart", "drop", "mouseup"];
  mine.stop = () => unheard(view, mine.kinds, mine.hear);
  mine.kinds.forEach((kind) => view.addEventListener(kind, mine.hear, true));
  dragged = mine;
  return told(got);
};

// After the first moves: whether it was hit at all, and whether the browser drags it (else the page does, with its own hands).
verbs.grabbed = async () => {
  await frame();
  const { element, started } = dragged;
  if (armed?.element === element && armed.hit === false) return blocked(element, `was not where it had been: ${cover(armed.missed, element)} was hit in its place, and kept from it`);
  if (armed?.element === element && armed.hit === null) return { fault: "unknown", text: `Nobody saw it arrive at ${labelOf(element)}` };
  return { native: started !== null && !started.defaultPrevented };
};

// All that lies under an event, what is dragged itself too; seen from the document of the element it was to come down on.
function elementsAt({ clientX, clientY }) {
  const root = pointed?.getRootNode();
  return root?.elementsFromPoint ? root.elementsFromPoint(clientX, clientY) : [];
}

// The page itself moved it, or nobody did: only where the pointer was is known.
function letGo(mine) {
  if (!mine?.let) return { fault: "unknown", text: "Nobody saw it being let go" };
  if (mine.started?.defaultPrevented) return { now: "The page does not let the browser drag it; the pointer was moved there and let go." };
  if (!mine.let.over) return { now: "When it was let go, that was not under the pointer any more." };
  return {};
}

// Where it came down. `pointed` is the element it was to come down on.
verbs.dropped = async ({ native }) => {
  await frame();
  disarm();
  const mine = dragged;
  mine?.stop();
  dragged = null;
  if (!native) return letGo(mine);
  // Some take what is dropped and draw themselves anew.
  if (!mine || !pointed?.isConnected) return mine?.dropped ? {} : { fault: "unknown", text: "Nobody saw it being dropped" };
  if (mine.dropped?.includes(pointed)) return {};
  return blocked(pointed, mine.dropped ? "did not get it: something over it did" : "did not take what was dropped on it");
};
