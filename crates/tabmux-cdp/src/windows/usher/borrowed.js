// The same in a page of the browser's own, where no extension of ours is let in. It only ever opens tabs: others of chrome.tabs end the browser
// when they are called from a hidden page. There is no list of targets, so whoever asked finds the tab by its address.
() => {
  if (globalThis.chrome?.tabs) {
    globalThis.tabmux = {
      async openIn(windowId, url) {
        try {
          await chrome.tabs.create({ windowId, active: false, url });
          return { target: url };
        } catch (error) {
          // A browser that keeps pages in few processes lets this one open nothing.
          return { refused: String(error).includes("No window") ? "gone" : "full" };
        }
      },
    };
  }
  return typeof globalThis.tabmux;
}
