import type { SqlDriver } from './sql-driver.js';

/** A store in PostgreSQL: a `Pool` or a connected `Client` of pg, or anything with `query(text, params)` on one connection. It stays
 *  open when the store is closed. `schema` is the name of a schema that exists; default: the first of the search path. */
export function postgres(pool: object, options?: { schema?: string }): SqlDriver;
