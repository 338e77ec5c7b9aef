// A Durable Object's SQLite storage. Its responses leave the object when what was written is durable.

import { RethreadError } from '../error.js';

/** The runs under way in each object: all stores that are open in one object share them. */
const runsOfObjects = new WeakMap();

/** @type {typeof import('./cloudflare.js').durableObject} */
export function durableObject(objectStorage) {
  /** @type {any} */
  const storage = objectStorage;
  if (typeof storage?.transactionSync !== 'function' || typeof storage.sql?.exec !== 'function') {
    throw new RethreadError('config_invalid', '`durableObject` takes the `ctx.storage` of an object whose class has SQLite storage (`new_sqlite_classes`)');
  }
  if (!runsOfObjects.has(storage)) runsOfObjects.set(storage, new Set());
  return {
    dialect: 'sqlite',
    ownedRuns: runsOfObjects.get(storage),
    setDurability() {}, // no response leaves the object before what it wrote is on the disk
    transaction: (statements) => storage.transactionSync(() => statements.map(({ sql, params }) => storage.sql.exec(sql, ...params).toArray())),
  };
}
