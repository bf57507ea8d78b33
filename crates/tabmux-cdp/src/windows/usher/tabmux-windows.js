// What CDP cannot do: put a tab into a window that is named, and hear that a person dragged one.
// The permission "debugger" is for its list only, which says the target of a tab; nothing is ever attached.

const targets = async (wanted) => (await chrome.debugger.getTargets()).find(wanted);
const targetOf = async (tab) => (await targets((target) => target.tabId === tab))?.id;
const tabOf = async (id) => (await targets((target) => target.id === id))?.tabId;
const windowAt = async (id) => chrome.windows.get(id).catch(() => null);

globalThis.tabmux = {
  async openIn(windowId, url) {
    const window = await windowAt(windowId);
    if (!window) return { refused: "gone" };
    // In any other kind of window Chrome opens the tab elsewhere.
    if (window.type !== "normal") return { refused: "full" };
    const tab = await chrome.tabs.create({ windowId, active: false, url }).catch(() => null);
    const target = tab && (await targetOf(tab.id));
    if (target) return { target };
    // One that is about to close is still found, but takes no tab any more, and calls that by many names.
    return { refused: (await chrome.tabs.query({ windowId })).length ? "full" : "gone" };
  },
  async bring(target, windowId) {
    const tabId = await tabOf(target);
    if (tabId === undefined) return { refused: "page" };
    if (windowId === null) {
      await chrome.windows.create({ tabId, focused: false });
      return { target };
    }
    const window = await windowAt(windowId);
    if (!window) return { refused: "gone" };
    if (window.type !== "normal") return { refused: "full" };
    await chrome.tabs.move(tabId, { windowId, index: -1 });
    return { target };
  },
};

// Heard over CDP by whoever listens to this page.
chrome.tabs.onAttached.addListener(() => console.log("moved"));
