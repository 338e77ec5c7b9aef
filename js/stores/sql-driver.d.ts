/** A SQL database. Schema, migrations and statements are the engine's; a driver only runs them. */
export interface SqlDriver {
  dialect: "sqlite" | "postgres";
  /** Runs the statements in order in one transaction and returns the rows of each. A failure rolls back all of them. Parameters are
   *  `?` in SQLite, `$1`, `$2`, … in PostgreSQL. An error whose `code` is "busy", "quota_exceeded", "closed", "too_large" or
   *  "unavailable" keeps it; with `details: { outcome: "none" }` an unavailable database has written nothing. */
  transaction(statements: { sql: string; params: SqlValue[] }[]): Promise<SqlRow[][]> | SqlRow[][];
  /** Default: values of 1 MiB (larger ones are split into rows), 100 parameters a statement. */
  limits?: { maxValueBytes?: number; maxParams?: number };
  /** Only where nobody else can have the database open, as in a Durable Object: the runs that are under way here, which the engine keeps
   *  in it. Any other unfinished run was cut off and can be resumed at once. All drivers of one database share the set. */
  ownedRuns?: Set<string>;
  /** How stores that are open elsewhere hear of changes, if the database has a way. */
  changes?: ChangeFeed;
  /** Called once by `open`, with its option. "strict": what a transaction has committed is on the disk. Throws if it cannot be; a driver
   *  without it is refused for "strict". */
  setDurability?(durability: "relaxed" | "strict"): Promise<void> | void;
  /** Called when the store is closed, and awaited. */
  close?(): Promise<void> | void;
}
/** Carries hints from one open store to the others of the same data. The text is the engine's. */
export interface ChangeFeed {
  /** Calls the listener with each notice, its own ones too, or with null if some may have been missed. Returns the function that ends it. */
  subscribe(listener: (notice: string | null) => void): Promise<() => void> | (() => void);
  /** Sends a notice to the others. In PostgreSQL the engine's statements send those of appends, in the transaction of the append. */
  publish?(notice: string): Promise<void> | void;
}
export type SqlValue = string | number | Uint8Array | null;
export type SqlRow = Record<string, SqlValue>;
