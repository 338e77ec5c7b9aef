/** A store of your own: a log per session, appended to atomically if the head has the expected revision. The engine
 *  encodes and interprets the bytes; the store keeps them. docs/stores.md shows one, `rethread/testing` checks it. */
export interface LogStore {
  /** Called once by `open`, which rejects a store without `compareAndAppend`, `atomicBatch` or `readYourWrites`. */
  capabilities(): LogStoreCapabilities;
  /** Null for a session that is absent or was deleted. */
  head(
    session: string,
  ): Promise<{ revision: number; value: Uint8Array } | null> | { revision: number; value: Uint8Array } | null;
  /** Writes the batch if the session has the expected revision: 0 if it is absent, that of its tombstone if it was
   *  deleted. The new revision is `expectedRevision + 1`, or `batch.atLeast` if that is higher. Otherwise it changes
   *  nothing and returns the conflict. Repeating an `operation` returns its revision again, as long as fewer than 16
   *  others followed. A call that takes longer than `storeTimeoutMs` of `open` is repeated while it is still
   *  executed. */
  append(
    session: string,
    expectedRevision: number,
    batch: LogBatch,
    operation: string,
  ): Promise<LogAppendOutcome> | LogAppendOutcome;
  /** Every record whose [key, lastKey] overlaps the inclusive range, in key order. Stops after the record with which
   *  the values reach `limitBytes`; returns at least one record if any matches. */
  read(session: string, query: LogQuery): Promise<LogRecord[]> | LogRecord[];
  /** Sessions in any stable order, at most `limit`; with a channel, those whose last batch had it. */
  sessions(query: { cursor: string | null; limit: number; channel?: string }): Promise<LogSessionPage> | LogSessionPage;
  /** Rows of the table "tool_invocations" whose index matches every member of the query, ordered by session and key, at
   *  most `limit`. Throws for a cursor that it did not return. */
  invocations(query: LogInvocationQuery): Promise<LogInvocationPage> | LogInvocationPage;
  /** Removes the records and leaves a tombstone with the next revision, so that a stale writer cannot restore the
   *  session. Does nothing for an absent session. */
  deleteSession(session: string): Promise<void> | void;
  /** Called when the store is closed, and awaited. */
  close?(): Promise<void> | void;
}
export interface LogStoreCapabilities {
  compareAndAppend: boolean;
  atomicBatch: boolean;
  readYourWrites: boolean;
  /** The largest value, in bytes; at least 4096. Larger records are rejected with `too_large`. `Infinity` for no
   *  limit. */
  maxValueBytes: number;
  /** True if the data outlives the process: each call of `open` finds what an earlier one wrote. Default true. */
  durable?: boolean;
  /** True if acknowledged data is on disk: required for `durability: "strict"`. Default false. */
  strict?: boolean;
}
/** `occupied`: a record has the key of a new one, so the session's head is older than its tables. Nothing was
 *  written. */
export type LogAppendOutcome = { revision: number } | { conflict: number } | { occupied: true };
export type LogTable = "log" | "tool_invocations" | "runs";
export interface LogRecord {
  table: LogTable;
  /** From 0 to 2^53 - 1, unique in its session and table. */
  key: number;
  /** The last key of a segment, which contains all records from `key` to this one. */
  lastKey?: number;
  /** The indexed fields of a row of "tool_invocations". `at` is in milliseconds since the epoch. */
  index?: { tool: string; status: string; channel: string | null; at: number };
  value: Uint8Array;
  /** In a batch: true if it may replace an existing record of its key, including the index. */
  replace?: boolean;
}
/** `remove` is applied first, and may name absent records. `head` is the new head; `atLeast` is the lowest new
 *  revision. */
export interface LogBatch {
  head: Uint8Array;
  channel: string | null;
  atLeast: number;
  put: LogRecord[];
  remove: { table: LogTable; key: number }[];
}
export interface LogQuery {
  table: LogTable;
  from: number;
  to: number;
  reverse: boolean;
  limitBytes: number;
}
export interface LogSessionPage {
  items: { id: string; revision: number; head: Uint8Array }[];
  cursor: string | null;
}
/** `since` and `until` are inclusive, in milliseconds since the epoch. */
export interface LogInvocationQuery {
  session?: string;
  tool?: string;
  status?: string;
  channel?: string;
  since?: number;
  until?: number;
  cursor?: string;
  limit: number;
}
export interface LogInvocationPage {
  items: (LogRecord & { session: string })[];
  cursor: string | null;
}
