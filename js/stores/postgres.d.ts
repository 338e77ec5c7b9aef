import type { SqlDriver } from "./sql-driver.js";

/** A store in PostgreSQL: a `Pool` or a connected `Client` of pg, or anything with `query(text, params)` on one
 *  connection. It stays open when the store is closed. `schema` is the name of an existing schema; default: the first
 *  one of the search path. */
export function postgres(
  pool: object,
  options?: {
    schema?: string;
    /** Default true: while anything is subscribed, one connection of the pool listens (`LISTEN`), so that `subscribe`
     *  reports changes of other processes. Not with a pool of one connection. `false` if notifications cannot arrive,
     *  such as with PgBouncer in transaction mode. */
    listen?: boolean;
  },
): SqlDriver;
