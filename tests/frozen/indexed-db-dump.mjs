// An IndexedDB database as JSON, and back. The functions run, as text, in a page.

/** Bytes become `{ bytes }` in base64, objects `{ object }`. */
export async function dumpDatabase(name) {
  const settled = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const encode = (value) => {
    if (value instanceof Uint8Array) return { bytes: btoa(String.fromCharCode(...value)) };
    if (Array.isArray(value)) return value.map(encode);
    if (value && typeof value === 'object')
      return { object: Object.fromEntries(Object.entries(value).map(([key, member]) => [key, encode(member)])) };
    return value;
  };
  const database = await settled(indexedDB.open(name));
  const stores = {};
  for (const storeName of database.objectStoreNames) {
    const store = database.transaction(storeName).objectStore(storeName);
    const indexes = [...store.indexNames].map((indexName) => {
      const { keyPath, unique, multiEntry } = store.index(indexName);
      return { name: indexName, keyPath, unique, multiEntry };
    });
    const [keys, values] = await Promise.all([settled(store.getAllKeys()), settled(store.getAll())]);
    stores[storeName] = {
      keyPath: store.keyPath,
      autoIncrement: store.autoIncrement,
      indexes,
      rows: keys.map((key, at) => [encode(key), encode(values[at])]),
    };
  }
  const { version } = database;
  database.close();
  return { version, stores };
}

export async function loadDatabase([name, { version, stores }]) {
  const decode = (value) => {
    if (Array.isArray(value)) return value.map(decode);
    if (value?.bytes !== undefined) return Uint8Array.from(atob(value.bytes), (character) => character.charCodeAt(0));
    if (value?.object)
      return Object.fromEntries(Object.entries(value.object).map(([key, member]) => [key, decode(member)]));
    return value;
  };
  const request = indexedDB.open(name, version);
  request.onupgradeneeded = () => {
    for (const [storeName, { keyPath, autoIncrement, indexes, rows }] of Object.entries(stores)) {
      const store = request.result.createObjectStore(storeName, { keyPath, autoIncrement });
      for (const index of indexes)
        store.createIndex(index.name, index.keyPath, { unique: index.unique, multiEntry: index.multiEntry });
      for (const [key, value] of rows) store.put(decode(value), keyPath === null ? decode(key) : undefined);
    }
  };
  await new Promise((resolve, reject) => {
    request.onsuccess = resolve;
    request.onerror = () => reject(request.error);
  });
  request.result.close();
}
