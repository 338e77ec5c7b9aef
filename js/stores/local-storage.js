// `store: "localstorage"`: where a browser has no IndexedDB, or a page must keep little.

import { RethreadError } from '../error.js';

/** Bytes as a string of one character a byte, which browsers store in one byte each. */
const toText = (bytes) => {
  let text = '';
  for (let at = 0; at < bytes.length; at += 8192) text += String.fromCharCode(...bytes.subarray(at, at + 8192));
  return text;
};
const toBytes = (text) => Uint8Array.from(text, (character) => character.charCodeAt(0));

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
  const locked = async (work) => (locks ? locks.request(`${prefix}write`, async () => work()) : work());

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
      const all = Object.keys(items).filter((key) => key.startsWith(prefix + beginning) && key !== undoKey);
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
  };
}
