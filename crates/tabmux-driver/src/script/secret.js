// What is in a password field never leaves the page, also when a button shows it to the person: a field that was one stays one, and
// what was in it is a secret in whatever field the page puts it. One-time codes are none: they are shown while they are typed, are
// worth nothing afterwards, and who fills six boxes has to see which of them has its digit.
const SHORTEST_SECRET = 4;
const MOST_SECRETS = 100;
const SECRET_IN = /^(text|search|tel|url|email|number|textarea)$/;

const secrets = {
  fields: new WeakSet(),
  values: new Set(),

  add(value) {
    if (value.length < SHORTEST_SECRET || this.values.has(value)) return;
    if (this.values.size === MOST_SECRETS) this.values.delete(this.values.values().next().value);
    this.values.add(value);
  },

  // Any field that holds text may be asked. To ask is to remember.
  has(element) {
    const { localName, type, value } = element;
    if (localName !== "input" && localName !== "textarea") return false;
    if (type !== "password" && !this.fields.has(element) && !/\b(current|new)-password\b/i.test(element.getAttribute("autocomplete") ?? "")) {
      return SECRET_IN.test(type) && this.values.has(value);
    }
    this.fields.add(element);
    this.add(value);
    return true;
  },
};

// Between two looks: a field is made one that shows what is in it, or is typed into and then taken away.
new MutationObserver((records) => {
  for (const { target, oldValue } of records) {
    if (oldValue?.toLowerCase() !== "password") continue;
    secrets.fields.add(target);
    secrets.has(target);
  }
}).observe(document, { subtree: true, attributeFilter: ["type"], attributeOldValue: true });

const typedBefore = new WeakMap();

addEventListener(
  "input",
  (event) => {
    const [field] = event.composedPath();
    if (field?.nodeType !== 1 || !secrets.has(field)) return;
    const before = typedBefore.get(field) ?? "";
    // The beginning of a secret is none.
    if (field.value !== before && field.value.startsWith(before)) secrets.values.delete(before);
    typedBefore.set(field, field.value);
  },
  true,
);
