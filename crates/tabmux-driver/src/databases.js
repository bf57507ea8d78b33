// What an origin keeps in IndexedDB, as Playwright's storage state writes it: values that are JSON as they are
// (`value`), others in the letters below (`valueEncoded`). Playwright has no letters for Map, Set, Blob, File, holes in lists,
// wrapped values and text that is no Unicode; `m`, `se`, `b`, `hole`, `w` and `u16` are ours. What no copy can be made of
// (a CryptoKey) is left out and named.
(() => {
  "use strict";
  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
      request.onblocked = () => reject(new Error("a page holds the database open"));
    });
  const whole = (transaction) =>
    new Promise((resolve, reject) => {
      transaction.oncomplete = () => resolve();
      transaction.onerror = transaction.onabort = () => reject(transaction.error);
    });

  const toText = (buffer) => {
    const bytes = new Uint8Array(buffer);
    let text = "";
    for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
    return btoa(text);
  };
  const toBytes = (text) => Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)).buffer;

  const ARRAYS = {
    i8: Int8Array, ui8: Uint8Array, ui8c: Uint8ClampedArray, i16: Int16Array, ui16: Uint16Array, i32: Int32Array,
    ui32: Uint32Array, f32: Float32Array, f64: Float64Array, bi64: BigInt64Array, bui64: BigUint64Array,
  };
  const kindOf = (value) => Object.prototype.toString.call(value).slice(8, -1);

  // Whether JSON gives back exactly this: also that nothing is in it twice.
  const isPlain = (value, seen = new Set()) => {
    if (value === null || typeof value === "boolean") return true;
    if (typeof value === "string") return value.isWellFormed();
    if (typeof value === "number") return Number.isFinite(value) && !Object.is(value, -0);
    if (typeof value !== "object" || seen.has(value)) return false;
    seen.add(value);
    if (Array.isArray(value)) {
      return Object.keys(value).length === value.length && value.every((item) => isPlain(item, seen));
    }
    const plain = Object.getPrototypeOf(value) === Object.prototype && kindOf(value) === "Object" && !Object.hasOwn(value, "__proto__");
    return plain && Object.values(value).every((item) => isPlain(item, seen));
  };

  // `seen` gives every object its number, so that cycles and shared objects stay what they are.
  const encode = async (value, seen, room) => {
    if (Object.is(value, undefined)) return { v: "undefined" };
    if (value === null) return { v: "null" };
    if (typeof value === "number" && (!Number.isFinite(value) || Object.is(value, -0))) return { v: Object.is(value, -0) ? "-0" : String(value) };
    if (typeof value === "bigint") return { bi: String(value) };
    if (typeof value === "string" && !value.isWellFormed()) {
      return { u16: toText(Uint16Array.from({ length: value.length }, (_, at) => value.charCodeAt(at)).buffer) };
    }
    if (typeof value !== "object") return value;
    if (seen.has(value)) return { ref: seen.get(value) };
    const id = seen.size + 1;
    seen.set(value, id);
    const kind = kindOf(value);
    const size = kind === "Blob" || kind === "File" ? value.size : ArrayBuffer.isView(value) || kind === "ArrayBuffer" ? value.byteLength : 0;
    if (size > room) throw new Error("too much to copy");
    const letter = Object.keys(ARRAYS).find((name) => kind === ARRAYS[name].name);
    if (letter) return { ta: { b: toText(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength)), k: letter }, id };
    switch (kind) {
      case "Date": return { d: Number.isNaN(value.getTime()) ? "" : value.toJSON(), id };
      case "RegExp": return { r: { p: value.source, f: value.flags }, id };
      case "Error": return { e: { n: value.name, m: value.message, s: value.stack ?? "" }, id };
      case "ArrayBuffer": return { ab: { b: toText(value) }, id };
      case "DataView": return { ta: { b: toText(value.buffer.slice(value.byteOffset, value.byteOffset + value.byteLength)), k: "dv" }, id };
      case "Boolean": case "Number": case "String": case "BigInt": return { w: await encode(value.valueOf(), seen, room), id };
      case "Blob": return { b: { b: toText(await value.arrayBuffer()), t: value.type }, id };
      case "File": return { b: { b: toText(await value.arrayBuffer()), t: value.type, n: value.name, m: value.lastModified }, id };
      case "Map": {
        const pairs = [];
        for (const [name, item] of value) pairs.push([await encode(name, seen, room), await encode(item, seen, room)]);
        return { m: pairs, id };
      }
      case "Set": {
        const items = [];
        for (const item of value) items.push(await encode(item, seen, room));
        return { se: items, id };
      }
      case "Array": {
        const items = [];
        for (let at = 0; at < value.length; at++) items.push(at in value ? await encode(value[at], seen, room) : { v: "hole" });
        return { a: items, id };
      }
      case "Object": {
        const members = [];
        for (const name of Object.keys(value)) members.push({ k: name, v: await encode(value[name], seen, room) });
        return { o: members, id };
      }
      default: throw new Error(kind);
    }
  };

  const decode = (written, seen) => {
    if (typeof written !== "object" || written === null) return written;
    if ("ref" in written) return seen.get(written.ref);
    const keep = (value) => (seen.set(written.id, value), value);
    if ("v" in written) {
      const names = new Map([["undefined", undefined], ["null", null]]);
      return names.has(written.v) ? names.get(written.v) : Number(written.v);
    }
    if ("u16" in written) return String.fromCharCode(...new Uint16Array(toBytes(written.u16)));
    if ("bi" in written) return BigInt(written.bi);
    if ("d" in written) return keep(new Date(written.d === "" ? NaN : written.d));
    if ("u" in written) return keep(new URL(written.u));
    if ("r" in written) return keep(new RegExp(written.r.p, written.r.f));
    if ("w" in written) return keep(Object(decode(written.w, seen)));
    if ("e" in written) {
      const kinds = { EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError };
      const error = new (kinds[written.e.n] ?? Error)(written.e.m);
      if (written.e.s) error.stack = written.e.s;
      return keep(error);
    }
    if ("ab" in written) return keep(toBytes(written.ab.b));
    if ("ta" in written) {
      const bytes = toBytes(written.ta.b);
      return keep(written.ta.k === "dv" ? new DataView(bytes) : new ARRAYS[written.ta.k](bytes));
    }
    if ("b" in written) {
      const { b, t, n, m } = written.b;
      return keep(n === undefined ? new Blob([toBytes(b)], { type: t }) : new File([toBytes(b)], n, { type: t, lastModified: m }));
    }
    if ("m" in written) {
      const map = keep(new Map());
      for (const [name, item] of written.m) map.set(decode(name, seen), decode(item, seen));
      return map;
    }
    if ("se" in written) {
      const set = keep(new Set());
      for (const item of written.se) set.add(decode(item, seen));
      return set;
    }
    if ("a" in written) {
      const list = keep(new Array(written.a.length));
      written.a.forEach((item, at) => item?.v !== "hole" && (list[at] = decode(item, seen)));
      return list;
    }
    if ("o" in written) {
      const object = keep({});
      for (const { k, v } of written.o) Object.defineProperty(object, k, { value: decode(v, seen), writable: true, enumerable: true, configurable: true });
      return object;
    }
    throw new Error("a value in letters that are not known");
  };

  const pathOut = (path) => (Array.isArray(path) ? { keyPathArray: [...path] } : path === null ? {} : { keyPath: path });
  const pathIn = ({ keyPath, keyPathArray }) => keyPathArray ?? keyPath ?? null;
  const member = async (name, value, room) =>
    isPlain(value) ? { [name]: value } : { [`${name}Encoded`]: await encode(value, new Map(), room) };
  const read = (record, name) => (`${name}Encoded` in record ? decode(record[`${name}Encoded`], new Map()) : record[name]);

  // A database that is there. One that was deleted meanwhile is not made again, and nobody waits for us to let it go.
  const open = async (name) => {
    const opening = indexedDB.open(name);
    opening.onupgradeneeded = () => opening.transaction.abort();
    const database = await done(opening);
    database.onversionchange = () => database.close();
    return database;
  };

  // All the databases, and what could not be copied; more than `limit` characters in all is left.
  const dump = async (limit = Infinity) => {
    const databases = [];
    const left = new Set();
    let room = limit;
    for (const { name, version } of await indexedDB.databases()) {
      let database;
      try {
        database = await open(name);
      } catch (error) {
        left.add(`${name}: ${error.message}`);
        continue;
      }
      const stores = [];
      for (const storeName of database.objectStoreNames) {
        // Encoding awaits, and a transaction does not wait: everything is read first.
        const store = database.transaction(storeName, "readonly").objectStore(storeName);
        const indexes = [...store.indexNames].map((indexName) => {
          const { keyPath, multiEntry, unique } = store.index(indexName);
          return { name: indexName, ...pathOut(keyPath), multiEntry, unique };
        });
        const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
        const records = [];
        for (let at = 0; at < keys.length; at++) {
          try {
            const key = store.keyPath === null ? await member("key", keys[at], room) : {};
            const record = { ...key, ...(await member("value", values[at], room)) };
            room -= JSON.stringify(record).length;
            if (room < 0) throw new Error("too much to copy");
            records.push(record);
          } catch (error) {
            left.add(`${name}/${storeName}: ${error.message}`);
          }
        }
        stores.push({ name: storeName, autoIncrement: store.autoIncrement, ...pathOut(store.keyPath), indexes, records });
      }
      database.close();
      databases.push({ name, version, stores });
    }
    return { databases, left: [...left] };
  };

  // Makes them in an origin that has none. A store that counts for itself goes on after its highest key.
  const load = async (databases) => {
    for (const { name, version, stores } of databases) {
      const opening = indexedDB.open(name, version);
      opening.onupgradeneeded = () => {
        for (const store of stores) {
          const made = opening.result.createObjectStore(store.name, { keyPath: pathIn(store), autoIncrement: store.autoIncrement });
          for (const index of store.indexes) made.createIndex(index.name, pathIn(index), { multiEntry: index.multiEntry, unique: index.unique });
        }
      };
      const database = await done(opening);
      const filled = stores.filter((store) => store.records.length > 0);
      if (filled.length > 0) {
        const transaction = database.transaction(filled.map((store) => store.name), "readwrite");
        const finished = whole(transaction);
        for (const store of filled) {
          const made = transaction.objectStore(store.name);
          for (const record of store.records) {
            const value = read(record, "value");
            if (pathIn(store) === null) made.put(value, read(record, "key"));
            else made.put(value);
          }
        }
        await finished;
      }
      database.close();
    }
  };

  return { dump, load };
})()
