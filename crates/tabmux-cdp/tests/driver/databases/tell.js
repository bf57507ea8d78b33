// Tells what is kept so exactly that a difference shows. The one that cannot be copied is left out.
(async () => {
  const done = (request) => new Promise((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = () => reject(request.error))));
  const tell = async (value, seen = new Map()) => {
    if (typeof value === "string") return `text ${value.length} ${[...value.slice(0, 40)].map((letter) => letter.codePointAt(0))}`;
    if (typeof value !== "object" || value === null) return `${typeof value} ${Object.is(value, -0) ? "-0" : String(value)}`;
    if (seen.has(value)) return `again ${seen.get(value)}`;
    seen.set(value, seen.size);
    const kind = Object.prototype.toString.call(value);
    const list = async (items) => { const told = []; for (const item of items) told.push(await tell(item, seen)); return told; };
    if (value instanceof Map) return [kind, await list([...value].flat())];
    if (value instanceof Set) return [kind, await list(value)];
    if (value instanceof Blob) return [kind, value.type, value.name ?? "", value.name ? value.lastModified : 0, await value.text()];
    if (value instanceof ArrayBuffer) return [kind, String(new Uint8Array(value))];
    if (ArrayBuffer.isView(value)) return [kind, String(new Uint8Array(value.buffer, value.byteOffset, value.byteLength))];
    if (value instanceof Error) return [kind, value.name, value.message, value.stack];
    if (value instanceof Date || value instanceof RegExp) return [kind, String(value.valueOf())];
    if (value instanceof String) return [kind, value.valueOf()];
    return [kind, Object.keys(value), await list(Object.values(value))];
  };
  const database = await done(indexedDB.open("kept"));
  const transaction = database.transaction([...database.objectStoreNames], "readwrite");
  const stores = [...database.objectStoreNames].map((name) => {
    const store = transaction.objectStore(name);
    const indexes = [...store.indexNames].map((index) => { const { keyPath, unique, multiEntry } = store.index(index); return [index, keyPath, unique, multiEntry]; });
    return [name, store.keyPath, store.autoIncrement, indexes];
  });
  const counted = transaction.objectStore("counted");
  const next = counted.put({ name: `next ${Math.random()}` });
  const byTag = done(counted.index("tags").getAllKeys("q"));
  const loose = transaction.objectStore("loose");
  const [keys, kept, tagged, pairs, number] = await Promise.all([done(loose.getAllKeys()), done(loose.getAll()), byTag, done(transaction.objectStore("paired").getAll()), done(next)]);
  const values = {};
  for (let at = 0; at < keys.length; at++) {
    if (keys[at] !== "key") values[JSON.stringify(await tell(keys[at]))] = await tell(kept[at]);
  }
  database.close();
  return { version: database.version, stores, values, tagged, pairs: await tell(pairs), number };
})()
