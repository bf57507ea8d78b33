// What of a page is worth reading: its main content, as a reader finds it, without navigation and cookie notices. What was left
// out is said.

// A main content that holds less than this of what is there to read is none.
const MAIN_SHARE = 0.5;
const PARAGRAPHS = "p,pre,blockquote,li,dd,td";
const SHORTEST_PARAGRAPH = 40;
const LONGEST_NOTICE = 3000;


// How many letters are in it. The browser's own way to read what is shown (`innerText`) ends the page where elements are nested by
// the thousand.
function lengthOf(element) {
  const letters = (node) => node.textContent.replace(/\s+/g, "").length;
  return [...element.querySelectorAll("script,style,noscript,template")].reduce((sum, aside) => sum - letters(aside), letters(element));
}

const drawn = (element) => element.checkVisibility(SEEN);

// A notice about cookies stands before the page, or calls itself one, and wants to be answered.
function isCookieNotice(element) {
  const calls = /cookie|consent|gdpr/i.test(`${element.id} ${element.getAttribute("class") ?? ""} ${element.getAttribute("aria-label") ?? ""}`);
  const front = /^(alert)?dialog$/.test(roleOf(element)) || /^(fixed|sticky)$/.test(getComputedStyle(element).position);
  if (!calls && !front) return false;
  const words = element.textContent;
  return words.length < LONGEST_NOTICE && /\bcookies?\b|\bconsent\b|gdpr|datenschutz/i.test(words) && element.querySelector("button,[role=button],input,a") !== null;
}

const AROUND = "nav,header,footer,aside,[role=navigation],[role=banner],[role=contentinfo],[role=complementary]";
const AROUND_ROLES = new Set(["navigation", "banner", "contentinfo", "complementary"]);

// How much there is to read beside what stands around it.
function lengthToRead() {
  let around = 0;
  for (const element of document.querySelectorAll(AROUND)) {
    if (AROUND_ROLES.has(roleOf(element)) && !element.parentElement?.closest(AROUND) && drawn(element)) around += lengthOf(element);
  }
  for (const element of document.body.children) if (drawn(element) && isCookieNotice(element)) around += lengthOf(element);
  return lengthOf(document.body) - around;
}

const outermost = (selector) =>
  [...document.querySelectorAll(selector)].filter((element) => drawn(element) && !element.parentElement?.closest(selector));

// The element most of the paragraphs are in: each counts for its parent, and half for the one above.
function richest() {
  const scores = new Map();
  for (const paragraph of document.querySelectorAll(PARAGRAPHS)) {
    if (!drawn(paragraph) || paragraph.closest(AROUND)) continue;
    const words = lengthOf(paragraph);
    const linked = [...paragraph.querySelectorAll("a")].reduce((sum, link) => sum + link.textContent.length, 0);
    const score = words - linked;
    if (words < SHORTEST_PARAGRAPH || linked > words / 2) continue;
    for (let [element, share] = [paragraph.parentElement, 1]; element && share >= 0.25; [element, share] = [element.parentElement, share / 2]) {
      scores.set(element, (scores.get(element) ?? 0) + score * share);
    }
  }
  let best = null;
  for (const [element, score] of scores) if (best === null || score > scores.get(best)) best = element;
  return best;
}

// All there is to read: a drawing has no body, and an emptied document not even a root.
const wholeContent = () => document.body ?? document.documentElement;

// The main content, or all of it.
function mainContent() {
  const whole = wholeContent();
  if (document.body === null) return whole;
  const least = MAIN_SHARE * lengthToRead();
  for (const selector of ["main,[role=main]", "article,[role=article]"]) {
    const [only, another] = outermost(selector);
    if (only && !another && lengthOf(only) > 0 && lengthOf(only) >= least) return only;
  }
  const best = richest();
  return best && best !== document.documentElement && lengthOf(best) >= least && lengthOf(best) > 500 ? best : whole;
}

// What stands before the main content, or tells news of it, is read with it.
function besides(root) {
  const apart = (element) => drawn(element) && !root.contains(element) && !isCookieNotice(element) && lengthOf(element) > 0;
  return [...document.querySelectorAll("dialog[open],[role=dialog],[role=alertdialog],[role=alert],[role=status]")].filter(apart);
}

// The page's heading, where the main content has none of its own.
function headingFor(root) {
  if (root.querySelector("h1")) return null;
  const [only, another] = [...document.querySelectorAll("h1")].filter(drawn);
  return only && !another && !root.contains(only) ? only : null;
}
