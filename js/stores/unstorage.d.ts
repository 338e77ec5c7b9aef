import type { KvStore } from "./kv-store.js";

/** A store in a storage of unstorage, whatever its driver. One writer per session: see docs/stores.md. It stays open
 *  when the store is closed. `prefix` is put before every key; default "rethread". */
export function unstorage(storage: object, options?: { prefix?: string }): KvStore;
