// What can be acted upon and is in sight, each with a selector that means it in any page like this one.
verbs.elements = ({ most }) => {
  const candidates = document.querySelectorAll(
    "a[href], button, input:not([type=hidden]), select, textarea, summary, [role], [tabindex], [contenteditable], [onclick], h1, h2, h3, img[alt], label, p, li, td, span, div",
  );
  const found = [];
  let left = 0;
  for (const element of candidates) {
    const role = roleOf(element);
    const active = ACTIVE_ROLES.has(role) || tabStop(element) || element.hasAttribute("onclick");
    // Of what cannot be acted upon, only what bears words of its own.
    if (!active && ![...element.childNodes].some((node) => node.nodeType === 3 && node.data.trim() !== "")) continue;
    if (!element.checkVisibility(SEEN)) continue;
    const { width, height } = element.getBoundingClientRect();
    if (width <= 0 || height <= 0) continue;
    if (found.length === most) left++;
    else found.push({ text: nameOf(element, role) || cut(plain(element.textContent), LONGEST_NAME), cssSelector: selectorOf(element), role, tag: element.localName });
  }
  return { elements: found, left };
};

function selectorOf(element) {
  const only = (selector) => document.querySelectorAll(selector).length === 1 && document.querySelector(selector) === element;
  const { id, localName } = element;
  if (id !== "" && only(`#${CSS.escape(id)}`)) return `#${CSS.escape(id)}`;
  for (const attribute of ["data-testid", "data-test", "name", "aria-label", "href"]) {
    const value = element.getAttribute(attribute);
    if (value === null || value.length > 100) continue;
    const selector = `${localName}[${attribute}=${JSON.stringify(value)}]`;
    try {
      if (only(selector)) return selector;
    } catch {
      // A value that CSS cannot quote names nothing.
    }
  }
  const parent = element.parentElement;
  if (parent === null || localName === "body") return localName;
  const same = [...parent.children].filter((child) => child.localName === localName);
  const step = same.length > 1 ? `${localName}:nth-of-type(${same.indexOf(element) + 1})` : localName;
  return `${selectorOf(parent)} > ${step}`;
}
