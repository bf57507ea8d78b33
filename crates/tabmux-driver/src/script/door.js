// What the driver calls.
globalThis.tabmux = {
  call(verb, argument, first, step) {
    refs.free(first, step);
    // No event tells of a title, so every answer of the page brings it. An element of that name would stand in its place.
    const title = () => (window === top && typeof document.title === 'string' ? document.title.slice(0, 1000) : undefined);
    const answer = (value) => ({ value, next: refs.next, title: title() });
    const value = verbs[verb](argument);
    return value instanceof Promise ? value.then(answer) : answer(value);
  },

  // Elements that may have closed shadow roots, themselves and not as data, behind a number for the question.
  suspects: () => suspects.take(),

  // The same behind what a verb answers, which is a text here.
  async callAndSuspect(...call) {
    const answer = await this.call(...call);
    return [JSON.stringify(answer), ...(answer.value.hides ? suspects.take() : [])];
  },

  // Takes the closed shadow roots that were found.
  open: (number, ...roots) => suspects.answered(number, roots),

  // The field that was found last, itself and not as data.
  field: () => verbs.field(),

  // Nobody waits any more for what was begun.
  giveUp: () => verbs.giveUp(),

  // Comes when what is wanted is seen in another measure than is known; until `unwatch`.
  watch: (wanted, known, key) => verbs.watch(wanted, known, key),
  unwatch: (key) => verbs.unwatch(key),
  watching: () => verbs.watching(),
};
