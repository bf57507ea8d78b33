// Writes the tree as lines: what stands together on one, what is below indented. A page's words are always in JSON's quotes, so
// that nothing in a page can look like a line of ours.
const FOLD_ROWS = 20;
const FOLD_TOKENS = 1000;
const LONGEST_PERIOD = 8;

function linesOf(children) {
  const lines = [];
  const shapes = new Map();
  const push = (depth, parts) => {
    // A cell that is only there to hold something larger is no row.
    if (parts.length === 1 && parts[0].role === "cell" && parts[0].text === "|") return;
    const shape = `${depth} ${parts.map((part) => part.role).join(" ")}`;
    let number = shapes.get(shape);
    if (number === undefined) shapes.set(shape, (number = shapes.size));
    lines.push({ depth, parts, shape: number });
  };
  const write = (children, depth, head) => {
    const line = { parts: head === null ? [] : [head], depth, only: head !== null };
    const flush = () => {
      if (line.parts.length > 0) push(line.depth, line.parts);
      if (line.only) line.depth++;
      line.only = false;
      line.parts = [];
    };
    const add = (children) => {
      for (const child of children) {
        if (child === BREAK) {
          if (line.parts.length > (line.only ? 1 : 0)) flush();
        } else if (typeof child === "string") {
          const text = child.trim();
          if (text !== "") {
            const before = line.parts.at(-1);
            // What stands beside a control without a name is not its name.
            if (before?.ref > 0 && before.text === `e${before.ref} ${before.role}` && ACTIVE_ROLES.has(before.role)) before.text += ' ""';
            line.parts.push({ text: quote(cut(text, LONGEST_TEXT)), role: "", ref: 0 });
          }
        } else if (child.inline) {
          line.parts.push({ text: child.head, role: child.role, ref: child.ref });
          add(child.children);
        } else if (child.head !== "" || child.children.length > 0) {
          flush();
          write(child.children, line.depth, child.head === "" ? null : { text: child.head, role: child.role, ref: child.ref });
        }
      }
    };
    add(children);
    // A mark alone, of an item with nothing in it, says nothing.
    if (!(line.only && head.ref === 0 && (head.text === "-" || SECTIONS.has(head.role)) && line.parts.length === 1)) flush();
  };
  write(children, 0, null);
  return lines;
}

const written = (line) => `${" ".repeat(line.depth)}${line.parts.map((part) => part.text).join(" ")}`;

const refsIn = (lines) => lines.flatMap((line) => line.parts.filter((part) => part.ref > 0).map((part) => part.ref));

// How often the lines from here on repeat themselves, and after how many of them.
function repetition(lines, from) {
  for (let period = 1; period <= LONGEST_PERIOD; period++) {
    let end = from + period;
    while (end < lines.length && lines[end].shape === lines[end - period].shape) end++;
    const rows = Math.floor((end - from) / period);
    if (rows >= FOLD_ROWS && lines[from].depth <= Math.min(...lines.slice(from, from + period).map((line) => line.depth))) return { period, rows };
  }
  return null;
}

function costsMore(lines, from, to, than) {
  for (let spent = 0; from < to; from++) {
    spent += tokens(written(lines[from]));
    if (spent >= than) return true;
  }
  return false;
}

// Leaves out what is like its neighbours, and says so. Plain paragraphs are no rows.
function folded(lines) {
  const out = [];
  for (let at = 0; at < lines.length; ) {
    const first = lines[at].parts[0];
    const isRow = lines[at].parts.some((part) => part.ref > 0 || part.role === "cell" || part.role === "listitem");
    const found = isRow && first ? repetition(lines, at) : null;
    const length = found === null ? 0 : found.period * found.rows;
    if (found === null || !costsMore(lines, at, at + length, FOLD_TOKENS)) {
      out.push(...lines.slice(at, at + Math.max(length, 1)));
      at += Math.max(length, 1);
      continue;
    }
    const hidden = lines.slice(at + 3 * found.period, at + length - found.period);
    const numbers = refsIn(hidden);
    const range = numbers.length === 0 ? "" : `, e${numbers.reduce((a, b) => Math.min(a, b))}–e${numbers.reduce((a, b) => Math.max(a, b))}`;
    const text = `… ${found.rows - 4} more rows like this${range}`;
    out.push(...lines.slice(at, at + 3 * found.period));
    out.push({ depth: lines[at].depth, parts: [{ text, role: "fold", ref: 0 }], shape: -1 });
    out.push(...lines.slice(at + length - found.period, at + length));
    at += length;
  }
  return out;
}
