// Reads the page as an article, a budget at a time: what is left is kept for whoever goes on with the cursor.
// A cursor of a former document is none of this one.
const reading = { number: Math.floor(Math.random() * 1e6), blocks: [] };

verbs.read = async ({ selector, cursor, budget, opened }) => {
  if (cursor !== undefined) {
    const [number, at] = cursor.split(":").map(Number);
    if (number !== reading.number || !(at < reading.blocks.length)) return { fault: "cursor" };
    return { ...portion(at, budget), frames: [], path: pathOf(globalThis), out: [] };
  }
  const got = selector === undefined ? { element: mainContent() } : find(selector);
  const hidden = !opened && mayHide();
  if (got.fault) return { fault: got.fault, text: got.text ?? "", near: got.fault === "none" ? nearest(selector) : [], hidden };
  if (hidden) return { hidden };
  const written = new Article(selector === undefined);
  if (selector === undefined && got.element !== wholeContent()) {
    const heading = headingFor(got.element);
    if (heading) await written.add(heading);
    for (const element of besides(got.element)) await written.add(element);
    written.out.add("all around the main content");
  }
  if (got.element !== null) await written.add(got.element);
  reading.number += 1;
  reading.blocks = written.blocks.flatMap((block) => pieces(block, budget));
  return { ...portion(0, budget), frames: written.frames, path: pathOf(globalThis), out: [...written.out] };
};

// What is too long for one reply is cut between lines; what opens and closes it stands around each piece.
function pieces(block, budget) {
  if (tokens(block.text) <= budget) return [block];
  const most = budget * 3;
  const lines = block.text.split("\n").flatMap((line) => {
    const parts = line.match(new RegExp(`.{1,${most}}(?=\\s|$)|.{1,${most}}`, "gsu")) ?? [""];
    return parts.map((part, at) => `${at === 0 ? "" : "…"}${part}${at === parts.length - 1 ? "" : "…"}`);
  });
  const open = lines.splice(0, block.open);
  const close = block.close > 0 ? lines.splice(-block.close) : [];
  const out = [];
  let piece = [];
  let spent = 0;
  for (const line of lines) {
    const cost = tokens(line) + 1;
    if (piece.length > 0 && spent + cost > budget) {
      out.push(piece);
      [piece, spent] = [[], 0];
    }
    piece.push(line);
    spent += cost;
  }
  out.push(piece);
  return out.map((piece, at) => ({ ...block, text: [...open, ...piece, ...close].join("\n"), tight: at === 0 ? block.tight : open.length === 0 }));
}

function portion(from, budget) {
  let text = "";
  let spent = 0;
  let at = from;
  for (; at < reading.blocks.length; at++) {
    const block = reading.blocks[at];
    const cost = tokens(block.text) + 1;
    if (at > from && spent + cost > budget) break;
    text += at === from ? block.text : `${block.tight ? "\n" : "\n\n"}${block.text}`;
    spent += cost;
  }
  const left = reading.blocks.length - at;
  return { text, cursor: left > 0 ? `${reading.number}:${at}` : null, left };
}

// Which frame of which frame this is.
function pathOf(view) {
  const path = [];
  for (let inner = view; inner !== inner.parent; inner = inner.parent) {
    path.unshift(Array.prototype.findIndex.call(Array.from({ length: inner.parent.length }, (_, at) => inner.parent[at]), (frame) => frame === inner));
  }
  return path;
}
