// A Durable Object's SQLite storage. Its responses leave the object when what was written is durable.

import { RethreadError } from '../error.js';

/** Shared by all stores that are open in one object: the active runs and the change listeners. */
const shared = new WeakMap();

function sharedBy(storage) {
  if (!shared.has(storage)) shared.set(storage, { ownedRuns: new Set(), listeners: new Set() });
  return shared.get(storage);
}

/** A change feed in the memory of the object. */
const changesOf = (listeners) => ({
  subscribe(listener) {
    listeners.add(listener);
    return () => {
      listeners.delete(listener);
    };
  },
  publish(notice) {
    for (const listener of listeners) queueMicrotask(() => listener(notice));
  },
});

/** @type {typeof import('./cloudflare.js').durableObject} */
export function durableObject(objectStorage) {
  /** @type {any} */
  const storage = objectStorage;
  if (typeof storage?.transactionSync !== 'function' || typeof storage.sql?.exec !== 'function') {
    throw new RethreadError(
      'config_invalid',
      '`durableObject` takes the `ctx.storage` of an object whose class has SQLite storage (`new_sqlite_classes`)',
    );
  }
  const { ownedRuns, listeners } = sharedBy(storage);
  return {
    dialect: 'sqlite',
    ownedRuns,
    changes: changesOf(listeners),
    setDurability() {}, // the platform holds responses back until earlier writes are on disk
    transaction: (statements) =>
      storage.transactionSync(() => statements.map(({ sql, params }) => storage.sql.exec(sql, ...params).toArray())),
  };
}
