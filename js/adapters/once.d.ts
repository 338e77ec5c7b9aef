// The types of `rethread/once`.

import type { Session } from "../types.js";

/** A call that was started, or that a chat has left behind, and whose end is unknown. */
export interface InterruptedToolCall {
  /** The id that is stored with the call. */
  callId: string;
  name: string;
  /** The first argument of `execute`. */
  arguments: unknown;
}

export interface OnceTool<Args extends unknown[], Result> {
  /** Stored with each call. */
  name: string;
  /** Runs once for each call. It gets all arguments of the returned function, and nothing else. A `signal` or
   *  `abortSignal` of a plain object after the first is one that is aborted when all who wait for the call have given
   *  up. */
  execute: (...args: Args) => Result | Promise<Result>;
  /** For a call that was started and has no stored result: its process was killed, or another process runs it. And for
   *  one that a chat has left behind: whoever had the chat then may have run it.
   *  "report" (default) throws that it may or may not have run. "rerun" runs it again, for tools that do no harm
   *  then. A function asks somebody and returns one of these, or `{ result }`, which is stored as the call's result.
   *  What it throws, such as LangGraph's `interrupt`, passes through, and the call stays unknown. Called again by each
   *  call until there is a result. */
  onInterrupted?:
    | "report"
    | "rerun"
    | ((
        call: InterruptedToolCall,
      ) => "report" | "rerun" | { result: Result } | Promise<"report" | "rerun" | { result: Result }>);
  /** Returns the id of the call, which is its own within the session. Default: `callId`, `toolCallId`,
   *  `toolCall.callId`, `toolCall.id` or `agent.toolCallId` of an argument after the first. In a chat it may be the
   *  `id` that `Session.invocations` gives a call, if the provider repeats its own ids. */
  callId?: (...args: [...Args, ...any[]]) => string | undefined;
  /** For how long a result that the store does not take is saved again, in milliseconds. Default 60000. */
  saveTimeoutMs?: number;
}

/** Returns a function that stores the start of a call, runs `execute`, and stores the result as JSON. A call that has a
 *  stored result gets it, as JSON keeps it, and its tool does not run; an error is thrown again with its message. Two
 *  calls with one id at once, in one process, have one execution; one whose signal is aborted rejects with that while
 *  the other waits on.
 *
 *  Rejects with `conflict` if the id is stored with other arguments or another name, or with several calls of an answer
 *  that these do not tell apart, `invalid_input` if a call has no id or its arguments are no JSON, or with the store's
 *  error if the start cannot be stored: the tool is not run then.
 *  With `wrong_state` and `details.outcome` "unknown" for a call that may have run. With `invalid_input` or `too_large`
 *  if the tool has run and its result cannot be stored: that is stored in its place, and each further call rejects
 *  in the same way. With the store's error if it has run and the store takes nothing: the result stays in memory, and
 *  another call with the id stores and returns it. If its `signal` or `abortSignal` is aborted before the tool runs, it
 *  can be called again; if that cannot be stored, the error has the name and message of the abort and the store's error
 *  as `cause`, and the call is one that may have run. If the tool throws after an abort, its end is unknown.
 *
 *  `session` may be one that has nothing else, or a chat: a call that a stored answer of the model has is that call. Of
 *  calls in one answer with one id, the one with this name and these arguments is meant. A call of a chat that has not
 *  been started here may have run as well if its answer was imported (`source: { type: "history" }`) or if the user or
 *  the model has spoken after it. One whose arguments the model did not write as JSON gets an error result that says
 *  so, and rejects with `invalid_input`, also when it is called again. Arguments that are a text of JSON are those that
 *  the text has: a loop may pass what the model wrote, or its value, and `execute` gets what is passed. */
export declare function once<Args extends unknown[], Result>(
  session: Session,
  tool: OnceTool<Args, Result>,
): (...args: [...Args, ...context: unknown[]]) => Promise<Awaited<Result>>;
