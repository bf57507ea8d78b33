// Lists to choose from: the browser's own, and those that pages make of other elements.

const quoted = (texts) => texts.slice(0, 12).map((text) => JSON.stringify(shortened(oneLine(text)))).join(", ") + (texts.length > 12 ? ", …" : "");

// The option that is called so: exactly, else in letters of either case, else in part.
function called(options, wanted, words) {
  const plain = oneLine(wanted);
  const tests = [
    (text) => text === plain,
    (text) => text.toLowerCase() === plain.toLowerCase(),
    (text) => plain !== "" && text.toLowerCase().includes(plain.toLowerCase()),
  ];
  for (const test of tests) {
    const found = options.find((option) => words(option).some((text) => test(oneLine(text))));
    if (found) return found;
  }
  return null;
}

function choice(element, wanted) {
  const options = [...element.options];
  const indexes = [];
  for (const one of wanted) {
    const option = called(options, one, (option) => [option.label || option.text, option.value, option.text]);
    if (!option) return { ...blocked(element, `has no option ${JSON.stringify(one)}; it has ${quoted(options.map((option) => option.label))}`), final: true };
    if (option.disabled || option.closest("optgroup:disabled")) return blocked(element, `has the option ${JSON.stringify(one)}, but it is disabled`);
    indexes.push(option.index);
  }
  field.wanted = indexes;
  const now = [...element.selectedOptions].map((option) => option.index);
  if (now.join() === [...indexes].sort((a, b) => a - b).join()) return { plan: "done" };
  if (element.multiple) return { plan: "options", indexes };
  if (indexes.length !== 1) return { ...blocked(element, "takes one option"), final: true };
  // To the one before it without a word, and down by a key.
  element.selectedIndex = indexes[0] - 1;
  return { plan: "keys", keys: ["ArrowDown"] };
}

async function chosen(field) {
  const { element, wanted } = field;
  // Where arrow keys only open the list (macOS), the page is told by events of ours.
  if (!field.heard && !element.multiple && element.selectedIndex === wanted[0] - 1) {
    element.selectedIndex = wanted[0];
    for (const kind of ["input", "change"]) element.dispatchEvent(new Event(kind, { bubbles: true, composed: kind === "input" }));
    await rest();
  }
  const labels = quoted([...element.selectedOptions].map((option) => option.label));
  return holds(field) ? { now: `Chosen: ${labels}.` } : blocked(element, `did not keep the choice: it is ${labels || "empty"} now`);
}

// An option of a list that shows several at once.
verbs.option = async ({ index, token }) => {
  const option = field?.element.options?.[index];
  if (!option) return { fault: "stale" };
  const got = await reach(option, "act", true, 0);
  if (got.fault) return got;
  arm(option, { token, ends: "click" });
  return { label: labelOf(field.element), matched: 1, ...got };
};

const OPTION = "[role=option],[role=menuitemradio],[role=menuitem],[role=menuitemcheckbox],[role=treeitem],[role=radio]";

// What a list says of itself. Its options may be in it, and their words are there whether they are chosen or not.
function faceOf(element) {
  const lists = `[role=listbox],[role=menu],[role=tree],option,${OPTION}`;
  const words = [];
  const walker = element.ownerDocument.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  for (let node; (node = walker.nextNode()); ) {
    const list = node.parentElement.closest(lists);
    if (!list || list === element || !element.contains(list)) words.push(node.data);
  }
  return oneLine(`${words.join(" ")} ${valueOf(element)} ${element.getAttribute("aria-label") ?? ""}`);
}

// The options that belong to an element: those it names, those in it, else those of any list that is open.
function optionsOf(element) {
  const root = element.getRootNode();
  const named = ["aria-controls", "aria-owns"].flatMap((name) => (element.getAttribute(name) ?? "").split(/\s+/)).filter(Boolean);
  const lists = named.map((id) => root.getElementById?.(id)).filter(Boolean);
  const own = [...lists, element].flatMap((list) => [...list.querySelectorAll(OPTION)]).filter(isSeen);
  if (own.length) return own;
  const open = [];
  for (const tree of [document, ...rootsBelow(document)]) open.push(...[...tree.querySelectorAll("[role=listbox],[role=menu],[role=tree]")].filter(isSeen));
  return open.flatMap((list) => [...list.querySelectorAll(OPTION)]).filter(isSeen);
}

verbs.choose = async ({ options, token, ...wanted }) => {
  field?.leave();
  const got = await ready(wanted, async (element, attempt) => {
    const own = fieldOf(element);
    field = { element: own, kind: kindOfField(own), wanted: options, leave: () => {} };
    if (field.kind === "select") {
      const wrong = takes(own);
      return wrong.fault ? wrong : choice(own, options);
    }
    const wrong = unfit(own, "act");
    if (wrong) return wrong;
    field.kind = "custom";
    field.before = faceOf(own);
    if (roleOf(own) === "listbox" || own.getAttribute("aria-expanded") === "true") return { plan: "pick" };
    return { ...(await reach(own, "act", true, attempt)), plan: "open" };
  });
  if (got.fault) return got;
  if (got.plan === "open") arm(field.element, { token, ends: "click" });
  else if (got.plan !== "pick") follow(token, false);
  const { plan, keys, indexes } = got;
  return { ...told({ ...got, element: field.element }), plan, keys, indexes };
};

// Waits for the option in the list that was opened.
verbs.pick = async ({ option, token, patience }) => {
  if (!field) return { fault: "unknown", text: "The page forgot what it was asked" };
  const { element } = field;
  const until = performance.now() + patience;
  for (let attempt = 0; ; attempt++) {
    const options = optionsOf(element);
    const found = called(options, option, (one) => [nameOf(one), one.innerText ?? "", one.getAttribute("data-value") ?? ""]);
    const got = found ? await reach(found, "act", true, attempt) : null;
    if (got && !got.fault) {
      field.option = { element: found, name: oneLine(nameOf(found) || found.innerText) };
      arm(found, { token, ends: "click" });
      return { label: labelOf(element), matched: 1, ...got };
    }
    if (performance.now() >= until) {
      if (got) return got;
      const has = options.length ? `it has ${quoted(options.map((one) => nameOf(one) || one.innerText))}` : "no list opened";
      return blocked(element, `has no option ${JSON.stringify(option)}: ${has}`);
    }
    await frame();
  }
};

// Whether the list took the choice.
verbs.picked = async () => {
  await rest();
  if (!field?.option) return { fault: "unknown", text: "The page forgot what it was asked" };
  const { element, option } = field;
  const marked = ["aria-selected", "aria-checked"].some((name) => option.element.getAttribute(name) === "true");
  const text = faceOf(element);
  if ((option.element.isConnected && marked) || text.includes(option.name)) return { now: `Chosen: ${quoted([option.name])}.` };
  if (text !== field.before) return { now: `Chosen: ${quoted([option.name])}; it reads ${JSON.stringify(shortened(text))} now.` };
  return { fault: "unknown", text: `${labelOf(element)} does not show that ${JSON.stringify(option.name)} was chosen` };
};
