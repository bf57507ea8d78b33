// Keeps one of everything that IndexedDB takes.
(async () => {
  const done = (request) => new Promise((resolve, reject) => ((request.onsuccess = () => resolve(request.result)), (request.onerror = () => reject(request.error))));
  const opening = indexedDB.open("kept", 7);
  opening.onupgradeneeded = () => {
    const database = opening.result;
    database.createObjectStore("loose");
    database.createObjectStore("empty");
    const counted = database.createObjectStore("counted", { keyPath: "id", autoIncrement: true });
    counted.createIndex("name", "name", { unique: true });
    counted.createIndex("pair", ["a", "b"]);
    counted.createIndex("tags", "tags", { multiEntry: true });
    database.createObjectStore("paired", { keyPath: ["x", "y"] });
  };
  const database = await done(opening);
  const cycle = { name: "cycle" };
  Object.assign(cycle, { me: cycle, list: [cycle, , 3] });
  const shared = { s: 1 };
  const secret = await crypto.subtle.generateKey({ name: "AES-GCM", length: 128 }, false, ["encrypt"]);
  const values = {
    text: "x", number: 1.5, nan: NaN, minus: -0, infinite: -Infinity, nothing: null, missing: undefined, yes: true,
    big: 123n ** 20n, date: new Date(5), noDate: new Date(NaN), pattern: /a+/gi, cycle, twice: [shared, shared],
    map: new Map([[1, { a: new Set([1, "2"]) }], ["k", null]]), set: new Set([new Date(1)]),
    buffer: new Uint8Array([1, 2, 255]).buffer, bytes: new Uint8Array([9, 8]), floats: new Float64Array([1.5, NaN]),
    bigs: new BigInt64Array([5n]), view: new DataView(new ArrayBuffer(3)), blob: new Blob(["hey"], { type: "text/plain" }),
    file: new File(["yo"], "f.txt", { type: "a/b", lastModified: 77 }), error: new TypeError("no"), wrapped: Object("w"),
    lone: "\ud800x", long: "y".repeat(300000), proto: JSON.parse('{"__proto__": {"x": 1}}'), nested: { a: [1, { b: "c" }] },
    likeOurs: { v: "undefined" }, likeOursToo: { o: [1], id: 3 }, key: { secret },
  };
  const transaction = database.transaction(["loose", "counted", "paired"], "readwrite");
  const loose = transaction.objectStore("loose");
  for (const name in values) loose.put(values[name], name);
  loose.put("by date", new Date(3));
  loose.put("by list", [1, "a", new Uint8Array([4])]);
  loose.put("by number", 7.5);
  transaction.objectStore("counted").put({ name: "a", a: 1, b: 2, tags: ["p", "q"] });
  transaction.objectStore("counted").put({ name: "b" });
  transaction.objectStore("paired").put({ x: 1, y: "k", when: new Date(9) });
  await new Promise((resolve, reject) => ((transaction.oncomplete = resolve), (transaction.onabort = () => reject(transaction.error))));
  database.close();
})()
