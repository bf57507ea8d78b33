// When a page rests: what it was about to do is done. Frames alone do not say so, since a timer may fire after any number of
// them. But a window numbers its timers and frames for all worlds alike, so it shows whether the page asked for some; and at an
// idle moment the browser knows when the next thing is due, as far as fifty milliseconds ahead.

const NOTHING = () => {};

// How often something was asked of a window by others than this script.
class Asked {
  #own = new WeakMap();
  #ask;
  #drop;

  constructor(ask, drop) {
    this.#ask = ask;
    this.#drop = drop;
  }

  // We asked ourselves.
  note(view = globalThis) {
    this.#own.set(view, (this.#own.get(view) ?? 0) + 1);
  }

  count(view = globalThis) {
    const number = this.#ask(view);
    this.#drop(view, number);
    this.note(view);
    return number - this.#own.get(view);
  }
}

const timers = new Asked((view) => view.setTimeout(NOTHING), (view, number) => view.clearTimeout(number));
const pictures = new Asked((view) => view.requestAnimationFrame(NOTHING), (view, number) => view.cancelAnimationFrame(number));

// A document that may not run scripts (most mail in a page: a frame sandboxed without `allow-scripts`) fires no timers, ours neither,
// and complains of each. Tasks it runs.
const MUTE = matchMedia("(scripting: none)").matches && globalThis.scheduler?.postTask !== undefined;

// All timers of this script are set here; it gives what calls one off.
function later(work, ms = 0) {
  if (MUTE) return task(work, ms);
  timers.note();
  const timer = setTimeout(work, ms);
  return () => clearTimeout(timer);
}

function task(work, delay) {
  const off = new AbortController();
  scheduler.postTask(work, { delay, signal: off.signal }).catch(NOTHING);
  return () => off.abort();
}

const pause = (ms) => new Promise((done) => later(done, ms));

// Comes with the next picture of the page, and says so; by the clock where none is drawn.
const frame = () =>
  new Promise((done) => {
    const callOff = later(() => done(false), 500);
    pictures.note();
    requestAnimationFrame(() => {
      callOff();
      done(true);
    });
  });

// How long nothing is due, in milliseconds; 0 where the page is never idle, or its browser does not say.
const idle = () =>
  new Promise((done) => {
    if (globalThis.requestIdleCallback === undefined) return void later(() => done(0), 10);
    requestIdleCallback((deadline) => done(deadline.didTimeout ? 0 : deadline.timeRemaining()), { timeout: 30 });
  });

// This window and those of the same site in it.
function* views(view = globalThis) {
  yield view;
  for (let at = 0; at < view.length; at++) {
    try {
      if (view[at].document) yield* views(view[at]);
    } catch {
      // Another site's.
    }
  }
}

function timersSet() {
  let all = 0;
  for (const view of views()) all += timers.count(view);
  return all;
}

// A page that set no timers since it was acted upon rests after its next picture, and after what is due at once. One that did is
// waited for until nothing is due as far as the browser looks, or nothing changed for a while however much it ticks.
const SOON_MS = 8;
const FAR_MS = 49;
const STILL_MS = 55;
const MOST_CHAINED = 8;
const MOST_PICTURES = 3;

// What an act waited for, the question what changed by it need not wait for again, if it comes within this time.
const FRESH_MS = 10;
let restedUntil = 0;
let timersBefore = 0;
let stirredAt = null;

// Something is about to be done to the page.
function stirred() {
  restedUntil = 0;
  timersBefore = timersSet();
  stirredAt = performance.now();
}

// After what is due at once.
verbs.turn = async () => {
  await pause(0);
  return null;
};

// Comes with the next change of the document, or when the time is over; whether there was one.
async function stirs(ms) {
  let observer;
  const changed = await new Promise((done) => {
    observer = new MutationObserver(() => done(true));
    observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
    later(() => done(false), ms);
  });
  observer.disconnect();
  return changed;
}

// An answer has come, which scripts still have to read. Since the last look the document has changed by it already, or does soon.
const READ_MS = 100;
let lookedOver = null;

async function answersRead() {
  if (lookedOver && !lookedOver.changed) await stirs(READ_MS);
}

function lookOver() {
  lookedOver?.stop();
  const mine = { changed: false };
  const observer = new MutationObserver(() => {
    mine.changed = true;
    mine.stop();
  });
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  const callOff = later(() => observer.disconnect(), 5000);
  mine.stop = () => {
    callOff();
    observer.disconnect();
  };
  lookedOver = mine;
}

// Nothing says that a worker has something to do, or when it answers. So a page that has some is looked at for this long after an
// act; whether something changed meanwhile.
const WORKERS_MS = 150;

async function workersAnswered(asked) {
  const left = (stirredAt ?? asked) + WORKERS_MS - performance.now();
  if (left <= 0) return false;
  restedUntil = 0;
  return stirs(left);
}

// Told in the very moment of a timer, it does not count what that one sets; so it is asked twice.
async function isFar(ahead) {
  if (ahead < FAR_MS) return false;
  await pause(0);
  return (await idle()) >= FAR_MS;
}

// A page that never rests is waited for no longer than `patience`.
async function rest(patience = 1000) {
  const began = performance.now();
  if (began < restedUntil) return;
  const until = began + patience;
  let changed = began;
  const observer = new MutationObserver(() => (changed = performance.now()));
  observer.observe(document, { subtree: true, childList: true, attributes: true, characterData: true });
  let drawn = 0;
  for (let before, asked; performance.now() < until; ) {
    [before, asked] = [changed, pictures.count()];
    await frame();
    await nothingDue(began, until, () => changed);
    const draws = pictures.count() !== asked && ++drawn < MOST_PICTURES;
    if (before === changed && !draws) break;
  }
  observer.disconnect();
  restedUntil = performance.now() + FRESH_MS;
  timersBefore = timersSet();
}

async function nothingDue(began, until, changed) {
  let known = timersSet();
  let [since, chained] = [began, 0];
  for (;;) {
    const ahead = await idle();
    const [now, set] = [performance.now(), timersSet()];
    if (set === timersBefore) return void (ahead < SOON_MS && (await pause(ahead)));
    // A timer that sets another one is not over.
    if (set !== known && chained++ < MOST_CHAINED) since = now;
    known = set;
    if (now >= until || now - Math.max(since, changed()) >= STILL_MS) break;
    if (await isFar(ahead)) return;
    await pause(ahead);
  }
  // What is due by now comes before this.
  await pause(0);
}

// Comes at once where nothing can move before the next picture, else with that picture.
const PICTURE_MS = 12;
const lastAsked = new WeakMap();

async function settled(view) {
  const asked = `${pictures.count(view)} ${timersSet()}`;
  const still = lastAsked.get(view) === asked;
  lastAsked.set(view, asked);
  const drawing = frame();
  if (!still || (await Promise.race([idle(), drawing.then(() => PICTURE_MS)])) < PICTURE_MS) await drawing;
}
