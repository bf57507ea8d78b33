// What can be acted upon: its name, its state and what is in it. What is in a password field never leaves the page.
function control(element, tag, role, top, inherited, walk) {
  const number = refs.of(element);
  const words = tag === "option" && top.acted ? "" : name(element, role, walk);
  const head = `e${number} ${role}${words}${valueOf(element, tag, role)}${states(element, role, walk)}`;
  const made = { head, role, ref: number, inline: true };
  if (tag === "select" || tag === "textarea" || tag === "input") {
    // A field has a line of its own, but in a row.
    const field = role !== "button" && !CHECKABLE.has(role) && top.node?.role !== "listitem" && top.node?.role !== "cell";
    return void top.out.push({ ...made, inline: !field, children: [] });
  }
  const holdsMore = role === "combobox" || role === "listbox" || role === "treeitem" || (role === "textbox" && editing(element));
  made.inline = role !== "listbox" && role !== "treeitem";
  const quiet = role === "textbox" || !holdsMore || role === "treeitem";
  node(top, made, element, { ...inherited, quiet, acted: true }, walk);
}

function valueOf(element, tag, role) {
  if (tag === "select") return optionsOf(element);
  if (secrets.has(element)) return ` password${element.value === "" ? "" : " filled"}${element.type === "password" ? "" : " shown"}`;
  if (tag === "input") {
    switch (element.type) {
      case "checkbox": case "radio": case "submit": case "reset": case "button": case "image":
        return "";
      case "file":
        return element.files.length > 0 ? ` file = ${quote([...element.files].map((file) => file.name).join(", "))}` : " file";
      case "range": case "number": {
        const bounds = element.min !== "" || element.max !== "" ? ` ${element.min}..${element.max}` : "";
        return `${element.value === "" ? "" : ` = ${quote(element.value)}`}${bounds}`;
      }
      default:
        return element.value === "" ? "" : ` = ${quote(cut(element.value, LONGEST_NAME))}`;
    }
  }
  if (tag === "textarea") return element.value === "" ? "" : ` = ${quote(cut(element.value, LONGEST_NAME))}`;
  if (role === "textbox" || role === "searchbox") {
    const text = plain(element.innerText ?? element.textContent);
    return text === "" ? "" : ` = ${quote(cut(text, LONGEST_NAME))}`;
  }
  if (role === "slider" || role === "spinbutton" || role === "scrollbar") return valueNow(element);
  return "";
}

function valueNow(element) {
  const text = element.getAttribute("aria-valuetext") ?? element.getAttribute("aria-valuenow") ?? element.value;
  return text === undefined || text === null || text === "" ? "" : ` = ${quote(cut(plain(String(text)), LONGEST_NAME))}`;
}

function optionsOf(element) {
  const options = [...element.options];
  const chosen = [...element.selectedOptions].map((option) => plain(option.label));
  const most = wholeSelects ? options.length : MOST_OPTIONS;
  const shown = options.slice(0, most).map((option) => `${quote(cut(plain(option.label), 80))}${option.disabled ? " disabled" : ""}`);
  const more = options.length > most ? ` … ${options.length - most} more options` : "";
  const value = chosen.length === 0 ? "" : ` = ${chosen.map((label) => quote(cut(label, 80))).join(", ")}`;
  return `${value}${options.length > 0 ? ` of ${shown.join(", ")}${more}` : ""}`;
}

const deepActive = () => {
  let active = document.activeElement;
  for (;;) {
    const inner = active?.shadowRoot?.activeElement ?? active?.contentDocument?.activeElement;
    if (!inner) return active === document.body ? null : active;
    active = inner;
  }
};

const CHECKABLE = new Set(["checkbox", "radio", "switch", "menuitemcheckbox", "menuitemradio", "option", "treeitem"]);

function states(element, role, walk) {
  let said = "";
  if (CHECKABLE.has(role)) {
    const checked = element.localName === "input" ? (element.indeterminate ? "mixed" : String(element.checked)) : element.getAttribute("aria-checked");
    if (checked === "true") said += " checked";
    else if (checked === "mixed") said += " mixed";
  }
  if (element === walk.active) said += " focused";
  if (element.localName === "summary") said += element.parentElement.open ? " expanded" : " collapsed";
  if (element.matches(":disabled")) said += " disabled";
  if (element.required === true) said += " required";
  if (element.readOnly === true && role !== "slider" && !CHECKABLE.has(role) && element.type !== "color" && element.type !== "file") said += " readonly";
  if (!element.hasAttributes()) return said;
  for (const attribute of element.getAttributeNames()) {
    if (attribute.startsWith("aria-")) said += ariaState(attribute, element.getAttribute(attribute), said);
  }
  return said;
}

function ariaState(attribute, value, said) {
  switch (attribute) {
    case "aria-disabled":
      return value === "true" && !said.includes(" disabled") ? " disabled" : "";
    case "aria-expanded":
      return value === "true" ? " expanded" : value === "false" ? " collapsed" : "";
    case "aria-selected":
      return value === "true" ? " selected" : "";
    case "aria-pressed":
      return value === "true" ? " pressed" : value === "mixed" ? " mixed" : "";
    case "aria-required":
      return value === "true" && !said.includes(" required") ? " required" : "";
    case "aria-invalid":
      return value !== "false" && value !== "" ? " invalid" : "";
    case "aria-readonly":
      return value === "true" ? " readonly" : "";
    case "aria-current":
      return value !== "false" && value !== "" ? " current" : "";
    case "aria-busy":
      return value === "true" ? " busy" : "";
    case "aria-haspopup":
      return value !== "false" && value !== "" ? " haspopup" : "";
    case "aria-modal":
      return value === "true" ? " modal" : "";
    default:
      return "";
  }
}
