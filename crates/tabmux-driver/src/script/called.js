// Roles and names, simply.
const ROLES = { a: "link", button: "button", select: "combobox", textarea: "textbox", dialog: "dialog", nav: "navigation", img: "img", option: "option", summary: "button" };
const INPUTS = { checkbox: "checkbox", radio: "radio", range: "slider", number: "spinbutton", search: "searchbox", submit: "button", button: "button", reset: "button", image: "button" };
function roleOf(element) {
  const own = element.getAttribute("role")?.trim().split(/\s+/)[0];
  if (own) return own;
  if (element.localName === "input") return INPUTS[element.type] ?? "textbox";
  if (/^h[1-6]$/.test(element.localName)) return "heading";
  return ROLES[element.localName] ?? "generic";
}
function nameOf(element) {
  const by = element.getAttribute("aria-labelledby");
  if (by) return by.split(/\s+/).map((id) => element.getRootNode().getElementById?.(id)?.textContent ?? "").join(" ");
  const own = element.getAttribute("aria-label");
  if (own) return own;
  if (element.labels?.length) return [...element.labels].map((label) => label.textContent).join(" ");
  if (element.localName === "input") return (/^(submit|button|reset)$/.test(element.type) ? element.value : element.placeholder) || element.title;
  if (/^(textarea|select|dialog)$/.test(element.localName)) return element.placeholder || element.title || "";
  return element.innerText || element.title || "";
}
