// What an element is, as ARIA and HTML say and Chromium reads it: `roleOf(element)`. "" is something without a meaning of its own.
const INPUT_ROLES = {
  __proto__: null,
  button: "button", submit: "button", reset: "button", image: "button", file: "button",
  checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox",
  color: "colorwell", date: "date", month: "month", week: "week", time: "time", "datetime-local": "datetime", hidden: "",
};

const inputRole = (element) => {
  const type = element.type;
  const role = INPUT_ROLES[type] ?? "textbox";
  if (role === "textbox" || role === "searchbox") return element.list ? "combobox" : role;
  return role;
};

// Of what stands in a section, header and footer are not the page's.
const inSection = (element) => element.parentElement?.closest("article, aside, main, nav, section, [role=article], [role=main]") != null;
const labelled = (element) => element.hasAttribute("aria-label") || element.hasAttribute("aria-labelledby") || element.hasAttribute("title");

const TAG_ROLES = {
  __proto__: null,
  a: (element) => (element.hasAttribute("href") ? "link" : ""),
  area: (element) => (element.hasAttribute("href") ? "link" : ""),
  article: "article", aside: "complementary", audio: "audio", blockquote: "blockquote", button: "button", canvas: "canvas",
  caption: "caption", datalist: "", dd: "definition", details: "group", dialog: "dialog", dl: "list", dt: "term",
  embed: "embed", fieldset: "group", figure: "figure",
  footer: (element) => (inSection(element) ? "" : "contentinfo"),
  form: (element) => (labelled(element) ? "form" : ""),
  frame: "iframe", h1: "heading", h2: "heading", h3: "heading", h4: "heading", h5: "heading", h6: "heading",
  header: (element) => (inSection(element) ? "" : "banner"),
  hr: "separator", iframe: "iframe",
  img: (element) => (element.getAttribute("alt") === "" && !labelled(element) ? "" : "image"),
  input: inputRole, li: "listitem", main: "main", math: "math", menu: "list", meter: "meter", nav: "navigation",
  object: "embed", ol: "list", optgroup: "group", option: "option", output: "status", p: "paragraph", progress: "progressbar",
  search: "search",
  section: (element) => (labelled(element) ? "region" : ""),
  select: (element) => (element.multiple || element.size > 1 ? "listbox" : "combobox"),
  summary: (element) => (element.parentElement?.localName === "details" ? "disclosure" : ""),
  svg: (element) => (labelled(element) || element.querySelector(":scope > title") ? "image" : ""),
  table: "table", tbody: "rowgroup", td: "cell", textarea: "textbox", tfoot: "rowgroup",
  th: (element) => (element.scope === "row" || element.scope === "rowgroup" ? "rowheader" : "columnheader"),
  thead: "rowgroup", tr: "row", ul: "list", video: "video",
};

const KNOWN_ROLES = new Set(
  ("alert alertdialog application article banner blockquote button caption cell checkbox code columnheader combobox comment complementary " +
    "contentinfo definition deletion dialog directory document emphasis feed figure form generic grid gridcell group heading image img " +
    "insertion link list listbox listitem log main mark marquee math menu menubar menuitem menuitemcheckbox menuitemradio meter navigation none " +
    "note option paragraph presentation progressbar radio radiogroup region row rowgroup rowheader scrollbar search searchbox separator " +
    "slider spinbutton status strong subscript suggestion superscript switch tab table tablist tabpanel term textbox time timer toolbar " +
    "tooltip tree treegrid treeitem doc-backlink doc-biblioref doc-glossref doc-noteref").split(" "),
);

// What a person can act upon.
const ACTIVE_ROLES = new Set(
  ("link button textbox searchbox checkbox radio switch combobox listbox option slider spinbutton tab menuitem menuitemcheckbox " +
    "menuitemradio treeitem disclosure colorwell date month week time datetime scrollbar doc-backlink doc-biblioref doc-glossref doc-noteref").split(" "),
);

// What is named by what stands in it.
const NAMED_BY_CONTENT = new Set(
  ("link button checkbox radio switch option tab menuitem menuitemcheckbox menuitemradio treeitem disclosure heading tooltip " +
    "cell gridcell columnheader rowheader row doc-backlink doc-biblioref doc-glossref doc-noteref").split(" "),
);

const tagRole = (element) => {
  const role = TAG_ROLES[element.localName];
  return typeof role === "function" ? role(element) : (role ?? "");
};

const tabStop = (element) => element.hasAttribute("tabindex") && Number.isInteger(Number.parseInt(element.getAttribute("tabindex"), 10));
const editing = (element) => {
  const value = element.getAttribute("contenteditable");
  return value !== null && value.toLowerCase() !== "false";
};
const focusable = (element) =>
  tabStop(element) || editing(element) || (ACTIVE_ROLES.has(tagRole(element)) && !element.disabled) || element.localName === "iframe";

function roleOf(element) {
  const given = element.getAttribute("role");
  if (given === null) return editing(element) && tagRole(element) === "" ? "textbox" : tagRole(element);
  for (const word of given.toLowerCase().split(/\s+/)) {
    if (!KNOWN_ROLES.has(word)) continue;
    if (word === "none" || word === "presentation") {
      // What can be reached with the keyboard keeps its meaning.
      return focusable(element) ? tagRole(element) : "";
    }
    if (word === "generic") return "";
    return word === "img" ? "image" : word;
  }
  return tagRole(element);
}
