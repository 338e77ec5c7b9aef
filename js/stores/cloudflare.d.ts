import type { KvStore } from "./kv-store.js";
import type { SqlDriver } from "./sql-driver.js";

/** A store in the SQLite storage of a Durable Object: `durableObject(ctx.storage)`. The class needs
 *  `new_sqlite_classes` in its migration. */
export function durableObject(storage: object): SqlDriver;
/** A store in D1: `d1(env.DB)`. */
export function d1(database: object): SqlDriver;
/** A store in Workers KV: `workersKv(env.CHATS)`. One writer per session: a second one is detected, not prevented, and
 *  reads may be up to a minute old. `prefix` is put before every key; default: none. */
export function workersKv(namespace: object, options?: { prefix?: string }): KvStore;
