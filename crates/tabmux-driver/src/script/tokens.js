// About how many tokens a model makes of it; rather too many than too few. A word is one for five letters, a number one for three
// digits, a sign one, and so is every letter that is not Latin.
function tokens(text) {
  let count = 1;
  let run = 0;
  let kind = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    const now = code === 32 ? 0 : code > 127 ? 4 : code >= 48 && code <= 57 ? 2 : (code | 32) >= 97 && (code | 32) <= 122 ? 1 : 3;
    if (now !== kind || now === 4 || run === (now === 1 ? 5 : now === 2 ? 3 : 2)) {
      if (now !== 0) count++;
      run = 0;
    }
    run++;
    kind = now;
  }
  return count;
}
