// Runs, and `drive` of "rethread/host".

import type { ErrorCode, ErrorInfo } from "./error.js";
import type { Bytes, Dialect, Finding, JsonObject, StreamEvent, Usage, WireBody, WireInput } from "./formats.js";
import type { HistoryProvider } from "./history-provider.js";
import type { InputPart, Message, MessageWithCalls, Part } from "./message.js";
import type { PlatformAbortSignal, PlatformFetch } from "./platform.js";
import type { PrefixReuse, ReplayPolicy } from "./replay.js";
import type { Persistence } from "./session.js";
import type { Tools } from "./tool.js";

export interface ProviderRequest {
  dialect: Dialect;
  /** Must not contain credentials: a key, a user name or a fragment in the URL is `config_invalid`. Pass keys in
   *  `headers` of `drive`. Gemini's URL names the model and selects streaming:
   *  `…/models/M:streamGenerateContent?alt=sse`; without `alt=sse` it streams one JSON array. */
  url: string;
  /** Gemini: `model` is not written to the body; `temperature`, `max_tokens` and similar members are written to
   *  `generationConfig`. Members that hold credentials (`api_key`, `headers`, `extra_headers`, `authorization` of an
   *  MCP tool, `authorization_token` of an MCP server, and similar) are sent but never stored; pass them to `resume`
   *  again (`PendingRun.withheld` lists them). */
  params: JsonObject;
  stream?: boolean;
  /** Stored with the run. Only headers that are known to hold no credential, such as `anthropic-version`,
   *  `anthropic-beta`, `openai-organization`, `openai-project`, `http-referer`, `x-title`, `user-agent`,
   *  `x-goog-user-project` and `traceparent`, and those in `allowHeaders`. Any other is `config_invalid`: pass it in
   *  `headers` of `drive`. */
  headers?: Record<string, string>;
  /** Names of additional `headers` that hold no credential. */
  allowHeaders?: string[];
  /** Settings for servers that differ from the dialect. */
  compat?: {
    reasoningField?: "reasoning_content" | "reasoning" | "drop";
    streamUsage?: boolean;
    systemRole?: "system" | "developer";
  };
}
export interface RunRequest {
  input?: string | InputPart[] | WireInput;
  inputId?: string;
  /** The branch to continue; default the one that is shown. The run shows it. */
  branch?: string;
  /** Edit or regenerate: the id of the message of the branch that is shown which this turn stands beside. With `input`
   *  it names the question that is replaced; without it any message of a turn, whose question stays and is answered
   *  again. What is there stays, and the new turn is in a branch of its own, which is stored with the turn: a run that
   *  fails leaves none, and the branch before is shown again. With owner "response" the chain goes on from the response
   *  before, and a conversation that the session began (`auto`) is followed by another; `config_invalid` if the service
   *  keeps another one, or the application does. */
  replace?: string;
  /** If another run of this session is in progress: "throw" (default) rejects with `busy` if it is in this tab, or if a
   *  run is queued here, and, if a service keeps the conversation, also if it is in another tab or process; "queue"
   *  waits for it, in whatever tab or process it is, so that the question is stored after its answer. A run that was
   *  killed is waited for until its lock is free or its lease has ended, one that waits for an approval is not. Of the
   *  runs that wait in several tabs and processes one begins at a time, in the order in which they were stored. Until
   *  its run begins, the question is in `SessionSnapshot.queued`. It is stored meanwhile: if its page is killed or its
   *  store closed, it is in `pendingRuns` with the state "queued", and `resume` continues it. While the store fails, a
   *  stored question waits on. If `run` rejects, nothing of it is stored, so it may be sent again, except after
   *  `closed` (it waits in `pendingRuns`, if it was stored by then), `conflict` (another tab or process took it over,
   *  and may have answered it, or the session was changed so that it must be asked anew: the message says which), and
   *  an error whose `details.outcome` is "unknown" (look in `pendingRuns` before you send it again). `not_found`: it
   *  was discarded here (with `keep`, it is stored), or its session deleted. `aborted`: its run was cancelled before it began. A question that is
   *  only in memory begins after those that are stored, also if it was sent before them, and is lost with its page:
   *  one with `replace`, one for another `branch` than that which is shown, one asked while the first answer of a new
   *  branch comes in, one with tool calls, and one of a conversation that the application holds. */
  whenBusy?: "throw" | "queue";
  onStop?: "discard" | "keep";
  instructions?: string;
  provider: ProviderRequest;
  /** Encoded as the dialect's own tool definitions and added to `params.tools`. A name that occurs in both is
   *  `config_invalid`. */
  tools?: Tools;
  /** Replaces the history providers of the session for this run. */
  providers?: HistoryProvider[];
  /** Maximum number of model calls. */
  maxTurns?: number;
  replay?: ReplayPolicy;
  /** Default: the session's; for `resume`, the one that the run began with. */
  persistence?: Persistence;
  /** Called before each model call with the body that is about to be sent, without credentials; a retry does not call
   *  it again. It returns the body to send: it may drop, reorder and change items of the list and other members, but
   *  add no item. What it returns unchanged keeps its bytes; history is not changed. If the service keeps the
   *  conversation, messages that it drops are sent with the next request. The run fails, before anything is sent, with
   *  `callback_failed` if it throws or returns no object, `state_owner_conflict` if it changes the reference to what
   *  the service keeps, and `invalid_input` (`details.path` is the pointer to the item) for any other body that cannot
   *  be sent. */
  inputFilter?: (body: WireBody) => WireBody | Promise<WireBody>;
  /** `attempts`: highest number of attempts of a model call, including the first (default 3). `backoffMs`: pause before
   *  the second attempt (default 500); it doubles, and a `Retry-After` of up to a day replaces it (the run fails
   *  instead of a longer one). A conversation that the service reports as locked by another request gets at least 4
   *  attempts, after pauses of 1, 2 and 4 seconds, unless `attempts` is 1. A call is not repeated after it was aborted,
   *  or after the stream of its answer has begun. A request that changes a conversation which the service keeps is
   *  repeated if the service did not process it; where that is not known, `approveUnsafeReplay` decides. It returns
   *  true or false synchronously: if it throws or returns anything else, such as a promise, it does not approve, and
   *  warns ("callback_failed"). Without an approval the run fails with `replay_unsafe`. */
  retry?: {
    attempts?: number;
    backoffMs?: number;
    approveUnsafeReplay?: (info: { status?: number; error: { code?: string; message: string } }) => boolean;
  };
  /** Maximum bytes of one model response; a larger one fails the run with `too_large`. Default 32 MiB, at most 256
   *  MiB. */
  maxResponseBytes?: number;
}

/** An agent that a run is handed off to. */
export interface Handoff {
  name: string;
  /** The system message of the new agent. Absent: none; that of the previous agent is not kept. */
  instructions?: string;
  /** The tools of the new agent. Absent: none. Tools of `provider.params` remain; a `tool_choice` that names a tool
   *  which the agent does not have is dropped. */
  tools?: Tools;
  /** Selects what the agent sees of the conversation so far: called once, before its first model call, and again by
   *  `resume`. Messages may be left out, reordered, changed, and added without `id`; calls and results may be left out.
   *  Of the user at least the newest message stays. If it throws or returns no messages, the run fails with
   *  `callback_failed`; if it returns a message twice, a call or a result that the message did not have, or messages of
   *  the user of which none has text, an image or a file, with `invalid_input`. Nothing is sent then. If a service owns
   *  the conversation, the handoff is rejected with `handoff_filter_not_supported`. */
  inputFilter?: (messages: MessageWithCalls[]) => HandoffMessage[] | Promise<HandoffMessage[]>;
  /** Sends the conversation so far, as the filter left it, as one message, before the user's newest one. Ignored with a
   *  warning if a service owns the conversation. Default false. */
  nestHistory?: boolean;
}
/** A message that a filter returns: one that it got, or a new one. */
export type HandoffMessage = Message | MessageWithCalls | { role: Message["role"]; parts: Part[] };

/** The state machine of a run. It does no I/O: a host executes its effects and answers them, as `drive` does. */
export interface Run {
  readonly id: string;
  /** "waiting_approval": every other call of the round is answered, and the run continues when a person decides. Nobody
   *  owns it meanwhile: another tab or process may `resume` it, and another run of the session may begin. */
  readonly status: "running" | "waiting_approval" | "finished" | "failed" | "cancelled";
  /** The tools of the request, for the host that executes them. */
  readonly tools: Tools | undefined;
  /** The effects that the host must execute. They stay open until they are answered, in any order. */
  effects(): Effect[];
  /** Returns and removes the events so far. */
  events(): RunEvent[];
  /** Resolves at the next change of effects, events or status. Call it before reading them, so that no change is
   *  missed. */
  changed(): Promise<void>;
  /** Resolves when what must be stored before the next effect is stored. Changes nothing if the effect was closed
   *  meanwhile: answered already, or no longer needed. Rejects with `unknown_effect` for an id that the run did not
   *  offer, and `wrong_state` for an answer that does not fit. */
  answer(effectId: string, answer: EffectAnswer): Promise<void>;
  /** Returns true if the bytes, one event of a response stream or a whole response body, report a failure. For hosts
   *  that remove their credentials from errors, as `drive` does. Does not change the run. */
  isErrorResponse(bytes: Uint8Array): boolean;
  /** The effects opened, and the ids of those closed, since the last call. */
  takeEffects(): { opened: Effect[]; closed: string[] };
  readonly maxResponseBytes: number;
  /** Passes bytes of a streaming answer, after its `response_started`. */
  feed(effectId: string, bytes: Uint8Array): Promise<void>;
  /** The calls that wait for an approval. The tool gets exactly these arguments. A model may give several calls one
   *  `callId`; the `invocationId` is unique, and is the `id` of the call in views. */
  approvals(): { callId: string; invocationId: string; name: string; arguments: unknown }[];
  /** Approves a call by its `invocationId`, or by its `callId` if no other call of the run has that: otherwise it
   *  rejects with `invalid_input`. Resolves when the approval is stored; then the tool is offered as an effect, for
   *  `drive`. Rejects with `not_found` or `wrong_state` if the call does not wait, `busy` if another run of the session
   *  is in progress here or another tab or process has this one, `conflict` if another holder took the run over, and
   *  `not_found` if the run ended elsewhere. In the last two cases this run ends "failed" with that code. `conflict`
   *  also if another run closed the call in the service's conversation: the tool does not run, and the call can be
   *  rejected, or the run discarded. */
  approve(id: string): Promise<void>;
  /** The tool does not run. The call gets the status "rejected" and an error result with the reason, which the model
   *  sees; a call that had started before an interruption gets the status "interrupted", since it may have run. Rejects
   *  as `approve` does. */
  reject(id: string, reason?: string): Promise<void>;
  /** A snapshot of the unfinished run, from which `Session.resume` continues it: on this store or another one, in
   *  another process or on another machine. It has the run's journal and the messages of history that the next request
   *  contains, without credentials, and of a redacted call what `persist` left. Throws `wrong_state` if the turn is in
   *  history already or the run was cancelled. Treat it as the store's own data: whoever can change it decides what the
   *  run continues with. */
  snapshot(): Bytes;
  /** Ends the run. It cannot be resumed, and approvals that were not used are withdrawn. If the store does not answer
   *  within `storeTimeoutMs`, the run ends here without its answer, with `saved: false`: what the store was asked to
   *  write may be stored, or the run is in `pendingRuns()`. A run that waits for an approval and must be read first is
   *  not cancelled then: the promise is rejected with `store_error`, and the run waits on. A turn that is complete is
   *  stored first; the run is cancelled if that fails. */
  cancel(): Promise<void>;
  /** Hands the run off: the next model call, after the results of this round, is made for another agent. Typically
   *  called in `execute` of a tool. History is stored as before, and `Message.agent` names who answered. Resolves when
   *  the write was attempted: the event `save_failed` reports a failure, and the next model call waits for the write.
   *  During a model call it resolves at once and is stored when the tools of that answer are offered. It has no effect
   *  if the run ends before. Rejects with `wrong_state` if another handoff waits for that call (the first one wins), if
   *  the run waits for an approval or has ended, and with `config_invalid` for tools that the request cannot have. */
  handoff(to: Handoff): Promise<void>;
  /** Tries again to store what `save_failed` reported, for example after space was freed. `drive` does so by itself.
   *  `wrong_state` if no save has failed. */
  save(): Promise<void>;
  /** For hosts of your own: ends a run "failed" whose saves fail, as `drive` does after `saveTimeoutMs`, with the
   *  store's error. What is stored stays, so the run can be resumed; its `snapshot()` also has what could not be
   *  stored. */
  abandonSaves(): Promise<void>;
  /** The result so far. While the run is under way its `status` is "running", which the type leaves out: `Run.status`
   *  says it. */
  result(): RunResult;
  /** Releases a running run without cancelling it: `pendingRuns()` lists it, `resume` continues it, and `drive` ends
   *  with `closed`. */
  [Symbol.dispose](): void;
}
export type Effect =
  | {
      type: "call_model";
      id: string;
      dialect: Dialect;
      /** GET picks up an answer on which the service works in the background. */
      request:
        | { method: "POST"; url: string; headers: Record<string, string>; body: Bytes }
        | { method: "GET"; url: string; headers: Record<string, string>; body: null };
      stream: boolean;
      /** The request does not change state at the service, so a host may send it again without asking. Each answer
       *  costs money. */
      repeatable: boolean;
      /** The time, in ms since the epoch, before which the request must not be sent. Present if the host answered the
       *  `wait` before its end. */
      notBefore?: number;
    }
  | {
      type: "run_tool";
      id: string;
      callId: string;
      invocationId: string;
      attempt: number;
      name: string;
      arguments: unknown;
      argumentsText: string;
    }
  /** A pause between two attempts of a model call. A host that sleeps instead, until an alarm for example, either
   *  answers `waited` at once and gets `notBefore` with the `call_model`, or disposes the run: `PendingRun.notBefore`
   *  says when to resume it. */
  | { type: "wait"; id: string; ms: number };
export type EffectAnswer =
  /** Precedes the bytes. The body of an error status, or of a request without streaming, is read as a whole. */
  | { type: "response_started"; status: number; headers: Record<string, string> }
  | { type: "response_end" }
  | { type: "response"; status: number; headers?: Record<string, string>; body: Uint8Array | string }
  /** Await this answer before executing a tool: it stores that the tool may have run. */
  | { type: "started" }
  | { type: "tool_result"; content: unknown; isError?: boolean }
  /** Of a tool that is `async`: the run goes on, and `Session.answer` stores the result later. `wrong_state` for
   *  another tool. */
  | { type: "pending" }
  | { type: "waited" }
  /** `sent`: whether any byte of the request may have reached the service. Absent if that is not known. */
  | { type: "failed"; error: { code?: string; message: string }; sent?: boolean };
export type RunEvent =
  | (StreamEvent & { messageId: string })
  | { type: "model_called"; turn: number; report: Finding[]; prefix: PrefixReuse }
  | { type: "message_started"; messageId: string; turn: number; round: number }
  | { type: "tool_started"; callId: string; name: string }
  | { type: "tool_finished"; callId: string; isError: boolean; result: unknown; durationMs: number }
  /** The run goes on without the result of the call, which `Session.answer` stores later. */
  | { type: "tool_pending"; callId: string; invocationId: string; name: string }
  /** A resumed run repeats it for the calls that still wait. */
  | { type: "approval_needed"; callId: string; invocationId: string; name: string; arguments: unknown }
  | { type: "saved"; revision: number }
  /** An answer, a result or the turn could not be stored, in this attempt. It is kept in memory, and the run waits for
   *  it: `drive` tries again for `saveTimeoutMs`, and `save()` at once. */
  | { type: "save_failed"; error: ErrorInfo }
  /** Also before the rest of an answer in the background is picked up: what was received of it stays. */
  | { type: "retrying"; attempt: number; at: number; error: ErrorInfo }
  | { type: "warning"; finding: Finding }
  | { type: "finished"; result: RunResult };
export interface RunResult {
  status: "finished" | "failed" | "cancelled" | "waiting_approval";
  /** The error of a failed run; null for every other status. */
  error: ErrorInfo | null;
  text: string;
  turns: number;
  usage: Usage | null;
  report: Finding[];
  revision: number;
  /** The branch that history has the turn in. */
  branch: string;
  saved: boolean;
  messageIds: string[];
  /** The conversation that the service keeps: the owner's, or the one that the last answer named. */
  conversationId: string | null;
  responseId: string | null;
  /** The calls of asynchronous tools whose results come later, by `Session.answer`. */
  openCalls: { callId: string; invocationId: string; name: string }[];
  /** Owner "caller", when the run has finished: the conversation with its answer, in the dialect's format, to be the
   *  input of the next run with the next question. Without `params`, `tools` and `instructions`, which each run gets
   *  itself. Otherwise null. */
  replay: WireBody | null;
}
/** What a run is resumed with. */
export type ResumeRequest = Omit<RunRequest, "input"> & {
  /** The handoffs of the run (`PendingRun.handoffs` names them), in their order; other ones are `config_invalid`. The
   *  `tools` and `instructions` of the request are those that the run began with. Filters are called again. */
  handoffs?: Handoff[];
};
/** An unfinished run. */
export interface PendingRun {
  id: string;
  session: string;
  startedAt: number;
  turn: number;
  /** "live": a tab or process drives it, or waits with its question. "queued": a question that waits for the runs
   *  before it (`whenBusy: "queue"`) and whose tab or process has ended. */
  state: "live" | "queued" | "interrupted" | "waiting_approval" | "failed";
  provider: ProviderRequest & { params: Record<string, unknown> };
  /** Members of `provider.params` that hold credentials, such as `params.tools[0].authorization`: they are not stored,
   *  so `resume` needs them again. */
  withheld: string[];
  input: Message[];
  /** The agents that the run was handed off to, in order. `resume` needs them in `handoffs`. */
  handoffs: string[];
  /** The texts of the stored answers, separated by an empty line: those that are complete, and the one that a failure
   *  cut. Of an answer that is streaming, or was when its tab or process ended, nothing is stored: "" if it is the
   *  first one. */
  text: string;
  error?: { code: ErrorCode; message: string };
  /** The end of the pause between two attempts of its model call, in ms since the epoch: a run that is resumed earlier
   *  waits for it. */
  notBefore?: number;
  /** Of a "live" run whose holder only a lease shows (on servers): until when it counts as alive, in ms since the
   *  epoch, unless it renews the lease. After that `resume` and `discard` work. So it is with the runs of a process that
   *  was killed: wait until then, and resume them. */
  leaseUntil?: number;
  /** A call that `Session.answer` has answered is "answered" in `Session.pendingRuns()`; `Rethread.pendingRuns()` reads
   *  journals and no histories, so there it is "awaiting_result" or "started" until its run takes the answer. */
  openCalls: {
    callId: string;
    invocationId: string;
    name: string;
    arguments: unknown;
    state: "not_started" | "started" | "answered" | "awaiting_approval" | "awaiting_result";
  }[];
}

// ---------------------------------------------------------------------------------- "rethread/host"

export interface DriveOptions {
  fetch?: PlatformFetch;
  /** Headers that must not reach wasm or storage, such as the API key. Their values count as credentials, except those
   *  of headers that are known to hold none (`accept`, `anthropic-version`, `openai-organization`, …) and common or
   *  very short values. Where an error of the server, of fetch, of a tool or of the run quotes one, it is replaced by
   *  `[redacted]`; answers of the model are not changed. If the function throws, only plain words of its message are
   *  repeated, since it may quote a credential. Redirects are not followed. */
  headers?:
    | Record<string, string>
    | ((request: {
        url: string;
        dialect: Dialect;
        /** Null for a request without a body, which picks up an answer in the background. */
        model: string | null;
      }) => Record<string, string> | Promise<Record<string, string>>);
  /** Cancels the run. */
  signal?: PlatformAbortSignal;
  /** The call fails if the model sends no byte for this many milliseconds, or if `headers` does not answer in that
   *  time: then nothing was sent. */
  idleTimeoutMs?: number;
  /** For a host that sleeps, such as a Durable Object: if a pause before a repeated model call is longer than this
   *  duration in milliseconds, the run is disposed and `result` rejects with `closed`. `PendingRun.notBefore` says when
   *  to resume it. Default: no limit. The pauses of 2,000 ms in which an answer in the background is waited for are not
   *  stored: a run that is released in one has no `notBefore`. */
  longestPauseMs?: number;
  /** How long the store may fail to take an answer or a result, in milliseconds, by default 60,000. Until then the save
   *  is repeated after pauses from 0.25 to 5 seconds; each failure is an event, `save_failed`. Then the run ends
   *  "failed" with the store's error, and can be resumed from what is stored, or from its `snapshot()`, which has the
   *  rest. `Infinity`: until `signal` aborts. */
  saveTimeoutMs?: number;
  /** Maximum number of tools that run at the same time. Default: no limit. */
  toolConcurrency?: number;
  /** A tool that takes longer than this many milliseconds fails. */
  toolTimeoutMs?: number;
  /** "wait": the page decides by `SessionView.approve` or `Run.approve`, and the run is driven until it ends; that
   *  another tab has taken it over while it waited, `drive` learns from the next decision or `signal` here. Otherwise
   *  a function that decides about a call which waits for an approval: true approves, false or a reason rejects. Called
   *  once for each call by each `drive`, as soon as the call waits; other tools run meanwhile. If it throws or returns
   *  anything else, the call still waits, and `result` rejects with `callback_failed` when nothing else is left to do; so
   *  it does with the error of `approve` or `reject`, such as `busy`. Without it, `result` resolves with the status
   *  "waiting_approval"; call `drive` again after `approve` or `reject`. */
  onApproval?:
    | ((call: {
        callId: string;
        invocationId: string;
        name: string;
        arguments: unknown;
      }) => boolean | { reject: string } | Promise<boolean | { reject: string }>)
    | "wait";
}
/** Executes the effects of a run. Starts at once and yields events as they happen. Leaving the loop stops watching, not
 *  the run; `signal` and `Run.cancel` stop the run. A slow reader of events does not delay the run: events wait, and
 *  deltas of one text are joined meanwhile, so they take about as much memory as the answers and results. A response is
 *  read as fast as the run takes its bytes. A rejection of `result` that nothing handles is not reported as unhandled.
 *  Throws `wrong_state` for a run that is already driven. */
export function drive(run: Run, options?: DriveOptions): AsyncIterable<RunEvent> & { result: Promise<RunResult> };
/** True while a `drive` of this object executes the run: it is not over, and does not wait for an approval that nobody
 *  gives there. For what may be a run of this page or one that was just resumed: `Session.resume` and
 *  `SessionView.approve` resolve with either. */
export function isDriven(run: Run): boolean;
