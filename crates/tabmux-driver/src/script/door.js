// What the driver calls.
globalThis.tabmux = {
  call(verb, argument, first, step) {
    refs.free(first, step);
    const answer = (value) => ({ value, next: refs.next });
    const value = verbs[verb](argument);
    return value instanceof Promise ? value.then(answer) : answer(value);
  },
};
