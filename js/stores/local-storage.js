// `store: "localstorage"`: where a browser has no IndexedDB, or a page must keep little.

import { RethreadError } from '../error.js';

/** Bytes as a string of one character a byte, which browsers store in one byte each. */
const toText = (bytes) => {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
};
const toBytes = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));

const pause = (ms) => new Promise((resolve) => { setTimeout(resolve, ms); });

/** A store in localStorage, under the keys `rethread:<name>/…`. Web Locks keep the tabs apart; where there are none, one tab at a time may write. */
export function localStorageDriver(name) {
  /** @type {Storage | undefined} */
  let storage;
  try {
    storage = globalThis.localStorage;
  } catch {
    // Not allowed here.
  }
  if (!storage) throw new RethreadError('config_invalid', '`store`: there is no localStorage here: a worker, a sandboxed frame, or not a browser');
  const items = storage;
  const prefix = `rethread:${encodeURIComponent(name)}/`;
  const undoKey = `${prefix}undo`;
  const locks = globalThis.navigator?.locks;

  // Browsers tell a tab of what another one wrote some time later, even if it has waited for the other's lock. So each commit has a
  // number, which its tab writes last, and holds as the name of a lock: whoever sees that lock waits until it sees the number.
  const writtenKey = `${prefix}written`;
  let release = () => {};
  const hold = (number) => new Promise((held) => {
    locks.request(`${prefix}written/${number}`, () => new Promise((resolve) => {
      release();
      release = () => resolve(undefined);
      held(undefined);
    }));
  });
  const written = () => Number(items.getItem(writtenKey));
  const caughtUp = async () => {
    const { held = [] } = await locks.query();
    const newest = Math.max(0, ...held.map((lock) => (lock.name?.startsWith(`${writtenKey}/`) ? Number(lock.name.slice(writtenKey.length + 1)) : 0)));
    for (const until = performance.now() + 10_000; written() < newest;) {
      if (performance.now() > until) throw new RethreadError('busy', 'what another tab wrote does not arrive here');
      await pause(2);
    }
    return newest;
  };
  const locked = async (work) => {
    if (!locks) return work();
    return locks.request(`${prefix}lock`, async () => {
      // A tab that is gone holds no lock any more, and may have written a moment ago.
      if (!await caughtUp()) await pause(50);
      const result = work();
      // Of one length, so that there is room for it in a full storage.
      const number = written() + 1;
      items.setItem(writtenKey, String(number).padStart(16, '0'));
      await hold(number);
      return result;
    });
  };

  /** Undoes a commit that a closed tab left half done. */
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
    items.setItem(undoKey, JSON.stringify(Object.fromEntries(writes.map(({ key }) => [prefix + key, items.getItem(prefix + key)]))));
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
    async list(beginning, cursor, limit) {
      await settled();
      const all = Object.keys(items).filter((key) => key.startsWith(prefix + beginning) && key !== undoKey && key !== writtenKey);
      const rest = all.map((key) => key.slice(prefix.length)).filter((key) => cursor === null || key > cursor).sort();
      const keys = rest.slice(0, limit);
      return { keys, cursor: rest.length > limit ? keys.at(-1) : null };
    },
    put: (key, value) => locked(() => { undo(); apply([{ key, value }]); }),
    delete: (key) => locked(() => { undo(); apply([{ key, value: null }]); }),
    commit: (checks, writes) => locked(() => {
      undo();
      if (checks.some(({ key, version }) => items.getItem(prefix + key) !== version)) return false;
      apply(writes);
      return true;
    }),
    close: () => release(),
  };
}
