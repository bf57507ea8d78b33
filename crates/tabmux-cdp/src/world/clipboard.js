// Runs in every frame before the page's own scripts. What is copied goes to the session's own clipboard and what is pasted
// comes from there; the browser's clipboard, which all sessions share, is never read. `$NAME` is unknown to the page.
(() => {
  const name = "$NAME";
  const ask = globalThis[name];
  delete globalThis[name];
  const listen = EventTarget.prototype.addEventListener;
  // A former daemon's script is here already and goes on.
  if (!ask || !document.dispatchEvent(new CustomEvent(name + "?", { cancelable: true }))) return;
  listen.call(document, name + "?", (event) => event.preventDefault());

  const waiting = new Map();
  let last = 0;
  listen.call(document, name, ({ detail }) => {
    waiting.get(detail.id)?.(detail.text);
    waiting.delete(detail.id);
  });
  const tell = (word) => ask(JSON.stringify(word));
  const put = (text) => tell({ op: "copy", text, origin: location.origin });
  const get = (op) => new Promise((done) => {
    waiting.set(++last, done);
    tell({ op, id: last, origin: location.origin });
  });
  const read = async (verb) => {
    const text = await get("read");
    if (text === null) throw new DOMException(`Failed to execute '${verb}' on 'Clipboard': Read permission denied.`, "NotAllowedError");
    return text;
  };

  const replace = (type, verb, instead) => {
    const native = type?.prototype[verb];
    if (!native) return;
    const apply = (target, self, args) => instead(args, () => Reflect.apply(target, self, args));
    type.prototype[verb] = new Proxy(native, { apply });
  };
  replace(globalThis.Clipboard, "writeText", (args, native) => (args.length ? Promise.resolve(put(String(args[0]))) : native()));
  replace(globalThis.Clipboard, "readText", () => read("readText"));
  replace(globalThis.Clipboard, "write", async ([items]) => {
    for (const item of items) {
      const type = ["text/plain", "text/html"].find((type) => item.types.includes(type));
      if (type) return put(await (await item.getType(type)).text());
    }
    throw new DOMException("Failed to execute 'write' on 'Clipboard': only text can be copied here.", "NotAllowedError");
  });
  replace(globalThis.Clipboard, "read", async () => {
    const type = "text/plain";
    return [new ClipboardItem({ [type]: new Blob([await read("read")], { type }) })];
  });

  const command = Document.prototype.execCommand;
  const clipboardEvent = (kind, clipboardData) => {
    const options = { clipboardData, bubbles: true, cancelable: true, composed: true };
    return (document.activeElement ?? document).dispatchEvent(new ClipboardEvent(kind, options));
  };
  const selected = () => {
    const field = document.activeElement;
    if (typeof field?.value !== "string" || typeof field.selectionStart !== "number") return String(getSelection());
    return field.type === "password" ? "" : field.value.slice(field.selectionStart, field.selectionEnd);
  };
  // As the browser does it: the page may give its own data, else the selection is taken.
  const copy = (kind) => {
    const data = new DataTransfer();
    const own = !clipboardEvent(kind, data);
    const text = own ? data.getData("text/plain") : selected();
    if (!text) return own;
    put(text);
    if (kind === "cut" && !own) command.call(document, "delete");
    return true;
  };
  const paste = async () => {
    const text = await get("paste");
    const data = new DataTransfer();
    data.setData("text/plain", text);
    if (clipboardEvent("paste", data) && text) command.call(document, "insertText", false, text);
  };
  replace(Document, "execCommand", ([verb], native) => {
    const kind = String(verb).toLowerCase();
    if (kind === "paste") return false;
    return kind === "copy" || kind === "cut" ? copy(kind) : native();
  });
  // From keys; before any listener of the page, which sees an event of ours instead.
  for (const [kind, act] of [["copy", copy], ["cut", copy], ["paste", paste]]) {
    listen.call(globalThis, kind, (event) => {
      if (!event.isTrusted) return;
      event.stopImmediatePropagation();
      event.preventDefault();
      act(kind);
    }, true);
  }
})();
