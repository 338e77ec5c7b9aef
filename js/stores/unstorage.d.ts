import type { KvStore } from './kv-store.js';

/** A store in a storage of unstorage, whatever its driver. One writer a session: see docs/stores.md. It stays open when the store is
 *  closed. `prefix` begins every key, default "rethread". */
export function unstorage(storage: object, options?: { prefix?: string }): KvStore;
