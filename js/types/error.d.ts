// Errors: their codes, details and class.

import type { AssembledResponse } from "./formats.js";

/** The stable codes of errors. */
export type ErrorCode =
  | "not_initialized"
  | "not_found"
  | "closed"
  | "invalid_input"
  | "config_invalid"
  | "unknown_effect"
  | "wrong_state"
  | "conflict"
  | "busy"
  | "quota_exceeded"
  | "upgrade_blocked"
  | "unsupported_version"
  | "corrupt_record"
  | "wrong_key"
  | "too_large"
  | "unavailable"
  | "rate_limited"
  | "maybe_stale"
  | "evicted"
  | "store_error"
  | "state_owner_conflict"
  | "conversation_conflict"
  | "chain_lost"
  | "handoff_filter_not_supported"
  | "model_error"
  | "callback_failed"
  | "two_loaders"
  | "state_key_conflict"
  | "replay_unsafe"
  | "max_turns"
  | "aborted"
  | "internal";

/** Machine-readable details of an error, by code. Later versions may add members. */
type Details<Known> = Readonly<Known> & { readonly [fact: string]: unknown };
interface ModelErrorDetails {
  /** The HTTP status of the provider's error response. */
  status?: number;
  /** The error code in the provider's response. */
  providerCode?: string | null;
  /** The status of the answer that ended the run, and the provider's finish reason. */
  answerStatus?: AssembledResponse["status"];
  finishReason?: string | null;
  /** The `code` or `name` of the error that `fetch` threw. */
  hostCode?: string | null;
}
interface KnownDetails {
  /** The line of an export that cannot be imported, counted from 1. */
  invalid_input: { line?: number };
  /** The expected and the stored revision of a failed `expectedRevision`. Absent if another holder took over the run. */
  conflict: { expected?: number; revision?: number };
  /** When the lease of the run's holder ends. */
  busy: { leaseUntil?: number };
  /** "unknown": a call of `once` (rethread/once) was started and has no result. */
  wrong_state: { outcome?: "unknown"; callId?: string };
  /** "none": nothing was written. "unknown": the append may have been written; read the session again before repeating
   *  it. */
  unavailable: { outcome?: "none" | "unknown" };
  /** Present if the store did not answer within `storeTimeoutMs`, or does not say what became of a question that was to
   *  be queued. "unknown": what it was asked to write may be stored, also later. "none": it was asked to read. */
  store_error: { outcome?: "none" | "unknown" };
  /** How long the service asked to wait, in milliseconds, if it said so. */
  rate_limited: { retryAfterMs?: number };
  /** The conversation that the answer named. */
  conversation_conflict: { conversationId?: string | null };
  /** Of the request that the service refused; none if other instructions or tools were seen before it was sent. */
  chain_lost: ModelErrorDetails;
  model_error: ModelErrorDetails;
  /** Of the failed request that is not repeated. */
  replay_unsafe: ModelErrorDetails;
}
export type ErrorDetails<Code extends ErrorCode = ErrorCode> = Code extends keyof KnownDetails
  ? Details<KnownDetails[Code]>
  : Details<{}>;

/** An error as a plain value: of a run or of a failed save. */
export type ErrorInfo<Code extends ErrorCode = ErrorCode> = Code extends ErrorCode
  ? { readonly code: Code; readonly message: string; readonly details?: ErrorDetails<Code> }
  : never;

/** The class of every error that is thrown. `code` determines the type of `details`. */
export type RethreadError<Code extends ErrorCode = ErrorCode> = Code extends ErrorCode
  ? Error & {
      readonly name: "RethreadError";
      readonly code: Code;
      readonly details: ErrorDetails<Code>;
      readonly cause?: unknown;
    }
  : never;
export const RethreadError: {
  new <Code extends ErrorCode>(
    code: Code,
    message: string,
    details?: ErrorDetails<Code>,
    options?: ErrorOptions,
  ): RethreadError<Code>;
  readonly prototype: RethreadError;
};

// Without this, a declaration file exports every declaration.
export {};
