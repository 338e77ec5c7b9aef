/** A SQL database. The engine defines schema, migrations and statements; a driver only runs them. */
export interface SqlDriver {
  dialect: "sqlite" | "postgres";
  /** Runs the statements in order in one transaction and returns the rows of each. A failure rolls back all of them.
   *  Parameters are `?` in SQLite, `$1`, `$2`, … in PostgreSQL. An error whose `code` is "busy", "quota_exceeded",
   *  "closed", "too_large" or "unavailable" keeps it; with `details: { outcome: "none" }` an unavailable database has
   *  written nothing. */
  transaction(statements: { sql: string; params: SqlValue[] }[]): Promise<SqlRow[][]> | SqlRow[][];
  /** `maxValueBytes`: larger values are split into rows; default 1 MiB. `maxParams`: parameters per statement; default
   *  100. */
  limits?: { maxValueBytes?: number; maxParams?: number };
  /** Only if no other process can open the database, as in a Durable Object: the set in which the engine keeps the ids
   *  of active runs. Any other unfinished run was interrupted and can be resumed at once. All drivers of one database
   *  must share the set. */
  ownedRuns?: Set<string>;
  /** Notifies stores that are open elsewhere of changes, if the database supports it. */
  changes?: ChangeFeed;
  /** Called once by `open`, with its option. "strict": a committed transaction is on disk. Throws if that cannot be
   *  guaranteed; `open` rejects "strict" for a driver without this method. */
  setDurability?(durability: "relaxed" | "strict"): Promise<void> | void;
  /** Called after `deleteMessages`, and awaited: removes what the database still has of overwritten values, as far as
   *  it can. In SQLite that is the write-ahead log. */
  eraseOverwritten?(): Promise<void> | void;
  /** Called when the store is closed, and awaited. */
  close?(): Promise<void> | void;
}
/** Sends notices from one open store to the others of the same data. The engine defines their text. */
export interface ChangeFeed {
  /** Calls the listener with each notice, including those of this store, or with null if some may have been missed.
   *  Returns the unsubscribe function. */
  subscribe(listener: (notice: string | null) => void): Promise<() => void> | (() => void);
  /** Sends a notice to the others. In PostgreSQL the engine's statements send those of appends, in the transaction of
   *  the append. */
  publish?(notice: string): Promise<void> | void;
}
export type SqlValue = string | number | Uint8Array | null;
export type SqlRow = Record<string, SqlValue>;
