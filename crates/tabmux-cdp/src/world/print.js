// Runs in every frame before the page's own scripts. A visible browser's print dialog holds its page until a person answers it; headless ones show
// none, and so does nobody's here. The `pdf` tool prints.
(() => {
  const tell = EventTarget.prototype.dispatchEvent;
  const print = () => ["beforeprint", "afterprint"].forEach((kind) => tell.call(window, new Event(kind)));
  const isPrint = ([command]) => String(command).toLowerCase() === "print";
  window.print = new Proxy(window.print, { apply: print });
  Document.prototype.execCommand = new Proxy(Document.prototype.execCommand, {
    apply: (command, self, args) => (isPrint(args) ? (print(), true) : Reflect.apply(command, self, args)),
  });
})();
