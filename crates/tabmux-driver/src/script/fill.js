// Fields: how each kind gets a value as a person would give it, and whether the page let it keep the value.

const DATES = /^(date|time|month|week|datetime-local)$/;
const TEXTS = /^(text|search|tel|url|email|password|number)$/;
const FORMS = { date: "2026-12-31", time: "23:59", month: "2026-12", week: "2026-W52", "datetime-local": "2026-12-31T23:59" };
const YES = /^(true|on|yes|1|checked)$/i;
const NO = /^(false|off|no|0|unchecked|)$/i;

let field = null;

// The field itself, where a label or a wrapper around one was named.
function fieldOf(element) {
  if (element.localName === "label" && element.control) return element.control;
  if (kindOfField(element)) return element;
  const inner = [...element.querySelectorAll("input:not([type=hidden]),textarea,select,[contenteditable]")].filter(kindOfField);
  return inner.length === 1 ? inner[0] : element;
}

function kindOfField(element) {
  if (element.localName === "input") {
    if (TEXTS.test(element.type)) return element.getAttribute("role") === "combobox" && element.readOnly ? "custom" : "text";
    if (DATES.test(element.type)) return "date";
    if (/^(checkbox|radio)$/.test(element.type)) return "check";
    return /^(range|color|file)$/.test(element.type) ? element.type : null;
  }
  if (element.localName === "textarea") return "text";
  if (element.localName === "select") return "select";
  if (element.isContentEditable) return "rich";
  const role = roleOf(element);
  if (/^(checkbox|switch|radio|menuitemcheckbox|menuitemradio)$/.test(role)) return "check";
  const list = /^(combobox|listbox)$/.test(role) || element.getAttribute("aria-haspopup") === "listbox";
  return list ? "custom" : null;
}

// As it was written, but for what editors write in their own way: spaces that do not break, and an end of the last line.
const asWritten = (text) => text.replaceAll("\u00a0", " ").replace(/\n$/, "");

// What is in its lines, whatever is between them.
const inLines = (text) => text.split("\n").map(oneLine).filter(Boolean).join("\n");

const valueOf = (element) => (element.isContentEditable && !("value" in element) ? element.innerText : element.value) ?? "";

// What may be said of a value.
function shown(element) {
  const value = valueOf(element);
  if (secrets.has(element)) return `${value.length} characters`;
  return JSON.stringify(value.length > 100 ? `${value.slice(0, 100)}…` : value);
}

function isChecked(element) {
  return "checked" in element ? element.checked : element.getAttribute("aria-checked") === "true";
}

// Whether it can be given a value, and the focus.
function takes(element) {
  const wrong = unfit(element, "act");
  if (wrong) return wrong;
  if (element.readOnly || element.getAttribute("aria-readonly") === "true") return blocked(element, "is read-only");
  element.scrollIntoView({ block: "nearest", inline: "nearest", behavior: "instant" });
  element.focus({ preventScroll: true });
  const root = element.getRootNode();
  const focused = root.activeElement;
  if (focused !== element && !isWithin(focused ?? element.ownerDocument, element)) return blocked(element, "does not take the focus");
  return {};
}

function selectAll(element) {
  if (typeof element.select === "function") element.select();
  else element.ownerDocument.defaultView.getSelection().selectAllChildren(element);
}

// Plans: `insert` a text in place of what is selected, press `keys`, `click`, `choose`, or all is `done`.
const PLANS = {
  text(element, value) {
    if (valueOf(element) === value) return { plan: "done" };
    selectAll(element);
    return value === "" ? { plan: "keys", keys: ["Delete"] } : { plan: "insert", text: value };
  },

  rich(element, value) {
    if (asWritten(valueOf(element)) === asWritten(value)) return { plan: "done" };
    selectAll(element);
    return value === "" ? { plan: "keys", keys: ["Delete"] } : { plan: "insert", text: value };
  },

  // One step back without a word, and forward by a key: the page hears of the value that was meant and of no other.
  range(element, value) {
    const wanted = Number(value);
    if (value.trim() === "" || Number.isNaN(wanted)) return { ...blocked(element, `takes a number, not ${JSON.stringify(value)}`), final: true };
    const before = element.value;
    element.value = wanted;
    const reached = element.value;
    if (Number(reached) !== wanted) {
      element.value = before;
      return { ...blocked(element, `takes ${element.min || 0} to ${element.max || 100} in steps of ${element.step || 1}, not ${value}`), final: true };
    }
    [field.wanted, field.before] = [reached, before];
    if (reached === before) return { plan: "done" };
    const [least, most] = [Number(element.min || 0), Number(element.max || 100)];
    const step = element.step === "any" ? (most - least) / 100 : Number(element.step || 1);
    const up = wanted - step >= least;
    element.value = up ? wanted - step : wanted + step;
    return { plan: "keys", keys: [up ? "ArrowUp" : "ArrowDown"] };
  },

  // Up and down again: the page hears of the second only.
  date(element, value) {
    const before = element.value;
    element.value = value.trim();
    if (element.value === "" && value.trim() !== "") {
      element.value = before;
      return { ...blocked(element, `takes a value such as ${FORMS[element.type]}, not ${JSON.stringify(value)}`), final: true };
    }
    [field.wanted, field.before] = [element.value, before];
    if (element.value === before) return { plan: "done" };
    if (value.trim() === "") {
      element.value = before;
      return { plan: "keys", keys: ["Backspace"] };
    }
    return { plan: "keys", keys: ["ArrowUp", "ArrowDown"] };
  },

  // What colours are picked with is no part of the page, and takes no keys. As a field for text it takes them, and is itself
  // again when the page hears that it has changed.
  color(element, value) {
    const before = element.value;
    element.value = value.trim();
    const reached = element.value;
    element.value = before;
    if (reached !== value.trim().toLowerCase()) return { ...blocked(element, `takes a colour such as #ff8800, not ${JSON.stringify(value)}`), final: true };
    field.wanted = reached;
    if (reached === before) return { plan: "done" };
    const callOff = later(() => (element.type = "color"), LONGEST_MS);
    field.leave = () => {
      callOff();
      element.type = "color";
    };
    element.type = "text";
    element.focus({ preventScroll: true });
    selectAll(element);
    return { plan: "insert", text: reached };
  },

  check(element, value) {
    const wanted = YES.test(value.trim()) || (element.type === "radio" && value === element.value) ? true : NO.test(value.trim()) ? false : null;
    if (wanted === null) return { ...blocked(element, `takes true or false, not ${JSON.stringify(value)}`), final: true };
    if (!wanted && /radio/.test(element.type ?? roleOf(element))) return { ...blocked(element, "cannot be unset: choose another of its group"), final: true };
    field.wanted = wanted;
    return { plan: isChecked(element) === wanted ? "done" : "click" };
  },

  select: (element, value) => choice(element, [value]),
  custom: () => ({ plan: "choose" }),
  file: (element) => ({ ...blocked(element, "takes files: give them with upload_file"), final: true }),
};

// Whether the field has the value that was meant.
function holds({ element, kind, wanted }) {
  if (kind === "check") return isChecked(element) === wanted;
  if (kind === "select") return [...element.selectedOptions].map((option) => option.index).join() === [...wanted].sort((a, b) => a - b).join();
  if (kind === "file") return element.files.length === wanted;
  return valueOf(element) === wanted || (!secrets.has(element) && inLines(valueOf(element)) === inLines(wanted));
}

// Reports that the page heard of the value, in case it goes elsewhere for it; keeps from it a value that a field has to pass
// through; and where the focus went elsewhere, keeps from that field what was not meant for it.
function follow(token, mute) {
  stirred();
  const mine = field;
  const view = mine.element.ownerDocument.defaultView;
  const hear = (event) => {
    const [target] = event.composedPath();
    if (event.type === "beforeinput") {
      if (!event.isTrusted || isWithin(target, seenAs(mine.element)) || isWithin(mine.element, target)) return;
      mine.stray = target;
      return holdBack(event);
    }
    if (target !== seenAs(mine.element)) return;
    if (event.type === "change" && mine.kind === "color") mine.element.type = "color";
    if (holds(mine)) {
      mine.heard = true;
      stirredAt = performance.now();
      globalThis.tabmuxHeard?.(JSON.stringify({ token }));
    } else if (mute) event.stopImmediatePropagation();
  };
  const kinds = ["beforeinput", "input", "change"];
  for (const kind of kinds) view.addEventListener(kind, hear, true);
  const before = mine.leave;
  mine.leave = () => {
    before();
    unheard(view, kinds, hear);
  };
}

verbs.fill = async ({ value, token, ...wanted }) => {
  field?.leave();
  const got = await ready(wanted, async (element, attempt) => {
    const own = fieldOf(element);
    const kind = kindOfField(own);
    if (!kind) return { ...blocked(element, "takes no value"), final: true };
    field = { element: own, kind, wanted: value, selector: wanted.selector, leave: () => {} };
    if (kind === "check") {
      const plan = PLANS.check(own, value);
      return plan.plan === "click" ? { ...(await reach(standIn(own), "act", true, attempt)), ...plan } : plan;
    }
    const wrong = kind === "file" || kind === "custom" ? {} : takes(own);
    return wrong.fault ? wrong : PLANS[kind](own, value);
  });
  if (got.fault) return got;
  const { element } = field;
  if (got.plan === "click") arm(standIn(element), { token: 0, ends: "click" });
  if (got.plan !== "choose") follow(token, field.kind === "date");
  const { plan, text, keys, indexes } = got;
  return { ...told({ ...got, element }), plan, text, keys, indexes };
};

const letters = (text) => text.replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();

// Whether all of a text is in another in its order, whatever is between.
function threads(text, other) {
  let at = 0;
  for (const letter of other) if (letter === text[at]) at++;
  return at >= text.length;
}

// Whether the page only writes it in its own way, 1234 as 12-34. The sign and the point of a number are no matter of writing, and
// of a secret every letter counts.
function rewritten({ element }, value, wanted) {
  if (secrets.has(element) || letters(wanted) === "" || letters(value) !== letters(wanted)) return false;
  return threads(oneLine(wanted).toLowerCase(), value.toLowerCase()) || !/^[-+\d.,\s]+$/.test(wanted);
}

// Whether the value stayed, once the page has had its say.
verbs.filled = async () => {
  if (field?.kind === "color" && field.element.type === "text") {
    field.element.blur();
    field.element.focus({ preventScroll: true });
  }
  await rest();
  disarm();
  if (!field) return { fault: "unknown", text: "The page forgot what it was asked" };
  const { kind, wanted } = field;
  field.leave();
  const element = stillThere(field);
  if (!element) return { fault: "unknown", text: "The field went away when it was given its value" };
  if (kind === "check") {
    return isChecked(element) === wanted ? { now: wanted ? "It is on now." : "It is off now." } : blocked(element, `stayed ${wanted ? "off" : "on"}: the page set it back`);
  }
  if (kind === "select") return chosen(field);
  if (/^(date|range)$/.test(kind) && !field.heard && field.before !== wanted) {
    element.value = field.before;
    return blocked(element, `did not take the value: the page keeps the keys from it, and it is ${shown(element)} again`);
  }
  const value = valueOf(element);
  if (holds({ ...field, element })) return { now: `It is ${shown(element)} now.` };
  if (rewritten(field, value, wanted)) return { now: `The page made it ${shown(element)}.` };
  if (field.stray) return blocked(element, `lost the focus before its value came: ${named(field.stray, element)} had it, and was kept from it`);
  const most = element.maxLength > 0 && wanted.length > element.maxLength ? ` It takes ${element.maxLength} characters.` : "";
  return blocked(element, `did not keep the value: it is ${shown(element)} now.${most}`);
};

// The field, or the one that a page has drawn in its place; null where nobody knows which that is.
function stillThere({ element, kind, selector }) {
  if (element.isConnected) return element;
  if (!selector || selector.by === "ref") return null;
  const found = find(selector).element;
  const anew = found ? fieldOf(found) : null;
  return anew && kindOfField(anew) === kind ? anew : null;
}

// Whether this is still the document that has the field.
verbs.holds = () => field !== null;

// The input that files are for; it may be hidden, as most are.
verbs.input = ({ selector, files, token }) => {
  const { element, fault, text } = find(selector);
  if (fault) return fault === "none" ? { fault, near: nearest(selector) } : { fault, text };
  const own = fieldOf(element);
  if (own.type !== "file") return { fault: "files", text: `${labelOf(element)} takes no files` };
  if (own.matches(":disabled")) return { fault: "files", text: `${labelOf(element)} is disabled` };
  if (!own.multiple && files > 1) return { fault: "files", text: "The input takes one file" };
  field?.leave();
  field = { element: own, kind: "file", wanted: files, leave: () => {} };
  follow(token, false);
  return { label: labelOf(element), matched: 1 };
};

// What the page did with its files. Many take them and empty the input, so that the same can be given again.
verbs.given = async () => {
  await rest();
  if (field?.kind !== "file") return { fault: "unknown", text: "The page forgot what it was asked" };
  field.leave();
  const { element, heard } = field;
  if (element.isConnected && holds(field)) return heard ? {} : { now: "Nobody saw the page hear of it." };
  if (!heard) return { fault: "unknown", text: "The input went away, or was emptied, before the page heard of it" };
  return { now: element.isConnected ? "The page heard of it and emptied the input again." : "The page heard of it and took the input away." };
};

// The field itself, for who can take it: not data.
verbs.field = () => field?.element;
