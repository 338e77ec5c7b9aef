import type { SqlDriver } from './sql-driver.js';

/** A store in PostgreSQL: a `Pool` or a connected `Client` of pg, or anything with `query(text, params)` on one connection. It stays
 *  open when the store is closed. `schema` is the name of a schema that exists; default: the first of the search path. */
export function postgres(pool: object, options?: {
  schema?: string;
  /** Default true: while anything is subscribed, one connection of the pool listens (`LISTEN`), so that `subscribe` hears of other
   *  processes. Not with a pool of one connection. `false` where the server does not pass it on, such as PgBouncer for transactions. */
  listen?: boolean;
}): SqlDriver;
