// What a person reads in this frame; frames of the same site are read with it.
verbs.text = () => {
  const texts = [];
  const read = (document) => {
    texts.push(document.body?.innerText ?? document.documentElement?.textContent ?? "");
    for (const frame of document.querySelectorAll("iframe, frame")) {
      if (frame.contentDocument && frame.checkVisibility()) read(frame.contentDocument);
    }
  };
  read(document);
  return texts.filter((text) => text.trim() !== "").join("\n\n");
};
