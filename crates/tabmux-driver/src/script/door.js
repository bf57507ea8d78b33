// What the driver calls.
globalThis.tabmux = {
  call(verb, argument, first, step) {
    refs.free(first, step);
    const answer = (value) => ({ value, next: refs.next });
    const value = verbs[verb](argument);
    return value instanceof Promise ? value.then(answer) : answer(value);
  },

  // Elements that may have closed shadow roots, themselves and not as data.
  suspects: () => suspects.take(),

  // Takes closed shadow roots.
  open: (roots) => roots.forEach((root) => opened.set(root.host, root)),

  // The field that was found last, itself and not as data.
  field: () => verbs.field(),

  // Nobody waits any more for what was begun.
  giveUp: () => verbs.giveUp(),

  // Whether an element can be seen; a text says why its name is none.
  sees: (selector) => verbs.sees(selector),
};
