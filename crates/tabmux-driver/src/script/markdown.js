// Writes what is shown in an element as Markdown blocks. What is not shown is not written; of fields, what is in them, but for
// passwords. Large pages are walked in slices, so that the page goes on meanwhile.
const WALK_MS = 40;
const DEEPEST_READ = 400;
const LONGEST_ADDRESS = 200;
// What stands among words, whatever is in it.
const WORDLIKE = /^(button|input|select|textarea|img|svg|math)$/;

const breathe = () => globalThis.scheduler?.yield?.() ?? new Promise((resolve) => later(resolve));
const tidy = (text) => text.replace(/[ \t\u00a0]+/g, " ").replace(/ ?\n ?/g, "\n").replace(/\n{3,}/g, "\n\n").trim();
const oneRow = (text) => tidy(text).replace(/\n+/g, " ");
const wrapped = (text, mark) => (text.trim() === "" ? text : text.replace(/^(\s*)(.*?)(\s*)$/s, `$1${mark}$2${mark}$3`));

// An address as short as it still leads there; "" for what leads nowhere else.
function addressOf(address) {
  const url = URL.parse(address, document.baseURI);
  if (url === null || !/^(https?|mailto|tel|ftp):$/.test(url.protocol)) return "";
  const here = url.origin === location.origin;
  if (here && url.pathname === location.pathname && url.search === location.search && url.hash !== "") return "";
  const whole = here ? `${url.pathname}${url.search}${url.hash}` : url.href;
  return (whole.length <= LONGEST_ADDRESS ? whole : `${whole.slice(0, LONGEST_ADDRESS)}…`).replace(/[()\s]/g, encodeURIComponent);
}

function nodesIn(node) {
  if (node.localName === "slot" && node.assignedNodes().length > 0) return node.assignedNodes();
  if (node.localName === "details" && !node.open) return [...node.children].filter((child) => child.localName === "summary").slice(0, 1);
  return (shadowOf(node) ?? node).childNodes;
}

class Article {
  // `sparing` leaves out what is not for reading.
  constructor(sparing) {
    this.sparing = sparing;
    this.blocks = [];
    this.frames = [];
    this.out = new Set();
    this.broken = new WeakMap();
    this.until = performance.now() + WALK_MS;
    this.depth = 0;
  }

  async add(element) {
    const place = { first: "", rest: "", list: 0 };
    // Among words a drawing says nothing, but one that is all somebody reads does.
    if (element.localName === "svg") await this.children(element, place);
    else if (this.isBlock(element) || this.holdsBlocks(element)) await this.block(element, place);
    else this.push(place, tidy(this.inline(element)));
  }

  push(place, text, frame = { open: 0, close: 0 }) {
    if (text === "") return;
    const lines = text.split("\n").map((line, at) => `${at === 0 ? place.first : place.rest}${line}`.trimEnd());
    // What a list's first line was written with, its others are only indented by.
    this.blocks.push({ text: lines.join("\n"), tight: place.list > 1 || (place.list === 1 && place.begun === true), ...frame });
    place.first = place.rest;
    for (let outer = place; outer; outer = outer.outer) [outer.first, outer.begun] = [outer.rest, true];
  }

  isLeftOut(element, tag) {
    if (NEVER.has(tag) || element.getAttribute("aria-hidden") === "true") return true;
    if (tag !== "slot" && !element.checkVisibility() && getComputedStyle(element).display !== "contents") return true;
    if (!this.sparing) return false;
    const what = roleOf(element) === "navigation" ? "navigation" : isCookieNotice(element) ? "a cookie notice" : "";
    if (what !== "") this.out.add(what);
    return what !== "";
  }

  isBlock(element) {
    return !WORDLIKE.test(element.localName) && !/^(inline|contents|ruby|none)/.test(getComputedStyle(element).display);
  }

  // Whether something inside begins a line of its own.
  holdsBlocks(element) {
    if (WORDLIKE.test(element.localName)) return false;
    let holds = this.broken.get(element);
    if (holds === undefined) {
      this.broken.set(element, false);
      const inner = /^(iframe|frame)$/.test(element.localName) ? [element] : [...nodesIn(element)].filter((node) => node.nodeType === 1);
      holds = inner[0] === element || (++this.depth < DEEPEST_READ && inner.some((child) => this.isBlock(child) || this.holdsBlocks(child)));
      this.depth = Math.max(0, this.depth - 1);
      this.broken.set(element, holds);
    }
    return holds;
  }

  // Everything in it: runs of words become paragraphs between the blocks.
  async children(element, place, level = 0) {
    let run = "";
    const flush = () => {
      this.push(place, tidy(run));
      run = "";
    };
    for (const node of nodesIn(element)) {
      if (performance.now() > this.until) {
        await breathe();
        this.until = performance.now() + WALK_MS;
      }
      if (node.nodeType === 3) run += this.words(node);
      if (node.nodeType !== 1) continue;
      if (this.isLeftOut(node, node.localName)) continue;
      if (this.isBlock(node) || this.holdsBlocks(node)) {
        flush();
        await this.block(node, place, level + 1);
      } else run += this.inline(node, true);
    }
    flush();
  }

  async block(element, place, level = 0) {
    // What is nested beyond all measure is told flat.
    if (level > DEEPEST_READ) return this.push(place, tidy(element.textContent));
    const tag = element.localName;
    const role = roleOf(element);
    if (role === "heading" || /^h[1-6]$/.test(tag)) {
      const depth = Number.parseInt(element.getAttribute("aria-level") ?? tag[1], 10) || 2;
      const words = oneRow([...nodesIn(element)].map((node) => this.piece(node)).join(""));
      return words === "" ? undefined : this.push(place, `${"#".repeat(Math.min(Math.max(depth, 1), 6))} ${words}`);
    }
    switch (tag) {
      case "ul": case "ol": case "menu":
        return this.list(element, place, level);
      case "dt":
        return this.push(place, wrapped(oneRow(this.inlineOf(element)), "**"));
      case "dd":
        return this.children(element, { first: `${place.first}: `, rest: `${place.rest}  `, list: 2, outer: place }, level);
      case "blockquote":
        return this.children(element, { first: `${place.first}> `, rest: `${place.rest}> `, list: place.list, outer: place }, level);
      case "pre":
        return this.code(element, place);
      case "hr":
        return this.push(place, "---");
      case "table":
        return this.table(element, place, level);
      case "iframe": case "frame":
        return this.frame(element, place, level);
      case "a":
        return this.card(element, place, level);
      default:
        return this.children(element, place, level);
    }
  }

  async list(element, place, level) {
    let number = element.localName === "ol" ? element.start : 0;
    const own = { ...place, list: place.list + 1, begun: false };
    for (const item of nodesIn(element)) {
      if (item.nodeType !== 1 || this.isLeftOut(item, item.localName)) continue;
      if (item.localName === "li" && item.hasAttribute("value") && number > 0) number = item.value;
      const mark = element.localName === "ol" ? `${number++}. ` : "- ";
      const inner = { first: `${own.first}${mark}`, rest: `${own.rest}${" ".repeat(mark.length)}`, list: own.list, begun: own.begun };
      const before = this.blocks.length;
      await this.children(item, inner, level + 1);
      if (this.blocks.length > before) [own.first, own.begun] = [own.rest, true];
    }
    if (own.begun) for (let outer = place; outer; outer = outer.outer) [outer.first, outer.begun] = [outer.rest, true];
  }

  code(element, place) {
    const text = element.innerText.replace(/\n+$/, "");
    if (text.trim() === "") return;
    const marked = `${element.className} ${element.querySelector("code")?.className ?? ""}`;
    const language = /\blang(?:uage)?-([\w+#-]{1,20})/.exec(marked)?.[1] ?? "";
    const ticks = "`".repeat(Math.max(3, ...(text.match(/`+/g) ?? []).map((run) => run.length + 1)));
    this.push(place, `${ticks}${language}\n${text}\n${ticks}`, { open: 1, close: 1 });
  }

  // Rows of cells, where it is a table of data; one that only places things is what is in it.
  async table(element, place, level) {
    const rows = [...element.rows].filter((row) => row.checkVisibility());
    const width = Math.max(0, ...rows.map((row) => [...row.cells].reduce((sum, cell) => sum + cell.colSpan, 0)));
    const data = rows.length > 1 && width > 1 && width <= 50 && !/^(none|presentation)$/.test(element.getAttribute("role") ?? "");
    if (!data || element.querySelector("table,ul,ol,pre,h1,h2,h3,iframe")) return this.children(element, place, level);
    if (element.caption) this.push(place, wrapped(oneRow(this.inlineOf(element.caption)), "**"));
    const cells = (row) => [...row.cells].flatMap((cell) => [oneRow(this.flat(cell)).replaceAll("|", "\\|"), ...Array(cell.colSpan - 1).fill("")]);
    const line = (texts) => `| ${[...texts, ...Array(width - texts.length).fill("")].join(" | ")} |`;
    const lines = rows.map((row) => line(cells(row)));
    lines.splice(1, 0, `|${" --- |".repeat(width)}`);
    this.push(place, lines.join("\n"), { open: 2, close: 0 });
  }

  async frame(element, place, level) {
    const inside = documentInside(element);
    if (inside?.body) return this.children(inside.body, place, level + 1);
    const view = element.ownerDocument.defaultView;
    const at = Array.from({ length: view.length }, (_, at) => view[at]).indexOf(element.contentWindow);
    this.frames.push({ path: [...pathOf(view), at] });
  }

  // A link around blocks: its words lead there, if they are few.
  async card(element, place, level) {
    const address = addressOf(element.getAttribute("href") ?? "");
    const words = oneRow(this.flat(element));
    if (address === "" || words === "" || words.length > 200 || /[[\]]/.test(words)) return this.children(element, place, level);
    this.push(place, `[${words}](${address})`);
  }

  words(node) {
    const text = node.data;
    const within = node.parentElement;
    if (text === "" || within === null) return /\S/.test(text) ? text : " ";
    const style = getComputedStyle(within);
    if (style.visibility !== "visible") return "";
    const shown = /\S/.test(text) ? asShown(text, within) : text;
    return style.whiteSpace.startsWith("pre") ? shown.replace(/[ \t]+/g, " ") : shown.replace(/\s+/g, " ");
  }

  piece(node) {
    if (node.nodeType === 3) return this.words(node);
    return node.nodeType === 1 ? this.inline(node) : "";
  }

  inlineOf(element) {
    return [...nodesIn(element)].map((node) => this.piece(node)).join("");
  }

  // Everything in it on one line, also blocks.
  flat(element) {
    const part = (node) => {
      if (node.nodeType !== 1) return this.piece(node);
      return this.holdsBlocks(node) && !this.isLeftOut(node, node.localName) ? ` ${this.flat(node)} ` : this.inline(node);
    };
    return [...nodesIn(element)].map(part).join("");
  }

  // `kept` was asked already whether it is left out.
  inline(element, kept = false) {
    const tag = element.localName;
    if (tag === "br") return "\n";
    if (!kept && this.isLeftOut(element, tag)) return "";
    if (this.isBlock(element)) return ` ${this.inlineOf(element)} `;
    switch (tag) {
      case "a":
        return this.link(element);
      case "img":
        return this.image(element);
      case "svg": case "video": case "audio": case "canvas": case "object": case "embed":
        return "";
      case "math":
        return element.getAttribute("alttext") ?? element.textContent;
      case "input":
        if (/^(checkbox|radio)$/.test(element.type)) return element.checked ? " [x] " : " [ ] ";
        return /^(hidden|file|color|range)$/.test(element.type) || secrets.has(element) ? "" : ` ${element.value} `;
      case "textarea":
        return secrets.has(element) ? "" : ` ${element.value} `;
      case "select":
        return ` ${[...element.selectedOptions].map((option) => option.label).join(", ")} `;
      default:
        return this.dressed(element, tag);
    }
  }

  dressed(element, tag) {
    const text = this.inlineOf(element);
    switch (tag) {
      case "b": case "strong":
        return wrapped(text, "**");
      case "i": case "em": case "cite": case "var":
        return wrapped(text, "*");
      case "s": case "del":
        return wrapped(text, "~~");
      case "code": case "kbd": case "samp": case "tt":
        return wrapped(text, text.includes("`") ? "``" : "`");
      case "q":
        return `“${text}”`;
      case "sup":
        return /^[\w+−–-]{1,12}$/.test(text.trim()) && element.querySelector("a") === null ? `^${text.trim()}` : text;
      default:
        return /^inline-/.test(getComputedStyle(element).display) ? ` ${text} ` : text;
    }
  }

  link(element) {
    const text = this.inlineOf(element);
    const address = addressOf(element.getAttribute("href") ?? "");
    // Marks that lead to the heading they stand at.
    if (address === "" && /^[\s¶#§🔗]*$/u.test(text)) return "";
    if (address === "" || text.trim() === "") return text;
    return text.replace(/^(\s*)(.*?)(\s*)$/s, (_, before, words, after) => `${before}[${words}](${address})${after}`);
  }

  image(element) {
    const alt = plain(nameOf(element, "image"));
    if (alt === "") return "";
    const address = addressOf(element.currentSrc || element.getAttribute("src") || "");
    return `![${alt}]${address === "" ? "" : `(${address})`}`;
  }
}
