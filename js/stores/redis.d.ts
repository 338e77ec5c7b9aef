import type { KvStore } from "./kv-store.js";

/** A store in Redis 5 or newer: a connected client of ioredis or redis, which stays open when the store is closed.
 *  `prefix` is put before every key; default "rethread:". On a cluster it needs a hash tag, such as "{chat}:", because
 *  an append writes several keys at once. While anything is subscribed, a duplicate of the client listens to the
 *  channel `<prefix>:changes`, until the store is closed. */
export function redis(client: object, options?: { prefix?: string }): KvStore;
