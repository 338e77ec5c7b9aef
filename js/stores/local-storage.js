// `store: "localstorage"`: for browsers without IndexedDB, and for pages that store little.

import { RethreadError } from '../error.js';

/** Encodes each byte as one character (Latin-1), which browsers store in one byte. */
const toText = (bytes) => {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
};
const toBytes = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));

const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/** A store in localStorage, under the keys `rethread:<name>/…`. Web Locks exclude other tabs while one writes; without
 *  them only one tab may write. */
export function localStorageDriver(name) {
  /** @type {Storage | undefined} */
  let storage;
  try {
    storage = globalThis.localStorage;
  } catch {
    // access is denied
  }
  if (!storage)
    throw new RethreadError(
      'config_invalid',
      '`store`: localStorage is not available here (a worker, a sandboxed frame, or not a browser); use another store',
    );
  const items = storage;
  const prefix = `rethread:${encodeURIComponent(name)}/`;
  const undoKey = `${prefix}undo`;
  const locks = globalThis.navigator?.locks;

  // A tab may see the writes of another tab some time after it acquired the lock. So each commit has a number, which
  // its tab writes last and holds in the name of a lock: a tab that sees that lock waits until it reads the number.
  const writtenKey = `${prefix}written`;
  let release = () => {};
  const hold = (number) =>
    new Promise((held) => {
      locks.request(
        `${prefix}written/${number}`,
        () =>
          new Promise((resolve) => {
            release();
            release = () => resolve(undefined);
            held(undefined);
          }),
      );
    });
  const written = () => Number(items.getItem(writtenKey));
  const caughtUp = async () => {
    const { held = [] } = await locks.query();
    const newest = Math.max(
      0,
      ...held.map((lock) =>
        lock.name?.startsWith(`${writtenKey}/`) ? Number(lock.name.slice(writtenKey.length + 1)) : 0,
      ),
    );
    for (const until = performance.now() + 10_000; written() < newest; ) {
      if (performance.now() > until)
        throw new RethreadError('busy', 'the writes of another tab are not visible here yet; try again');
      await pause(2);
    }
    return newest;
  };
  const locked = async (work) => {
    if (!locks) return work();
    return locks.request(`${prefix}lock`, async () => {
      // A closed tab holds no lock, and may have written a moment ago.
      if (!(await caughtUp())) await pause(50);
      const result = work();
      // Padded to a fixed length, so that a full storage has room for it.
      const number = written() + 1;
      items.setItem(writtenKey, String(number).padStart(16, '0'));
      await hold(number);
      return result;
    });
  };

  /** Undoes an unfinished commit of a closed tab. */
  const undo = () => {
    const text = items.getItem(undoKey);
    if (text === null) return;
    const before = Object.entries(JSON.parse(text));
    for (const [key, value] of before) if (value === null) items.removeItem(key);
    for (const [key, value] of before) if (value !== null) items.setItem(key, value);
    items.removeItem(undoKey);
  };
  const settled = async () => {
    if (locks) await caughtUp();
    if (items.getItem(undoKey) !== null) await locked(undo);
  };
  const apply = (writes) => {
    items.setItem(
      undoKey,
      JSON.stringify(Object.fromEntries(writes.map(({ key }) => [prefix + key, items.getItem(prefix + key)]))),
    );
    try {
      for (const { key, value } of writes) if (value === null) items.removeItem(prefix + key);
      for (const { key, value } of writes) if (value !== null) items.setItem(prefix + key, toText(value));
    } catch (error) {
      undo();
      throw error;
    }
    items.removeItem(undoKey);
  };

  return {
    name: 'localstorage',
    async get(key) {
      await settled();
      const version = items.getItem(prefix + key);
      return version === null ? null : { value: toBytes(version), version };
    },
    async getMany(keys) {
      await settled();
      return keys.map((key) => items.getItem(prefix + key)).map((text) => (text === null ? null : toBytes(text)));
    },
    async list(keyPrefix, cursor, limit) {
      await settled();
      const all = Object.keys(items).filter(
        (key) => key.startsWith(prefix + keyPrefix) && key !== undoKey && key !== writtenKey,
      );
      const rest = all
        .map((key) => key.slice(prefix.length))
        .filter((key) => cursor === null || key > cursor)
        .sort();
      const keys = rest.slice(0, limit);
      return { keys, cursor: rest.length > limit ? keys.at(-1) : null };
    },
    put: (key, value) =>
      locked(() => {
        undo();
        apply([{ key, value }]);
      }),
    delete: (key) =>
      locked(() => {
        undo();
        apply([{ key, value: null }]);
      }),
    commit: (checks, writes) =>
      locked(() => {
        undo();
        if (checks.some(({ key, version }) => items.getItem(prefix + key) !== version)) return false;
        apply(writes);
        return true;
      }),
    close: () => release(),
  };
}
