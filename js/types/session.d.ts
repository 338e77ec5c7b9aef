// Sessions and views of them.

import type { Bytes, Dialect, WireInput } from "./formats.js";
import type { HistoryProvider } from "./history-provider.js";
import type {
  InvocationQuery,
  Message,
  MessageSource,
  MessageWithCalls,
  NewMessage,
  NewToolMessage,
  Part,
  ToolInvocation,
} from "./message.js";
import type { Reducer, ReplayPolicy, Rendered, RenderedBody, RenderRequest } from "./replay.js";
import type { ErrorCode } from "./error.js";
import type { EffectAnswer, PendingRun, ResumeRequest, Run, RunRequest } from "./run.js";
import type { Page } from "./store.js";
import type { Tools } from "./tool.js";

export interface SessionOptions {
  /** A group of sessions with replay settings of its own (`OpenOptions.channels`), and a filter of queries. */
  channel?: string;
  title?: string;
  /** Who owns the conversation's state. It is stored with the next append. Default: the stored one, else `{ kind:
   *  "session" }`. */
  owner?: StateOwner;
  /** The service's answer names a conversation that the session did not send, and history is kept here. "throw": the
   *  run fails with `conversation_conflict` before anything of the answer is stored; the default of a session with an
   *  `owner`. "warn": a finding; the default of a session that chose no owner. "clear": the conversation becomes the
   *  owner, so that later requests contain only what is new; history stays stored. A response id is no conflict. */
  onConflict?: "throw" | "warn" | "clear";
  /** When history is written. Default "run". */
  persistence?: Persistence;
  /** In mode "run": leaves out of history results that no later model call saw (`endsRun`), as a provider that stores
   *  conversations does. Default false. */
  trimTrailingResults?: boolean;
  /** For a run that is cancelled or fails: "discard" (default) leaves history unchanged; "keep" stores the question and
   *  the partial answer with their status. In modes "call" and "result" a run that is cancelled while its answer
   *  streams leaves the inputs of that call in history, which the service has too. */
  onStop?: "discard" | "keep";
  /** Minimum milliseconds between two writes of a run's journal, for stores that charge per write. At most 60000. A
   *  kill loses at most the work of that time. Appends, updates, decisions about calls, results of asynchronous tools
   *  and the end of a run are written at once. Default 0: nothing is lost. */
  flushMs?: number;
  replay?: ReplayPolicy;
  /** Compacts by itself when a run is over whose newest request was large. */
  compaction?: AutomaticCompaction;
  /** History providers of the runs and renders of the session object that this call resolves to. */
  providers?: HistoryProvider[];
  metadata?: Record<string, unknown>;
}

/** "session": history is replayed in full from here. "conversation" and "response": the service keeps it, and a request
 *  contains only what the service has not acknowledged. Services of the dialect "openai-responses" do. Those of
 *  "anthropic" do as "response", with a message thread, of which `previousResponseId` is the id of a message, and those
 *  of "gemini-interactions" with a chain of interactions, of which it is the id of one. Those of
 *  "mistral-conversations" do as "conversation". History is stored here too, so
 *  that the owner can be changed: what the new owner lacks is sent with its first request. A conversation keeps every
 *  answer at once, so `persistence: "run"` acts as "call" with it. A chain of responses continues the newest response
 *  that has an id and is finished. A member of two kinds is `state_owner_conflict`, as is another `conversationId` than the stored one,
 *  and `previous_response_id`, `previous_interaction_id`, `conversation`, `conversation_id` or `thread` in `params`. Reducers shorten only
 *  what the session owns. */
export type StateOwner =
  | { kind: "session" }
  /** The application holds the conversation: the input of each run is a whole wire body, such as `RunResult.replay` of
   *  the last one and the next question. Requests contain nothing of the stored history, which gets each turn once. */
  | { kind: "caller" }
  /** A conversation that other code began. `owner.kind === "conversation" && !owner.auto` narrows to it. */
  | { kind: "conversation"; conversationId: string; auto?: false; onLost?: undefined }
  | {
      kind: "conversation";
      conversationId?: undefined;
      /** The first request begins the conversation, of which the answer has the id ("mistral-conversations"). */
      auto: true;
      /** The service does not have the conversation any more, or other instructions, tools or another model must begin
       *  another one. "restart" (default): the request is sent with the history, and the run reports
       *  `chain_restarted`. "fail": the run fails with `chain_lost`. It is stored with the owner. */
      onLost?: "restart" | "fail";
    }
  | {
      kind: "response";
      previousResponseId: string;
      auto?: boolean;
      /** "fail": a run that the service does not let continue the chain fails with `chain_lost`. Absent: with
       *  `model_error`, or `config_invalid` for other instructions or tools. */
      onLost?: "fail";
    }
  | {
      kind: "response";
      previousResponseId?: undefined;
      auto: true;
      /** The service does not continue the chain: it lost the response (30 days at OpenAI, five minutes at Anthropic,
       *  55 days or one at Google), another request continued it, or other instructions, tools or parameters must begin
       *  another one. "restart" (default): the request is sent again with the history, and the run reports
       *  `chain_restarted`. "fail": the run fails with `chain_lost`, and nothing is sent again. It is stored with the
       *  owner. */
      onLost?: "restart" | "fail";
    };

/** "run": one atomic append when the run succeeds. "call": after each model call its new inputs and its answer, as a
 *  service stores them; results that end the run are not stored. "result": as "call", and each tool result the moment
 *  it exists. In every mode a durable store also keeps a journal of the unfinished run outside history, so that a crash
 *  loses no work. "call" and "result" store what a run that fails later has done; calls without a result are closed in
 *  the next request. */
export type Persistence = "run" | "call" | "result";

/** One conversation. */
export interface Session {
  readonly id: string;
  /** Increases with each append to history; 0 while history is empty. Titles, state and unfinished runs do not change
   *  it. */
  readonly revision: number;
  readonly owner: StateOwner;
  readonly branch: string;
  readonly title: string | null;
  /** Changes what is given; null removes. An archived session is an ordinary one that `sessions()` leaves out unless
   *  it is asked for it, and stays archived when messages are appended. */
  update(fields: {
    title?: string | null;
    channel?: string | null;
    metadata?: unknown;
    archived?: boolean;
  }): Promise<void>;
  /** Replaces `Message.metadata` of a stored message of the branch that is shown: a label, a note, a thumb. Any value
   *  that JSON has, `invalid_input` otherwise; `undefined` and null remove it. What is sent, `revision`, the session's
   *  place in the list and what is unread stay as they are. Of two writers the last one counts. Every branch that
   *  shares the message has the metadata, whether it was forked before or later. `not_found` if the branch that is shown
   *  has no such message, or if it is of a run that has not stored its turn yet. */
  annotate(messageId: string, metadata: unknown): Promise<void>;
  /** Counts the answers that this object has as read: `SessionSummary.unread` of the branch that it shows. What another
   *  tab has stored and this one has not read stays unread. The session keeps its place in the list. Writes nothing if
   *  nothing is unread. */
  markRead(): Promise<void>;
  /** State by key, stored with the session: by the next append, or by `save`. */
  readonly state: StateBag;
  save(): Promise<void>;
  /** Appends messages in a dialect's format. An item of another format is `invalid_input`, and nothing is stored.
   *  `expectedRevision` makes the append conditional (`conflict`). Results get the time `at`, else now; a result of a
   *  stored open call answers that call. If an unfinished run has the call, the rules are those of `answer`:
   *  `wrong_state` if the run takes its tool's own result, or if history does not have the call yet. */
  append(
    body: WireInput,
    dialect: Dialect,
    options?: AppendOptions,
  ): Promise<{ revision: number; messageIds: string[] }>;
  /** Appends neutral messages, with their own ids and times: for migration, images, and parts of the application. What
   *  `messages` or a view of another session returned is appended without loss: an empty session then renders the same
   *  bodies. Of pages, append the oldest first; a page that others precede is `invalid_input` as a whole, so pass its
   *  `items`. A snapshot of a view has only the messages that are loaded, 100 at first: it is `invalid_input` while
   *  `hasOlder` or `loading` is true, but its `messages` alone are appended, without those that precede them. An id
   *  that the session already has is `invalid_input`. Text after a result is another answer of the model, unless the
   *  message was one before: the message `m` becomes `m`, `m.2`, and so on. */
  append(
    messages: readonly (NewMessage | NewToolMessage)[] | Page<MessageWithCalls> | SessionSnapshot,
    options?: AppendOptions,
  ): Promise<{ revision: number; messageIds: string[] }>;
  /** Stores the result of a call that has none, or that has the status "interrupted": of an asynchronous tool
   *  (`Tool.async`), or an imported call that waits for a form on the page. The result of an "interrupted" call
   *  replaces the text that said so, in its place, although the model may have answered that, and a run without `input`
   *  is `invalid_input`; such a run answers only results of calls that the run went on without. `call` is the
   *  invocation's `id`, or a `callId`, which selects the newest call with that id that takes a result. Works from any
   *  tab or process, at any time, also while the run that made the call is under way, interrupted or failed: the result
   *  is stored once, views show it, and the next request of every branch that has the call contains it. `persist` of the
   *  tool is asked what is stored: that of the last run of this session object that had the tool, or of `tools`; if
   *  neither has it, `config_invalid`.
   *  Rejects with `not_found` if no call has the id, `wrong_state` if it has a result, was not started (a tool without
   *  `execute` never is: `Run.answer` its effect), or belongs to a tool without `async` whose run is under way, here
   *  (`Run.answer`) or in another tab or process: that run takes the tool's own result. Once its holder is dead
   *  (`PendingRun.state`), the call is answered here. Of an answer and the result that the tool itself returns, the one
   *  that is stored first counts: a later answer is `wrong_state`, a later result of the tool is set aside, and the run
   *  reports it as `duplicate_result`. */
  answer(
    call: string,
    answer: Extract<EffectAnswer, { type: "tool_result" }> & { finishedAt?: number },
    options?: AnswerOptions,
  ): Promise<{ revision: number }>;
  /** Reads stored messages in pages, the newest page first. Within a page the oldest message is first. `branch` is one
   *  of `branches()`; default the one that is shown. A conflict that has grown has another name: `not_found`. */
  messages(options?: { limit?: number; cursor?: string; branch?: string }): Promise<Page<MessageWithCalls>>;
  /** The session for rendering: messages joined with their calls, the streaming answer, changes of other tabs. One
   *  object for each value of `notify`. */
  view(options?: {
    /** When listeners are called: at each "change", which is the default, or once a "frame" at most, so that a stream
     *  of deltas does not render a page more often than it is drawn. Where no frames are drawn, in a hidden tab for
     *  example, within 0.1 seconds. */
    notify?: "change" | "frame";
  }): SessionView;
  invocations(query?: InvocationQuery): Promise<Page<ToolInvocation>>;
  /** The body of the next request as UTF-8 JSON: history after the replay policy, valid for the dialect, followed by
   *  `input`. `json` is the same as an object, typed by the dialect, or by the type that you name, such as
   *  `render<OpenAI.ChatCompletionCreateParams>(…)`. */
  render<D extends Dialect>(request: RenderRequest & { dialect: D }): Promise<Rendered<RenderedBody<D>>>;
  render<Body extends object>(request: RenderRequest): Promise<Rendered<Body>>;
  run(request: RunRequest): Promise<Run>;
  /** Begins a loop that the application drives itself, with another SDK say. `persistence` is by default the
   *  session's. */
  external(options?: { persistence?: Persistence }): ExternalLoop;
  /** Runs that a crash or a reload interrupted, that failed, that wait for an approval, or that another tab drives
   *  ("live"), and questions that wait for a run. */
  pendingRuns(): Promise<PendingRun[]>;
  /** Resumes a run by its id, or by a snapshot of it. Rejects with `busy` while another tab or process owns it. A run
   *  that is under way in this page already, or is being resumed by another call, is the same `Run` for each call with
   *  its id: nothing runs twice, and the request of the first call counts. One that waits for an approval has no
   *  holder, and is another `Run` each time. Of the request only the input and `persistence` are taken from the store:
   *  pass `instructions`, `tools`, `replay` and all callbacks again, as in `run`. What is left out is missing, and no
   *  error says so: without `instructions` the next request has no system prompt, and a call whose tool is missing
   *  gets an error result. With a snapshot the store need not have the run: its journal is written again, and an empty
   *  session first gets the messages that the run's requests need. A journal that is newer than the snapshot is
   *  continued instead. Rejects with `conflict` if the run has ended in this session or was cancelled, if the session
   *  was cleared or deleted since (it cannot know then), or if it has messages but not the one before the run. Stores
   *  do not coordinate: a snapshot resumed in two stores runs in both. A question that waits ("queued") resolves when
   *  its run begins: after the runs that are under way, and the questions before it that a page waits with. */
  resume(run: string | Uint8Array, request: ResumeRequest): Promise<Run>;
  /** Removes an unfinished run. `keep` stores what the journal has: the question, the complete answers with their
   *  calls, and the answer that a cancellation or a failure cut. The last message has the status "stopped", of a failed
   *  run "failed". Of an answer that was streaming when the tab or process ended, nothing is stored
   *  (`PendingRun.text`). Without it, results that `answer` has stored for its calls are set aside, and reported to
   *  `onWarning` as `orphan_result`. */
  discard(runId: string, options?: { keep?: boolean }): Promise<void>;
  /** Reads what other tabs and processes have appended. */
  refresh(): Promise<{ revision: number }>;
  /** Creates a branch after a message of the branch that is shown, or with `null` one that shares nothing. It is not
   *  shown; `switchTo` shows it. To edit a message or to ask for another answer, see `RunRequest.replace`. `not_found`
   *  if the branch that is shown has no such message. */
  fork(afterMessageId: string | null): Promise<{ branch: string }>;
  /** Shows another branch: by its name, or by the id of one of `Message.siblings`. From now on the session is opened
   *  with it; other open tabs keep the branch that they show. The other side of a conflict is adopted: one append makes
   *  a fork with all that it has, which is shown, and `branches()` lists the fork in its place. `busy` while a run of
   *  this session is under way here. Of a side, `corrupt_record` if a record of it cannot be read, `too_large` if it does
   *  not fit into one value of the store, and `wrong_state` if the session was cleared since. */
  switchTo(branch: string): Promise<void>;
  /** All branches: "main", those that were forked ("fork"), oldest first, and the sides of conflicts ("conflict"). In a
   *  store that cannot exclude a second writer (Workers KV, unstorage), two writers create two sides: every reader
   *  chooses the same one as history, and the other is kept as a "conflict" until `switchTo`, a run or an append adopts
   *  it as a fork. */
  branches(): Promise<Branch[]>;
  /** Shortens what the model is shown: `summarize` sends a request to a model and returns its text, which requests then
   *  contain instead of the completed turns. Everything stays stored and visible, and is sent again where the summary
   *  does not apply: a covered message is missing, or a covered call was answered later. While a run is under way, or
   *  the newest turn waits for results of tools, the compaction is deferred: this session object runs it when the turn
   *  ends and reports a failure as a warning, `callback_failed` or `compaction_failed`. A reload loses `summarize`; the
   *  next call of `compact` then needs no minimum. `callback_failed` if `summarize` throws or returns no text,
   *  `state_owner_conflict` for an owner whose conversation cannot be shortened like this, `config_invalid` for a wrong
   *  option, or if `dialect` is missing and neither a run, a render nor a stored message names one; nothing is stored
   *  then. */
  compact(options: CompactOptions): Promise<{ compacted: boolean; reason: CompactReason }>;
  /** Erases messages physically: from every branch and the other sides of conflicts, with the calls, results and audit
   *  rows of an answer, what was set aside beside them, and compactions that may be made of them; if a later answer has
   *  one, with that answer. The rest of the conversation stays, and the next request is valid without them. Other tabs
   *  and processes read the session anew; results that come later for an erased call are set aside (`orphan_result`).
   *  What a cancelled run has left is removed, as by the next run.
   *
   *  One append, or a few for many messages; if the process is killed in between, the next `session(id)` finishes it.
   *  `not_found` if the session has no message of an id, `busy` while a run is under way, here or elsewhere,
   *  `wrong_state` if a run is not over (resume or discard it first), `corrupt_record` and `unsupported_version` if a
   *  stored record cannot be read, since nobody knows what it has. Nothing is erased then. */
  deleteMessages(ids: readonly string[]): Promise<ErasureReceipt>;
  /** Removes all messages, tool calls and unfinished runs, in one append; title, channel, metadata, owner and state
   *  stay. Other tabs then see an empty session; a write of a tab that has not read it yet is `not_found`. `busy` while
   *  a run is under way, here or elsewhere. */
  clear(): Promise<void>;
  /** The whole session as bytes, for `Rethread.restore`: ids, times, signatures, state and unfinished runs. Opaque and
   *  versioned, with a checksum. The results of tools are in it, credentials are not. `not_found` for a session that is
   *  not stored yet. Values of `state` and the work of a run with `flushMs` that are not stored yet are stored first;
   *  if the store fails to, this rejects with its error, such as `quota_exceeded`. */
  serialize(): Promise<Bytes>;
  /** Calls the listener after each change, in this tab or another. Returns the unsubscribe function. */
  subscribe(listener: () => void): () => void;
  [Symbol.dispose](): void;
}
/** What `deleteMessages` has erased. */
export interface ErasureReceipt {
  /** The ids of the messages: those that were named, then the answers whose compactions may repeat them. */
  messages: string[];
  /** The number of calls, with their results. */
  invocations: number;
  /** The number of records that were rewritten or removed: of the tables "log", "tool_invocations" and "runs", and
   *  "copies", values of earlier appends in a store without `commit`. */
  records: { table: string; count: number }[];
  /** By how many bytes the store's values became smaller. */
  bytes: number;
  /** What may still have a copy, and what to do: "service" (the model's provider), "session_fields" (title, metadata
   *  and state, which are the application's), "exports" (exports, backups, snapshots, copies), "database" (what the
   *  database keeps of overwritten values), "overwritten_values" (the database did not remove them),
   *  "damaged_values" (earlier appends that cannot be read). */
  unreached: { what: string; why: string }[];
}
/** Who compacts. "input": from the messages that are stored here. "previous_response_id": by the service, from its
 *  chain of responses. "provider": by the provider's own compaction, from the messages that are stored here; the
 *  dialects `anthropic` and `openai-responses` have one, others are `config_invalid`. "auto" (default): "input", unless
 *  the chain begins with a response whose content is not stored here.
 *
 *  `summarize` gets with "input" the body of a request for a summary, as UTF-8 JSON, not streamed, and returns the
 *  model's text. With "previous_response_id" it gets the body of a `POST /responses/compact`, and returns the body of
 *  its answer as text. With "provider" the same for OpenAI and xAI; for Anthropic the body of a `POST /v1/messages`,
 *  which needs the header `anthropic-beta: compact-2026-09-04`. So do bodies of other modes for Anthropic that come
 *  afterwards. */
export type Compactor =
  | {
      mode?: "auto" | "input" | "previous_response_id";
      summarize: (body: Bytes, mode: "input" | "previous_response_id") => string | Promise<string>;
    }
  | { mode: "provider"; summarize: (body: Bytes, mode: "provider") => string | Promise<string> };

/** When a run finishes and its newest model call had `tokens` or more, of input with the cached ones and of output, as
 *  the provider reported them, else as estimated, then the session is compacted as by `compact`, in the background: no
 *  run waits for it. A failure is reported to `onWarning`, and the next run that is large tries again. The originals stay
 *  stored. Nothing is asked for where `compact` with this `mode` is `config_invalid` or `state_owner_conflict`. It is
 *  for this session object, as `replay` is: pass it whenever the session is opened. */
export type AutomaticCompaction = Compactor & {
  /** Well above what instructions, tools and a compacted history need: each large run is followed by a compaction. */
  tokens: number;
  /** Reducers of requests whose history is longer than `tokens`, as estimated after those of `replay`: what shortens
   *  them until it is compacted, and where it cannot be. They do not apply to what a service keeps. */
  fallback?: Reducer[];
};

export type CompactOptions = Compactor & {
  /** Compacts less than ten answers, calls and results, too. Default false. */
  force?: boolean;
  /** Compacts if the newest model call had so many tokens or more, instead of ten answers, calls and results: as in
   *  `AutomaticCompaction`, for a process that ends with its run and awaits it. */
  tokens?: number;
  /** The body's dialect. Default: that of the last run or render of this session object, with its `params`, else that
   *  of the newest stored answer, with its model. With "provider" the body also has the instructions and tools of the
   *  last run or render in this dialect. */
  dialect?: Dialect;
  /** Members of the body, such as `model` and `max_tokens`. Only with `dialect`. */
  params?: Record<string, unknown>;
};
/** Compacted: "threshold" (there are ten answers, calls and results, or `tokens`, or more), "forced" (`force`), "was_deferred" (an
 *  earlier call was "deferred"). Not compacted: "below_threshold"; "nothing_new" (no turn is over that is not
 *  compacted); "no_summary" (the provider could not summarize the conversation); "deferred" (made when the turn is
 *  over: by this object, else by the next call that can); "under_way" (another call here); "superseded" (another tab
 *  compacted meanwhile or changed those messages, or a run continued the chain of responses). */
export type CompactReason =
  | "threshold"
  | "forced"
  | "was_deferred"
  | "below_threshold"
  | "nothing_new"
  | "no_summary"
  | "deferred"
  | "under_way"
  | "superseded";
/** A loop that the application drives itself. A crash loses what came after the last stored checkpoint. */
export interface ExternalLoop {
  /** Passes the conversation so far in a dialect's format: what is stored, as it was sent or as `render` gives it,
   *  followed by what is new. In modes "call" and "result" what is new is stored at once, in one append, and a repeated
   *  checkpoint stores nothing; in mode "run" the last checkpoint is stored by `end`. A result of a stored open call
   *  answers that call. System messages at the beginning are stored with the first messages of a session only. A body
   *  that lacks a stored message, or has another one in its place, is `invalid_input`, and nothing is stored. After
   *  `end` it is `wrong_state`. */
  checkpoint(body: WireInput, dialect: Dialect): Promise<void>;
  /** Ends the loop. A loop of mode "call" or "result" that had no checkpoint is reported to `onWarning` as
   *  `no_checkpoint`. If the last checkpoint cannot be stored, call it again. */
  end(): Promise<void>;
}
/** Of `Session.answer`. `tools`: `persist` of the call's tool is asked what is stored of the result. */
export interface AnswerOptions extends Omit<AppendOptions, "branch"> {
  tools?: Tools;
}
export interface AppendOptions {
  /** The `revision` that the session must have, or the append is a `conflict`. All branches count in it. */
  expectedRevision?: number;
  /** One of `branches()`: the messages come to its end, and what is shown stays, here and when the session is opened
   *  again. The branch is read first. Default the branch that is shown. `not_found` if there is none of this name. The
   *  other side of a conflict is adopted first, as by `switchTo`, but not shown. */
  branch?: string;
  /** Stamped on the messages. Whatever it is, they are messages of history as all others, and in all requests. */
  source?: MessageSource;
  at?: number;
  /** Milliseconds that the appended results, and later results of the appended open calls, stay replayable. Stored with
   *  them. Takes precedence over every `ReplayPolicy` and `Tool.freshness` except the request's own policy. `null` or
   *  absent: inherited. */
  freshness?: number | null;
}
/** Values are stored as JSON, as `JSON.stringify` writes them (`undefined` as null). `get` returns a copy. Two tabs
 *  that set different keys both keep their values; of one key the last write stays. */
export interface StateBag {
  get(key: string): unknown;
  set(key: string, value: unknown): void;
  keys(): string[];
}

/** A session for rendering, for React's `useSyncExternalStore` and similar functions: `getSnapshot` returns the same
 *  object until something changes, and unchanged messages are the same objects in each snapshot. */
export interface SessionView {
  getSnapshot(): SessionSnapshot;
  subscribe(listener: () => void): () => void;
  /** Loads an older page; resolves to false if there is none. */
  older(): Promise<boolean>;
  /** Approves a call that is shown with `awaitingApproval`, by its `invocationId` or `callId`, as `Run.approve` does.
   *  Resolves with its run when that is stored. The tool is executed by whoever drives the run: with
   *  `onApproval: "wait"` that goes on; otherwise drive it. A run that waits has no holder: after a reload, or if another
   *  tab had it last, `request` resumes it first, and without a request that is `wrong_state` or `conflict`. Rejects with
   *  `not_found` if no such call waits, and with `busy` if its run is under way in another tab. */
  approve(id: string, request?: ResumeRequest): Promise<Run>;
  /** Rejects a call, as `Run.reject` does; otherwise like `approve`. */
  reject(id: string, reason?: string, request?: ResumeRequest): Promise<Run>;
  /** Resumes the run that is shown, or else the newest unfinished one of the session, as `Session.resume` does.
   *  `not_found` if there is none. */
  resume(request: ResumeRequest): Promise<Run>;
}
export interface SessionSnapshot {
  loading: boolean;
  revision: number;
  /** The branch that is shown. That of a run which replaces a message has its name with its first append; until then
   *  it is the name of the branch before. */
  branch: string;
  hasOlder: boolean;
  /** Set while the store fails to read the session: `messages` may lack some. The next call that reads tries again,
   *  `refresh` for example. */
  readError?: { code: ErrorCode; message: string };
  /** History, followed by turns that are not stored in it, oldest first: of runs that were interrupted or wait for an
   *  approval, until they are resumed or discarded; of the last run if it failed or was cancelled, also only until the
   *  next run begins; and of a live run (of this tab or another). */
  messages: readonly ViewMessage[];
  /** The questions that wait for the run before them (`whenBusy: "queue"`), the first one first, each until its run
   *  begins, or cannot: those of this page, and those that are stored, of other pages and of pages that were killed.
   *  The first message of a question has the same id here and in `messages`, unless it is the end of a conversation
   *  that the application owns; its `parentId` is not known yet. */
  queued: readonly ViewMessage[];
  /** The newest run whose turn is shown. A "running" run without `cancel` runs in another tab. `error` is set for a
   *  failed run, also if history keeps its turn (`onStop: "keep"`): then until the next run begins or the page is
   *  reloaded. */
  run: {
    id: string;
    status: Run["status"] | "interrupted";
    retryAt?: number;
    error?: { code: ErrorCode; message: string };
    /** Cancels the run. Present if this tab runs it. */
    cancel?: () => Promise<void>;
  } | null;
}
/** An incomplete answer has the status "stopped" (cancelled), "failed" (the run failed) or "truncated": the provider
 *  cut it at its length limit, or its tab closed or crashed, or its run was disposed, while this page showed it. The
 *  latter is stored nowhere, and gone after a reload. Calls of such a turn that started without a result are "aborted"
 *  or "interrupted". */
export type ViewMessage = Omit<Message, "parts"> & {
  /** True if the message is stored in history. */
  saved: boolean;
  parts: readonly (
    | Exclude<Part, { type: "tool_call" }>
    | {
        type: "tool";
        call: ToolInvocation /** True if the call waits for an approval. */;
        awaitingApproval: boolean /** True if the run went on without the result of the call, which is still to come. */;
        awaitingResult: boolean;
      }
  )[];
};
export interface Branch {
  branch: string;
  kind: "main" | "fork" | "conflict";
  parent: string | null;
  /** The id of the last message that it shares with its parent; `null` if there is none. */
  forkedAfter: string | null;
  createdAt: number;
  messageCount: number;
  /** The name that the conflict had from which it was adopted. `switchTo` takes this name as well, and
   *  `messages({ branch })` reads with it what the side has. */
  adopted?: string;
  /** Its record cannot be read, and nothing else is known of it; "main" can be shown all the same. */
  damaged?: true;
}
