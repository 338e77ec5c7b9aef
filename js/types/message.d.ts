// Messages, their parts, and calls of tools.

import type { Dialect, Usage } from "./formats.js";
import type { PlatformBlob } from "./platform.js";

/** A stored message. */
export interface Message {
  id: string;
  seq: number;
  turn: number;
  role: "system" | "developer" | "user" | "assistant";
  parts: Part[];
  createdAt: number;
  source: MessageSource;
  runId: string | null;
  /** "streaming" occurs in views only: the answer is still arriving. */
  status: "streaming" | "complete" | "stopped" | "truncated" | "failed";
  parentId: string | null;
  /** The messages at this place in all branches, oldest first, with this one: edits of a question, answers that were
   *  asked for again. `switchTo(id)` shows another one. A view of a session with more than 64 forks is shown before
   *  they are known, and once more then. */
  siblings: { ids: string[]; index: number };
  /** The application's, null without any: `NewMessage.metadata`, or what `Session.annotate` has replaced it by. */
  metadata: unknown;
  model: string | null;
  usage: Usage | null;
  finishReason: string | null;
  durationMs: number | null;
  /** The agent that gave the answer. Absent if the run was not handed off before it. */
  agent?: string;
  /** What is stored for the message's dialect and has no member here (members that only the dialect knows, who made the
   *  answer; of a call its freshness, and whether its result may come later and is `persist`'s to decide), as opaque
   *  text, for `append`. Parts have it, too. It is sent to the provider, so do not take it from somebody whom you would
   *  not let write the request. */
  dialectData?: string;
}
/** A message whose calls have their arguments and results. */
export type MessageWithCalls = Omit<Message, "parts"> & {
  parts: (
    | Exclude<Part, { type: "tool_call" }>
    | (Extract<Part, { type: "tool_call" }> &
        Required<
          Pick<
            ToolInvocation,
            | "callId"
            | "name"
            | "status"
            | "startedAt"
            | "finishedAt"
            | "redacted"
            | "arguments"
            | "argumentsText"
            | "result"
          >
        >)
  )[];
};
/** A part of a message, in the order in which the model wrote it. Data specific to the dialect (signatures, unknown
 *  members, absent or null content) is stored with the message and sent again when the same dialect is rendered. */
export type Part =
  /** `phase` is what a text of the model is within its answer (OpenAI Responses). Absent if the provider said none. */
  (
    | { type: "text"; text: string; phase?: "commentary" | "final_answer" }
    | { type: "image"; url?: string; data?: string; mediaType?: string }
    | { type: "file"; name?: string; url?: string; data?: string; fileId?: string; mediaType?: string }
    /** Data of the application: kept for rendering, never sent. */
    | { type: "data"; name: string; value: unknown }
    | { type: "reasoning"; text: string }
    | { type: "refusal"; text: string; phase?: "commentary" | "final_answer" }
    /** A call. `invocation` is the id of its `ToolInvocation`. */
    | { type: "tool_call"; invocation: string; round: number; place: number }
    | { type: "opaque"; dialect: Dialect; value: unknown }
  ) & { /** As `Message.dialectData`. */ dialectData?: string };
export interface MessageSource {
  type: "external" | "context" | "history";
  id?: string;
}

/** A part of a user's message. Bytes of images and files are stored as base64. */
export type InputPart =
  | Extract<Part, { type: "text" | "image" | "file" }>
  | { type: "image" | "file"; data: PlatformBlob | Uint8Array; mediaType?: string; name?: string };

/** A message for `Session.append`. Members that are not listed here are ignored. What `Session.messages` and a view
 *  return is taken without loss: ids, times, status, who made an answer, and what belongs to its dialect, such as
 *  signatures. `seq`, `turn`, `parentId` and `channel` are those of the session that it is appended to. */
export interface NewMessage
  extends Partial<
    Pick<
      Message,
      "source" | "runId" | "status" | "model" | "usage" | "finishReason" | "durationMs" | "agent" | "dialectData"
    >
  > {
  id?: string;
  role: Message["role"];
  createdAt?: number;
  metadata?: unknown;
  parts: readonly ((
    | InputPart
    | { type: "reasoning"; text: string }
    | { type: "refusal"; text: string; phase?: "commentary" | "final_answer" }
    /** Data of the application: kept for rendering, never sent. */
    | { type: "data"; name: string; value: unknown }
    /** Assistant messages only. A call as a view has it. Without a result the call is open; without `argumentsText` a
     *  string in `arguments` is JSON text. */
    | {
        type: "tool";
        call: Pick<ToolInvocation, "callId" | "name" | "arguments" | "argumentsText" | "result" | "finishedAt"> &
          Partial<ToolInvocation>;
      }
    /** Assistant messages only. A call as `Session.messages` returns it; without `name` the call itself is missing, and
     *  it is `invalid_input`. `arguments` is as above. */
    | (Extract<Part, { type: "tool_call" }> &
        Pick<ToolInvocation, "callId" | "name" | "arguments" | "argumentsText" | "result" | "finishedAt"> &
        Partial<ToolInvocation>)
    /** A block of one dialect, which only that dialect is sent. Those of a message have one dialect. */
    | { type: "opaque"; dialect: Dialect; value: unknown }
    /** Assistant messages only. Without `result` the call is open; a string in `arguments` is JSON text. A call with the
     *  name "" is stored, and sent with the name "unnamed". Freshness starts at `finishedAt`, else at the message's
     *  `createdAt`, else at `at`, else now. A time that is given is whole milliseconds since the epoch: `NaN` is
     *  `invalid_input`. */
    | {
        type: "tool";
        callId?: string;
        name: string;
        arguments: unknown;
        result?: unknown;
        isError?: boolean;
        finishedAt?: number;
      }
    /** Assistant messages only. Starts another model call: calls before and after it form two rounds and two messages
     *  (`m`, `m.2`), of which the last has `usage`, `durationMs`, `finishReason` and `status`. */
    | { type: "step-start" }
  ) & { dialectData?: string })[];
}
/** Results for `Session.append`, of open calls that are stored already or precede the results in the same append; of
 *  several with one id, of the first open one of the newest message. Creates no message. A result without an open call
 *  is `invalid_input`, and nothing is stored. */
export interface NewToolMessage {
  role: "tool";
  createdAt?: number;
  parts: {
    type: "tool_result" /** The `callId`, or the invocation's `id`. */;
    callId: string;
    result: unknown;
    isError?: boolean;
    finishedAt?: number;
  }[];
}

/** A call and its result: a row of the audit table. */
export interface ToolInvocation {
  id: string;
  sessionId: string;
  messageId: string;
  turn: number;
  callId: string;
  name: string;
  /** The model call of the turn that requested it, and its position among the calls of that answer. Both count from
   *  0. */
  roundIndex: number;
  sequenceIndex: number;
  status: "pending" | "ok" | "error" | "rejected" | "interrupted" | "aborted";
  startedAt: number | null;
  finishedAt: number | null;
  redacted: boolean;
  channel: string | null;
  /** Present if the query has `payload: true`. */
  arguments?: unknown;
  /** As the model wrote it. */
  argumentsText?: string;
  result?: { content: unknown; isError: boolean } | null;
}
/** The result is sorted by time, newest first; invocations of the same time are in a fixed order, those of one session
 *  with the last call first. The time of an invocation is when it finished, else when it started, else when it was
 *  stored. An invocation that finishes while its pages are read moves to the front. Where a store has no index of
 *  times, the first page reads the rows that the query selects, and the next ones know their order: rows that are
 *  stored after the first page are not on them. This is true of the object that gave the first page (`open` in one tab
 *  or process), for the 64 queries that it used last while these have a million rows at most; elsewhere a page reads
 *  all rows again. */
export interface InvocationQuery {
  /** With `messageId` alone, all rows are read: give the session too. */
  session?: string;
  messageId?: string;
  tool?: string;
  status?: ToolInvocation["status"];
  channel?: string;
  /** The first and the last time, both inclusive. */
  since?: number;
  until?: number;
  /** Reads arguments and results too. */
  payload?: boolean;
  limit?: number;
  cursor?: string;
}
