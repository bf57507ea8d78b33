// What changed since the last look. It waits until the page rests; one that never does is looked at all the same.

// Asked again about the same act, it compares with what was there before it.
verbs.changes = async ({ most, patience, fresh, again, workers }) => {
  if (again) {
    await answersRead();
    stirred();
  }
  const asked = performance.now();
  await rest(patience);
  if (workers && !again && (await workersAnswered(asked))) await rest(patience);
  stirredAt = null;
  lookOver();
  restedUntil = 0;
  const before = again ? (look.before ?? null) : look.known;
  look.before = before;
  const { children } = await survey(document.documentElement);
  const lines = linesOf(children);
  look.known = lines;
  if (before === null || fresh) return { first: true, text: outline(lines, most), site: siteOf() };
  return { first: false, text: difference(before.map(remembered), lines.map(remembered), most), site: siteOf() };
};

// The beginning of a page nobody has seen yet.
function outline(lines, most) {
  const out = [];
  let spent = 0;
  for (const line of folded(lines)) {
    const text = written(line);
    spent += tokens(text);
    if (spent > most) break;
    out.push(text);
  }
  return out.join("\n");
}

const remembered = ({ parts }) => ({ ref: parts.find((part) => part.ref > 0)?.ref ?? 0, text: parts.map((part) => part.text).join(" ") });

function difference(before, now, most) {
  const counts = new Map();
  const byRef = new Map();
  for (const line of before) {
    counts.set(line.text, (counts.get(line.text) ?? 0) + 1);
    if (line.ref > 0) byRef.set(line.ref, line.text);
  }
  const out = [];
  const seen = new Set();
  for (const line of now) {
    if (line.ref > 0) seen.add(line.ref);
    const left = counts.get(line.text) ?? 0;
    if (left > 0) counts.set(line.text, left - 1);
    else if (byRef.has(line.ref)) {
      const former = byRef.get(line.ref);
      // Who has the focus now says who has it no more.
      if (former.replace(" focused", "") !== line.text) out.push(`~ ${line.text}`);
      counts.set(former, (counts.get(former) ?? 1) - 1);
    } else out.push(`+ ${line.text}`);
  }
  for (const line of before) {
    const left = counts.get(line.text) ?? 0;
    if (left > 0 && !(line.ref > 0 && seen.has(line.ref))) {
      counts.set(line.text, left - 1);
      out.push(`- ${line.text}`);
    }
  }
  return bounded(out, most);
}

function bounded(lines, most) {
  const out = [];
  let spent = 0;
  for (const line of lines) {
    const short = cut(line, 600);
    spent += tokens(short);
    if (spent > most) {
      out.push(`… ${lines.length - out.length} more changes; snapshot shows the page`);
      break;
    }
    out.push(short);
  }
  return out.join("\n");
}
