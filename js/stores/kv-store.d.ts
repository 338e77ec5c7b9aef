import type { ChangeFeed } from "./sql-driver.js";

/** A key-value service. The engine defines keys and values; a driver only reads, lists and writes them. An error that a
 *  method throws with the `code` "busy", "quota_exceeded", "closed", "too_large" or "unavailable" keeps that code. The
 *  code "rate_limited" means that nothing was written: the request is repeated up to five times, after increasing
 *  delays, and not before `details.retryAfterMs`. If the service asks for more than 30 seconds (`Retry-After`), the
 *  call fails at once. */
export interface KvStore {
  /** Its name in messages and in `status()`: "redis", "localstorage", "workers-kv", "unstorage" or "deno-kv". Any other
   *  is "key-value". */
  name?: string;
  /** `version` changes with every write of the key, and is needed by `commit`. */
  get(key: string): Promise<KvEntry | null> | KvEntry | null;
  /** The values of many keys, in the order of the keys, in one request. Default: one `get` per key. */
  getMany?(keys: string[]): Promise<(Uint8Array | null)[]> | (Uint8Array | null)[];
  /** At most `limit` keys that begin with `prefix`, in key order where the service has one. */
  list(
    prefix: string,
    cursor: string | null,
    limit: number,
  ): Promise<{ keys: string[]; cursor: string | null }> | { keys: string[]; cursor: string | null };
  put(key: string, value: Uint8Array): Promise<void> | void;
  delete(key: string): Promise<void> | void;
  /** Atomic: applies every write if each checked key still has the version that was read (`null`: absent), else applies
   *  none and returns false. Without `commit`, a session should have one writer: keys are written once, and a second
   *  writer is detected, not prevented. */
  commit?(
    checks: { key: string; version: string | null }[],
    writes: { key: string; value: Uint8Array | null }[],
    notice?: string,
  ): Promise<boolean> | boolean;
  /** Notifies stores that are open elsewhere of changes, if the service supports it. A `commit` that is applied must
   *  then send its `notice`; `publish` sends all others. */
  changes?: ChangeFeed;
  /** `maxValueBytes`: larger values are split; default 1 MiB. `minRewriteMs`: minimum milliseconds between two writes
   *  of one key; default 0. `readYourWrites`: a read returns the latest write; default true. */
  limits?: { maxValueBytes?: number; minRewriteMs?: number; readYourWrites?: boolean };
  /** Called when the store is closed, and awaited. */
  close?(): Promise<void> | void;
}
export interface KvEntry {
  value: Uint8Array;
  version?: string;
}
