// Wire formats: validation, repair, conversion and streams.

import type { WasmSource } from "./platform.js";

/** Bytes that the caller owns: never a view of wasm memory. */
export type Bytes = Uint8Array<ArrayBuffer>;

/** The wire formats. `mistral` has the message format of chat completions and ids of nine characters;
 *  `mistral-conversations` has the entries of `POST /v1/conversations`. */
export type Dialect =
  | "openai-chat"
  | "openai-responses"
  | "anthropic"
  | "gemini"
  | "mistral"
  | "bedrock"
  | "mistral-conversations"
  | "gemini-interactions";

/** A request body of a dialect: `{messages}` (chat, mistral), `{instructions?, input}` (responses),
 *  `{system?, messages}` (anthropic), `{systemInstruction?, contents}` (gemini), `{instructions?, inputs}`
 *  (mistral-conversations), `{system_instruction?, input}` (gemini-interactions), with any other members. */
export type WireBody = Record<string, unknown>;
/** An object (not an array) that JSON can represent. The SDKs' request types are assignable to it:
 *  `ChatCompletionCreateParams`, `ResponseCreateParams`, `MessageCreateParams`, `GenerateContentParameters`. */
export type JsonObject = Record<string, unknown> | (object & { readonly [Symbol.iterator]?: never });
/** A body as an object, as JSON text or as UTF-8 bytes of JSON text. Text and bytes keep what `JSON.parse` loses: large
 *  integers, duplicate keys, escapes; unchanged tokens are returned as written. */
export type WireInput = JsonObject | string | Uint8Array;
/** The type of a repaired body: a string for a string, bytes for bytes, the same object type for an object. */
export type Repaired<B extends WireInput> = B extends string ? string : B extends Uint8Array ? Bytes : B;
/** The type of a converted body: a string for a string, bytes for bytes, `WireBody` for any object. */
export type Converted<B extends WireInput> = B extends string ? string : B extends Uint8Array ? Bytes : WireBody;

/** The stable codes of findings. `npx rethread explain CODE` prints its entry of docs/rules: of a rule the provider's
 *  sentence, a broken body and the repaired one; of any other finding (docs/rules/findings.md) what it means and what
 *  to do. Reasoning that is left out of a request is `reasoning_foreign` if another host of the same dialect has made
 *  it, or another model and the request's model does not bind reasoning; `reasoning_unbound` (`changedBy: "model"`) if
 *  another model has and the request's binds it; and `unsupported_part` if the answer is of another dialect. */
export type FindingCode =
  | "dangling_call"
  | "missing_parallel_result"
  | "orphan_result"
  | "duplicate_result"
  | "result_before_call"
  | "interposed_message"
  | "duplicate_call_id"
  | "invalid_call_id"
  | "invalid_arguments"
  | "empty_tool_calls"
  | "orphan_reasoning"
  | "missing_reasoning"
  | "unsigned_thinking"
  | "role_order"
  | "empty_content"
  | "malformed"
  | "unsupported_part"
  | "unsupported_key"
  | "foreign_model"
  | "unknown_shape"
  | "stale"
  | "stale_default"
  | "future"
  | "reduced"
  | "redacted"
  | "reasoning_unbound"
  | "reasoning_dropped"
  | "reasoning_foreign"
  | "uncited"
  | "interrupted"
  | "pending_call"
  | "callback_failed"
  | "compaction_failed"
  | "read_failed"
  | "second_writer"
  | "journal_kept"
  | "not_restored"
  | "restored_as_copy"
  | "no_checkpoint"
  | "findings_omitted"
  | "too_many_edits"
  | "conversation_conflict"
  | "not_transferred"
  | "chain_restarted"
  | "healed";
/** A problem or a change that validation, repair, rendering or a run reports. A report lists at most 1,000; its last
 *  finding (`findings_omitted`) then says how many others there are of which code. */
export interface Finding {
  /** "error": the provider rejects the body. "warning": accepted, but fragile (for example an id that a later turn uses
   *  again). "info": a note. */
  severity: "error" | "warning" | "info";
  code: FindingCode;
  /** JSON pointer into the body that was passed in; absent for a finding about stored history. */
  path?: string;
  messageId?: string;
  callId?: string;
  action?: "dropped" | "moved" | "renamed" | "synthesized" | "rewritten" | "merged" | "kept";
  /** Of `reasoning_unbound` and `reasoning_foreign`: what changed before the reasoning. */
  changedBy?: PrefixChange;
  /** Of `reasoning_dropped`: why, in the provider's word (`prefix_binding_mismatch`, `model_mismatch`, …). `path`
   *  points into the request. */
  reason?: string;
  message: string;
}
/** What changed the beginning of a request, which an earlier request had too: a result that became stale, a reducer, a
 *  compaction (also one in an answer), sources that are not cited, what `persist` stored, `inputFilter`, a history provider, a handoff, other
 *  messages (of another tab, of a branch, edited), a repair of the body, or the instructions, tools, model or provider
 *  of the request. */
export type PrefixChange =
  | "freshness"
  | "reducer"
  | "compaction"
  | "citation"
  | "redaction"
  | "filter"
  | "history_provider"
  | "handoff"
  | "branch"
  | "repair"
  | "instructions"
  | "tools"
  | "model"
  | "provider";

/** Loads the wasm. Browsers need `await init()` before the synchronous functions (`validate`, `repair`, `convert`,
 *  `StreamAssembler`); Node and workerd load it themselves. `source` is the wasm or its URL; default: the package's own
 *  file. `stores` is the second program, `rethread/stores.wasm`, which the first `open` with a SQL or key-value store
 *  loads, and localStorage is one; it need only be given where `source` must be. It counts on every platform but workerd,
 *  until the program is loaded. A wasm that cannot be loaded is `not_initialized`; a later attempt may succeed. */
export function init(source?: WasmSource, options?: { stores?: WasmSource }): Promise<void>;

/** Returns the problems of a body. If none has severity "error", the provider accepts the order and the pairing of its
 *  messages. Content never makes it throw. Throws `not_initialized` in a browser before `await init()`, and
 *  `invalid_input` for what is no body, such as `undefined` or a promise: so do `repair`, `heal` and `convert`. */
export function validate(body: WireInput, dialect: Dialect): Finding[];

export interface RepairOptions {
  /** What happens to a call without a result: "synthesize" (default) adds an error result; "omit" removes the call and
   *  the reasoning before it. */
  danglingCalls?: "synthesize" | "omit";
  /** The text of a synthetic result. */
  danglingText?: string;
}

/** Returns the nearest valid body. `validate` finds no error in the result; repairing twice changes nothing; a body
 *  without errors is returned deep-equal. Other members are not changed. Throws `invalid_input` if the body, or a
 *  result in it, has the format of another library or dialect (`details.shape` names it), holds a list in place of a
 *  message, or has only calls and results that cannot stay. */
export function repair<B extends WireInput>(
  body: B,
  dialect: Dialect,
  options?: HealOptions,
): { body: Repaired<B>; report: Finding[] };

export interface HealOptions extends RepairOptions {
  /** What the provider refused before, as `heal` returned it: it is left out, with an "info" `healed`. Append new
   *  marks: of more than 1,000, the last 1,000 are used. */
  refused?: readonly string[];
}
/** A body that its provider refused, repaired. */
export interface Healed<B extends WireInput> {
  body: Repaired<B>;
  /** First a warning `healed`, with the provider's sentence (at most 240 characters) and what was done; then what the
   *  rules repaired besides. */
  report: Finding[];
  /** Marks of what was refused, for `repair`: hashes of signatures, and names of models with what they do not take. */
  refused: string[];
}
/** Repairs a body that its provider refused (status 400, of Mistral's conversations also 422): exactly what the error
 *  names. `answer` is the body of that answer. Returns null for an error that is not known, and if the repair would change nothing: then the request
 *  must not be repeated. */
export function heal<B extends WireInput>(
  body: B,
  dialect: Dialect,
  answer: WireInput,
  options?: RepairOptions,
): Healed<B> | null;

/** Rewrites a body of one dialect in another, and repairs it. Ids are mapped deterministically, `tools` and
 *  `tool_choice` are encoded again, parameters that have another name in the target are renamed, and members that the
 *  target does not accept are removed and reported, also those of messages: the `name` of a user, an image's `detail`,
 *  a document's `context`. Citations, and a document's `citations`, are reported in each target, also in one that has
 *  them. `cache_control` is removed without a finding. Throws `invalid_input` for text that is not JSON, and for a body
 *  of which `repair` in the dialect `from` throws. */
export function convert<B extends WireInput>(
  body: B,
  from: Dialect,
  to: Dialect,
  options?: RepairOptions,
): { body: Converted<B>; report: Finding[] };

/** Assembles a streamed response from its raw bytes, split anywhere. */
export class StreamAssembler {
  constructor(dialect: Dialect);
  /** Returns the events that these bytes complete, in order. */
  push(bytes: Uint8Array): StreamEvent[];
  /** Ends the stream. `status` tells whether the response is complete; calls of an incomplete response are never
   *  `executable`. */
  finish(): AssembledResponse;
  [Symbol.dispose](): void;
}
export type StreamEvent =
  | { type: "text_delta"; text: string }
  | { type: "reasoning_delta"; text: string }
  | { type: "tool_call_started"; index: number; callId: string; name: string }
  | { type: "tool_arguments_delta"; index: number; callId: string; json: string }
  /** The call is complete. Its `executable` is always false here, since the response may still fail:
   *  `AssembledResponse.toolCalls` says it at the end, and a run executes the call then. */
  | { type: "tool_call_ready"; index: number; call: ToolCall }
  | { type: "usage"; usage: Usage }
  | { type: "error"; error: { code?: string; message: string } };
export interface AssembledResponse {
  /** "truncated": the stream ended before the answer. "incomplete": the provider ended the answer early (token limit,
   *  context window). "refused": the model refused. "blocked": a filter of the provider blocked the answer or the
   *  prompt. "failed": the provider reported an error, or sent bytes that are not a response. */
  status: "complete" | "truncated" | "incomplete" | "refused" | "blocked" | "failed";
  /** The provider's own reason, as sent. */
  finishReason: string | null;
  responseId: string | null;
  text: string;
  toolCalls: ToolCall[];
  usage: Usage | null;
  error: { code?: string; message: string } | null;
  /** The assistant message in the dialect's format, for the next body; for openai-responses the list of its items. */
  wire: unknown;
}
export interface ToolCall {
  callId: string;
  name: string;
  /** Raw JSON text as the model wrote it; for a custom tool its free text. */
  arguments: string;
  /** False if the response or the call is incomplete or invalid: the call must not run. Decided at the end of the
   *  response, so false in `tool_call_ready`. */
  executable: boolean;
}
/** Token counts. `inputTokens` includes cached tokens for every provider. The usage of a run is the sum of its model
 *  calls. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  cachedInputTokens?: number;
  cacheWriteInputTokens?: number;
  reasoningTokens?: number;
}
