// Opening a store, and what is common to all its sessions.

import type { KvStore } from "../stores/kv-store.js";
import type { LogStore } from "../stores/log-store.js";
import type { SqlDriver } from "../stores/sql-driver.js";
import type { ErrorCode } from "./error.js";
import type { Finding } from "./formats.js";
import type { InvocationQuery, ToolInvocation } from "./message.js";
import type { PlatformCryptoKey, PlatformReadableStream } from "./platform.js";
import type { ReplayPolicy } from "./replay.js";
import type { PendingRun, ResumeRequest, Run } from "./run.js";
import type { Session, SessionOptions } from "./session.js";

/** Opens a store. Loads the wasm if `init` has not been called. */
export function open(options?: OpenOptions): Promise<Rethread>;

export interface OpenOptions {
  /** Default: "indexeddb" in a browser, "memory" elsewhere. Drivers: "rethread/sqlite", "rethread/postgres",
   *  "rethread/cloudflare", "rethread/redis", "rethread/unstorage". To write your own, see docs/stores.md. */
  store?: "indexeddb" | "localstorage" | "memory" | SqlDriver | KvStore | LogStore;
  /** Name of the IndexedDB database, or of the keys in localStorage. */
  name?: string;
  /** "relaxed" (default): a write survives the end of the tab, the process and the browser. "strict": it also
   *  survives a power failure, because each write waits for the disk. A store that cannot guarantee it is rejected
   *  with `config_invalid`. */
  durability?: "relaxed" | "strict";
  /** On platforms without locks that show who is alive: milliseconds for which the holder of a run counts as alive
   *  after its last write (100 to 86400000, default 30000). Use the same value in every process. The holder renews
   *  the lease during the run. A holder that was frozen while another process took over writes nothing, and its run
   *  ends "failed" with `conflict`. A lease that this `open` wrote, and of which the reply was lost, does not hold up
   *  its own calls. Holders of answers of `rethread/ai-sdk` have it, too, with another default. */
  leaseMs?: number;
  /** How long a call of a driver or of a store of your own may take, in milliseconds (10 to 86400000, default 60000).
   *  Then it fails with `store_error`. `details.outcome` is "unknown" if it may write: it may be stored, also later;
   *  "none" if it reads. An append is repeated once, under the name of its operation, so that it is stored once. */
  storeTimeoutMs?: number;
  /** Encrypts what is stored with AES-GCM: heads with titles, messages, journals of runs, payloads of tools. `key` is a
   *  CryptoKey of AES-GCM that need not be extractable, with the usages "encrypt" and "decrypt" or "wrapKey" and
   *  "unwrapKey". It wraps a key for each session. Sessions of `previous` keys open as well, and their next write wraps
   *  their key with `key`. With another key, or none, a session rejects with `wrong_key`, and nothing is changed.
   *  Session ids, channels, times of change, what is archived, the audit table's index (tool, status, channel, time),
   *  sizes and numbers stay readable;
   *  `serialize`, `exportSession` and snapshots are not encrypted. See docs/encryption.md. */
  encryption?: { key: PlatformCryptoKey; previous?: PlatformCryptoKey[] };
  /** Replay settings of every session, and by channel (`SessionOptions.channel`). */
  replay?: ReplayPolicy;
  channels?: Record<string, ReplayPolicy>;
  /** Makes titles: called after a run has finished in a session without a title, with the first question and answer. It
   *  may call a model: nothing waits for it, neither the run nor `close`. What it returns is stored, on one line of at
   *  most 200 characters, if the session still has no title and the exchange was not erased; null leaves it without.
   *  What it throws is the warning `callback_failed`. As long as there is no title, it is called again after the next
   *  run that finishes; not while a call for the session has not returned here, 5 minutes at most. Of several tabs,
   *  each may call it once at a time, after its own runs; the first title that is stored stays. */
  titleSession?: (exchange: FirstExchange) => string | null | undefined | Promise<string | null | undefined>;
  /** The clock and the source of ids, for tests. An id that is already in use (after a reload, in another tab) gets
   *  a suffix. */
  now?: () => number;
  newId?: () => string;
  onWarning?: (warning: Finding) => void;
}

/** An open store. */
export interface Rethread {
  /** Opens a session, or returns the open one. If the store fails to read a part of it, the session has the rest:
   *  that is reported to `onWarning` and in `status` as `read_failed`, `messages`, `render` and the view give the
   *  rest, and writes are rejected with the store's error. Each call reads again what is missing. Rejects only if
   *  nothing can be read. After a deletion (in another tab, or of the whole database) the old `Session` rejects with
   *  `not_found`; this call creates a new session with the same id. */
  session(id: string, options?: SessionOptions): Promise<Session>;
  /** Sessions by recency: the one whose history changed last first, of the same millisecond by id. `limit` is the most
   *  in a page, 1 to 10,000, by default 100. `archived` is false by default: archived ones are left out; true lists them
   *  alone, "all" both. A session that moves to the front while pages are read may be missing in the further pages, and
   *  is in the next first page; each other one is listed once. Which stores have an index of it: docs/stores.md. */
  sessions(query?: {
    channel?: string;
    archived?: boolean | "all";
    limit?: number;
    cursor?: string;
  }): Promise<Page<SessionSummary>>;
  /** Sessions that have all words of `text` in their title, or in what the user and the model said in the branch that is
   *  shown: first those whose title has all, then by recency. Words are compared whole, without case and accents; the
   *  last one, if nothing follows it, also finds words that begin with it, from four letters on. In scripts without
   *  spaces, and in Korean, each pair of neighbouring characters is a word. A text without a letter or digit finds
   *  nothing; more than 64 words are `invalid_input`. `limit` is the most hits in a page, 1 to 100, by default 20. A page
   *  may have fewer hits, or none, and a `cursor`: the texts of 200 sessions at most are read for it. `channel` and
   *  `archived` are those of `sessions`. Reasoning, and what tools were called with and returned, is not searched. Texts
   *  that cannot be read are reported to `onWarning` and in `status`. See docs/list-and-search.md. */
  search(
    text: string,
    options?: { channel?: string; archived?: boolean | "all"; limit?: number; cursor?: string },
  ): Promise<Page<SearchHit>>;
  /** Erases the oldest turns of sessions physically, as `Session.deleteMessages` does: those whose last message is
   *  `olderThan` milliseconds old or more, except the newest `keepNewestTurns` (1 or more) of each branch; one of the two
   *  is needed (`config_invalid`). A turn is erased with its calls and results. A turn with a call that has no result yet
   *  is kept, and so are those after it, and what a branch shares with another one that keeps it. `session` and `channel`
   *  select sessions; with `dryRun` nothing is erased. `removed` counts messages, `left` those that the branches of a
   *  session still have: an empty session is kept, with its title, until `deleteSession`. `failed` has the sessions that
   *  were not changed, and why, such as `wrong_state` for a run that is not over. See docs/erasure.md. */
  prune(options: {
    olderThan?: number;
    keepNewestTurns?: number;
    session?: string;
    channel?: string;
    dryRun?: boolean;
  }): Promise<{
    removed: number;
    sessions: { session: string; removed: number; left: number }[];
    failed: { session: string; code: ErrorCode; message: string }[];
  }>;
  /** Wraps the key of each session with `encryption.key`, where one of `encryption.previous` had wrapped it, and writes
   *  nothing else. `open` begins the same by itself, a second later, if `previous` has keys; this one says when it is
   *  done: with nothing in `failed`, and if no process with another `key` is left when it begins, `previous` is no
   *  longer needed. `rotated` counts the sessions that were written now. `failed` has the others: `wrong_key` for a
   *  session of none of the keys, `corrupt_record` for a damaged head. Without encryption there is nothing to do.
   *  See docs/encryption.md. */
  rotateKeys(): Promise<{ rotated: number; failed: { session: string; code: ErrorCode; message: string }[] }>;
  deleteSession(id: string): Promise<void>;
  /** The session as JSON Lines that a person can read: a line for the session, one for each append, audit row and
   *  journal entry, and an end. Versioned, and lossless: ids, times, signatures, state and unfinished runs are in
   *  it, as bytes in base64, which `importSession` reads; the owner, messages, calls and journal entries are also in
   *  words. `not_found` for a session that is not stored. What an open session has not stored yet is stored first,
   *  and an error of the store rejects, as in `Session.serialize`. */
  exportSession(id: string): Promise<string>;
  /** Stores what `exportSession` returned, in one append, and opens it; `id` is the new session's id. `conflict` if
   *  a session of this id exists. Lines that were cut off or edited, or are of two exports, are `invalid_input`
   *  (`details.line`), another version is `unsupported_version`. */
  importSession(lines: string, options?: { id?: string }): Promise<Session>;
  /** Stores what `Session.serialize` returned, in one append, and opens it. `conflict` if a session of this id
   *  exists. Bytes that are damaged or incomplete are `invalid_input`, another version is `unsupported_version`. A
   *  session that is restored twice is two sessions: an unfinished run in it can be resumed in each. */
  restore(serialized: Uint8Array, options?: { id?: string }): Promise<Session>;
  /** Copies the branch that a session shows, up to and with the message `until`, or all of it, and opens the copy.
   *  Messages, calls and results keep ids, times and signatures, and the audit rows are copied. Results of copied calls
   *  are copied whenever they came. Title, channel, metadata and state bag are those of the session now; the owner of
   *  the copy is the session. Not copied are unfinished runs, other branches, and compactions that were stored after
   *  the message that follows `until`. `id` is the copy's id, a random one by default: pass one if you may have to
   *  repeat the copy. `not_found` for a session that is not stored, and for a message that the branch does not have;
   *  `conflict` if a session with the id of the copy exists. It is written in one append. See
   *  docs/copies-and-backups.md. */
  copy(session: string, options?: { until?: string; id?: string }): Promise<Session>;
  /** All sessions that are stored, as a stream of text, JSON Lines: each chunk is a session as `exportSession` returns
   *  it, with a line before it, and the first and last chunks are a line. One session is in memory at a time, and each
   *  is as it was when it was read. One that cannot be read (of a newer version, with another key) has its error in
   *  its place, what is damaged in one is said beside it, and `restoreBackup` reports both; an error of the store is
   *  that of the stream. A backup that was cut off is continued by appending `backup({ after })` to what there is:
   *  `after` is the id of the last session that is whole, in the order of the store (`not_found` if that does not
   *  list it). It is not encrypted. See docs/copies-and-backups.md. */
  backup(options?: { after?: string }): PlatformReadableStream;
  /** Restores what `backup` returned, as text or bytes in any chunks, into this store, of whatever kind: each session
   *  in one append. `onExisting` says what happens to a session whose id is stored: `"skip"` (default) keeps the
   *  stored one, so that a restore which failed is repeated; `"replace"` puts it in the place of the stored one in
   *  one append, unless a run of that is under way, that is of a newer version, or this one is damaged; `"copy"` gives
   *  it a new id. `report` has `not_restored` for each session that is missing, damaged or rejected, then
   *  `restored_as_copy`, each up to 1,000. A text that is no backup is `invalid_input`, and so is one that was cut off,
   *  after its sessions were restored (`details.sessions`, `details.skipped`, `details.report`); another version is
   *  `unsupported_version`. */
  restoreBackup(
    backup: PlatformReadableStream | AsyncIterable<string | Uint8Array>,
    options?: { onExisting?: "skip" | "replace" | "copy" },
  ): Promise<{ sessions: number; skipped: number; report: Finding[] }>;
  /** The audit table over all sessions: every stored invocation, whether or not it is replayed. */
  invocations(query?: InvocationQuery): Promise<Page<ToolInvocation>>;
  /** Unfinished runs of all sessions: interrupted, failed, queued, waiting for an approval, or running in another
   *  tab. */
  pendingRuns(query?: { session?: string }): Promise<PendingRun[]>;
  /** Resumes every interrupted run, once: a run that is under way in this page, or that another call resumes, is left
   *  to it, so that an effect which React's StrictMode runs twice resumes nothing twice. Drive what it returns. `request` is
   *  that of all runs, or a function that returns it for each, or null to leave the run pending. Runs that another tab
   *  has resumed meanwhile are left out; `failed` has those that could not be resumed, with the reason: `busy` if another
   *  run of the session is under way here. Runs that failed, and those that wait for an approval, are not resumed: see
   *  `Session.resume` and `SessionView.approve`. Sessions that are not open are opened without options: open those that
   *  have some before, and pass `providers` in the request. `queued` has the questions that wait for a run, each
   *  session's in the order in which they were asked. `resume()` takes one up and resolves when its run begins: call it
   *  for each without awaiting it, and drive the run then. It resolves with null if another tab has it, or it waits no
   *  more. One that is not taken up waits on. */
  resumeAll(
    request: ResumeRequest | ((pending: PendingRun) => ResumeRequest | null | Promise<ResumeRequest | null>),
    query?: { session?: string },
  ): Promise<{
    runs: Run[];
    queued: { session: string; run: string; resume: () => Promise<Run | null> }[];
    failed: { session: string; run: string; error: unknown }[];
  }>;
  /** Calls the listener after a change of any session, in any tab. Returns the unsubscribe function. */
  subscribe(listener: (change: { session: string; revision: number; deleted?: boolean }) => void): () => void;
  /** Asks the platform to keep the data (navigator.storage.persist). */
  persist(): Promise<boolean>;
  status(): Promise<StoreStatus>;
  /** Rejects what is under way with `closed`, also what waits for a function of the application, such as `provide`
   *  or a reducer. What waits for the store is rejected when the store answers, or after `storeTimeoutMs`. A store
   *  that does not answer is waited for that long for the last writes of its runs, and as long again for its own
   *  `close`, which then rejects with `store_error`. */
  close(): Promise<void>;
  [Symbol.asyncDispose](): Promise<void>;
}
/** A page of a list. `cursor` selects the next page; `null` after the last one. */
export interface Page<T> {
  items: T[];
  cursor: string | null;
}
export interface StoreStatus {
  store: string;
  persisted: boolean | null;
  usageBytes: number | null;
  quotaBytes: number | null;
  /** "degraded": unreadable data was rebuilt or left out, or the store fails to read (`read_failed`, until a read
   *  succeeds), see `findings`. "evicted": the platform has deleted the database, or a session that was open is gone
   *  without having been deleted (`FLUSHALL`): calls of that session reject with `evicted`, and opening it again
   *  begins a new one. "read_only": a newer version of rethread has written to an open session. */
  state: "ready" | "degraded" | "evicted" | "read_only";
  findings: Finding[];
}
/** A session that was found. `title` is set if a word is in the title; `messages` are the three with the most words, of
 *  as many the newest first. */
export interface SearchHit {
  session: SessionSummary;
  title: Excerpt | null;
  messages: (Excerpt & { messageId: string; role: "user" | "assistant" })[];
}
/** A part of a text, with "…" where it is cut. `ranges` are what was found in it: start and end as `slice` takes them, in
 *  order, without overlaps. The text is as it was written, by whomever: escape it in a page. */
export interface Excerpt {
  text: string;
  ranges: [start: number, end: number][];
}
/** What `OpenOptions.titleSession` gets. */
export interface FirstExchange {
  /** The session's id. */
  session: string;
  channel: string | null;
  /** The first text of the user, whole. */
  input: string;
  /** The first text of the assistant after it. */
  answer: string;
}
/** What a list shows of a session, from its head alone: no history is read. */
export interface SessionSummary {
  id: string;
  channel: string | null;
  title: string | null;
  /** Milliseconds since 1970. */
  createdAt: number;
  /** When history changed last, in milliseconds since 1970; before that, when the session was created. A title, the
   *  state, archiving and the steps of a run that is not in history yet do not change it. */
  updatedAt: number;
  revision: number;
  messageCount: number;
  /** The newest text of the branch that was written or chosen last, the user's or the assistant's: on one line, at
   *  most 140 characters, of which the last is "…" if there is more. Null if there is no text. It is text of users and
   *  models: escape it. Questions of runs that have stored nothing yet are not in it. */
  preview: { role: "user" | "assistant"; text: string } | null;
  /** Answers with a text that were stored in that branch since `Session.markRead`. The user's messages do not count,
   *  nor do answers that only call tools. */
  unread: number;
  pendingRuns: number;
  /** Calls that wait for a person's approval, also in runs of other tabs and processes: `openCalls` of `pendingRuns()`
   *  has them. Those of a run that failed count again when it is resumed. */
  pendingApprovals: number;
  /** True if `sessions()` leaves it out unless it is asked for it. */
  archived: boolean;
  metadata: unknown;
}
