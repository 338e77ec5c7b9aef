import type { SqlDriver } from "./sql-driver.js";

/** A store in SQLite: the path of a file (opened with node:sqlite, and closed with the store), or an open database of
 *  node:sqlite, better-sqlite3 or @libsql/client, which stays open. */
export function sqlite(database: string | object): SqlDriver;
