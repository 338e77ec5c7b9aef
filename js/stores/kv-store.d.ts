import type { ChangeFeed } from './sql-driver.js';

/** A key-value service. Keys, values and what they mean are the engine's; a driver only gets, lists and writes them. */
export interface KvStore {
  /** What messages and `status()` call it: "redis", "localstorage", "workers-kv", "unstorage", "deno-kv", else "key-value". */
  name?: string;
  /** `version` changes with every write of the key, and is needed by `commit`. */
  get(key: string): Promise<KvEntry | null> | KvEntry | null;
  /** The values of many keys, in their order: one request instead of one a key. */
  getMany?(keys: string[]): Promise<(Uint8Array | null)[]> | (Uint8Array | null)[];
  /** At most `limit` keys that begin with `prefix`, in key order where the service has one. */
  list(prefix: string, cursor: string | null, limit: number): Promise<{ keys: string[]; cursor: string | null }> | { keys: string[]; cursor: string | null };
  put(key: string, value: Uint8Array): Promise<void> | void;
  delete(key: string): Promise<void> | void;
  /** Atomic: applies every write if each checked key still has the version that was read (`null`: absent), else applies none and
   *  returns false. A store without it is single-writer: keys are written once, and a second writer is detected, not excluded. */
  commit?(checks: { key: string; version: string | null }[], writes: { key: string; value: Uint8Array | null }[], notice?: string): Promise<boolean> | boolean;
  /** How stores that are open elsewhere hear of changes, if the service has a way. A `commit` that is applied then sends its `notice`;
   *  `publish` sends all others. */
  changes?: ChangeFeed;
  /** Default: values of 1 MiB (larger ones are split), no least time between two writes of one key, a read returns what was written.
   *  An error whose `code` is "busy", "quota_exceeded", "closed", "too_large" or "unavailable" keeps it. */
  limits?: { maxValueBytes?: number; minRewriteMs?: number; readYourWrites?: boolean };
  /** Called when the store is closed, and awaited. */
  close?(): Promise<void> | void;
}
export interface KvEntry { value: Uint8Array; version?: string }
