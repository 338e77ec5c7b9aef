// "rethread/unstorage": has no compare-and-set, so keys are written once and one writer per session is expected.

import { RethreadError } from '../error.js';
import { withRateLimitErrors } from './rate-limits.js';

/** @type {typeof import('./unstorage.js').unstorage} */
export function unstorage(untypedStorage, { prefix = 'rethread' } = {}) {
  /** @type {any} */
  const storage = untypedStorage;
  if (typeof storage?.getItemRaw !== 'function' || typeof storage.getKeys !== 'function') {
    throw new RethreadError('config_invalid', '`unstorage` takes the return value of `createStorage` of unstorage');
  }
  if (typeof prefix !== 'string' || !/^[\w-]+$/.test(prefix))
    throw new RethreadError('config_invalid', '`prefix` must consist of letters, digits, - and _');
  const base = `${prefix}:`;
  return {
    name: 'unstorage',
    limits: { maxValueBytes: 16 * 1024 * 1024, readYourWrites: false },
    async get(key) {
      const value = await withRateLimitErrors(() => storage.getItemRaw(base + key));
      return value === null || value === undefined ? null : { value: toBytes(value) };
    },
    async list(keyPrefix, cursor, limit) {
      // `getKeys` accepts a base only up to a colon; the filter below applies the rest of the prefix.
      const all = await withRateLimitErrors(() =>
        storage.getKeys(base + keyPrefix.slice(0, keyPrefix.lastIndexOf(':') + 1)),
      );
      const keys = all
        .map((key) => key.slice(base.length))
        .filter((key) => key.startsWith(keyPrefix) && (cursor === null || key > cursor))
        .sort();
      return { keys: keys.slice(0, limit), cursor: keys.length > limit ? keys[limit - 1] : null };
    },
    put: (key, value) => withRateLimitErrors(() => storage.setItemRaw(base + key, value)),
    delete: (key) => withRateLimitErrors(() => storage.removeItem(base + key)),
  };
}

/** Drivers return a Buffer, an ArrayBuffer or the stored Uint8Array. */
function toBytes(value) {
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  if (ArrayBuffer.isView(value)) return new Uint8Array(value.buffer, value.byteOffset, value.byteLength);
  throw new RethreadError(
    'config_invalid',
    'the storage does not return bytes; use a driver that supports `getItemRaw`',
  );
}
