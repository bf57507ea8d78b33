// What is on the page, for somebody who reads. The lines of the last look are kept: for going on where its budget ended, and for
// saying later what changed since.
let wholeSelects = false;
const look = { number: 0, shown: [], known: null };

// What is there before something is done to a page that nobody has looked at: what changes then can be told all the same.
verbs.notice = async () => {
  look.known ??= linesOf((await survey(document.documentElement)).children);
};

verbs.snapshot = async (wish) => {
  if (wish.cursor !== undefined) return goOn(wish);
  let root = document.documentElement;
  if (wish.scope !== undefined) {
    const { element, fault, text, near } = verbs.find(wish.scope);
    const hides = fault === "none" && mayHide();
    if (fault !== undefined) return { problem: fault, text, near, hides };
    root = element;
  }
  wholeSelects = wish.fold === "none";
  suspects.list.clear();
  const { children, frames } = await survey(root);
  let lines = linesOf(children);
  if (wish.scope === undefined) look.known = lines;
  lines = narrowed(lines, wish);
  if (lines === null) return { problem: "bad find", hides: false };
  if (wish.fold !== "none" && wish.find === undefined && wish.from === undefined) lines = folded(lines);
  look.number += 1;
  look.shown = lines;
  return { ...slice(0, wish.budget), frames, path: framePath(globalThis), hides: suspects.list.size > 0 };
};

function goOn(wish) {
  const [number, at] = wish.cursor.split(":").map(Number);
  if (number !== look.number || !(at < look.shown.length)) return { problem: "stale cursor", hides: false };
  return { ...slice(at, wish.budget), frames: [], path: framePath(globalThis), hides: false };
}

function slice(from, budget) {
  const { shown } = look;
  const texts = [];
  let end = from;
  for (let spent = 0; end < shown.length; end++) {
    const text = written(shown[end]);
    spent += tokens(text);
    if (spent > budget && end > from) break;
    texts.push(text);
  }
  return { text: texts.join("\n"), cursor: end < shown.length ? `${look.number}:${end}` : null, left: shown.length - end };
}

function narrowed(lines, { interactive, depth, find, from, to }) {
  if (from !== undefined) {
    const inside = (line) => line.parts.some((part) => part.ref >= from && part.ref <= to);
    const first = lines.findIndex(inside);
    lines = first < 0 ? [] : lines.slice(first, lines.findLastIndex(inside) + 1);
  }
  if (interactive) {
    // What has no name of its own is called by its words.
    const words = (part, before) => part.role === "" && before?.ref > 0 && !before.text.includes('"');
    const active = (line) => ({ ...line, depth: 0, parts: line.parts.filter((part, at, all) => part.ref > 0 || words(part, all[at - 1])) });
    lines = lines.map(active).filter((line) => line.parts.length > 0);
  }
  if (depth !== undefined) lines = shallow(lines, depth);
  return find === undefined ? lines : found(lines, find);
}

function shallow(lines, depth) {
  const out = [];
  let below = 0;
  const say = () => {
    if (below > 0) out.push({ depth, parts: [{ text: `… ${below} more lines below`, role: "fold", ref: 0 }], shape: -1 });
    below = 0;
  };
  for (const line of lines) {
    if (line.depth < depth) {
      say();
      out.push(line);
    } else below++;
  }
  say();
  return out;
}

// What matches, and what it is in.
function found(lines, find) {
  let matches;
  const pattern = /^\/(.+)\/([a-z]*)$/s.exec(find);
  if (pattern === null) {
    const text = plain(find).toLowerCase();
    matches = (line) => line.toLowerCase().includes(text);
  } else {
    try {
      const expression = new RegExp(pattern[1], pattern[2].replace(/[gy]/g, ""));
      matches = (line) => expression.test(line);
    } catch {
      return null;
    }
  }
  const kept = new Set();
  lines.forEach((line, at) => {
    if (!matches(written(line))) return;
    kept.add(at);
    let depth = line.depth;
    for (let above = at - 1; above >= 0 && depth > 0; above--) {
      if (lines[above].depth < depth) {
        kept.add(above);
        depth = lines[above].depth;
      }
    }
  });
  return lines.filter((_, at) => kept.has(at));
}
