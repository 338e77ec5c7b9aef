// IndexedDB without a library: the minimum cost of a store.

export const done = (request) =>
  new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });

const ended = (transaction) =>
  new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve();
    transaction.onabort = () => reject(transaction.error);
  });

export function openRaw(name, stores) {
  const request = indexedDB.open(name, 1);
  request.onupgradeneeded = () => {
    for (const store of stores) request.result.createObjectStore(store);
  };
  return done(request);
}

/** Writes rows of `[store, key, value]` in one transaction and waits for its end. */
export function put(db, durability, rows) {
  const stores = [...new Set(rows.map(([store]) => store))];
  const transaction = db.transaction(stores, 'readwrite', { durability });
  for (const [store, key, value] of rows) transaction.objectStore(store).put(value, key);
  transaction.commit();
  return ended(transaction);
}

/** Like `put`, but writes in the callback of a read, as compare-and-append must. */
export function readThenPut(db, durability, [headStore, headKey], rows) {
  const stores = [...new Set(rows.map(([store]) => store))];
  const transaction = db.transaction(stores, 'readwrite', { durability });
  transaction.objectStore(headStore).get(headKey).onsuccess = () => {
    for (const [store, key, value] of rows) transaction.objectStore(store).put(value, key);
    transaction.commit();
  };
  return ended(transaction);
}

export const getAll = (db, store, name) =>
  done(
    db
      .transaction(store)
      .objectStore(store)
      .getAll(IDBKeyRange.bound([name], [name, []])),
  );
export const get = (db, store, key) => done(db.transaction(store).objectStore(store).get(key));
