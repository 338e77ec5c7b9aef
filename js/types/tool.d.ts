// Tools of the application.

import type { JsonObject } from "./formats.js";
import type { PlatformAbortSignal } from "./platform.js";

/** Tools by name. */
export type Tools = Record<string, Tool>;
/** A schema of zod, valibot, arktype or any other library that implements https://standardschema.dev. */
export interface StandardSchema<Input = unknown, Output = Input> {
  readonly "~standard": {
    readonly version: 1;
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    readonly types?: { readonly input: Input; readonly output: Output } | undefined;
  };
}
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | {
      readonly issues: readonly {
        readonly message: string;
        readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
      }[];
    };
/** The type of the arguments after validation by the schema. */
export type SchemaOutput<S extends StandardSchema> = NonNullable<S["~standard"]["types"]>["output"];
export interface ToolContext {
  callId: string;
  /** Unique over all sessions: an idempotency key. */
  invocationId: string;
  /** 1 for the first execution; higher if a resumed run executes the tool again. */
  attempt: number;
  /** The arguments as the model wrote them. */
  argumentsText: string;
  signal: PlatformAbortSignal;
}
/** A tool. `Args` is the type of the arguments of `execute`; `defineTool` infers it. */
export interface Tool<Args = unknown> {
  description?: string;
  /** JSON Schema, or a Standard Schema (zod 4.2, arktype 2.1.28, valibot with `toStandardJsonSchema` of
   *  `@valibot/to-json-schema`). The request contains its JSON Schema. `drive` validates the arguments before it marks
   *  the tool as started: `execute` receives the validated, transformed value. Invalid arguments become an error result
   *  for the model, and the tool does not run. Storage and `persist` get the arguments as the model wrote them. */
  parameters?: JsonObject | StandardSchema<unknown, Args>;
  /** Sent to the model instead of the JSON Schema of `parameters`, for schemas that have no JSON Schema
   *  representation. */
  jsonSchema?: JsonObject;
  /** Absent for a tool that the application answers itself, such as by a form on the page: its `run_tool` effect
   *  (`Run.effects`) stays open until `Run.answer(effect.id, { type: "tool_result", content })`. A tool that is `async`
   *  may return `pending`: its result comes later, by `Session.answer`. */
  execute?(args: Args, context: ToolContext): unknown | Promise<unknown>;
  /** True if the conversation may go on before the result: the run can finish with the call open
   *  (`RunResult.openCalls`), and `Session.answer` stores the result, from any tab or process, at any time. The next
   *  request contains it. OpenAI Responses is sent the tool as asynchronous; other dialects get a result that says
   *  "pending" in its place, and the real one in a later message, which says that it is from the tool. Without
   *  `execute`, the run does not wait for any call of the tool. */
  async?: boolean;
  /** True if the result of this tool ends the run without a further model call. */
  endsRun?: boolean;
  /** True if a person must approve each call (`Run.approve`, `onApproval` of `drive`), or a function of the call's
   *  arguments that decides it. The arguments are as the model wrote them; the tool runs with the same. A function that
   *  throws, or returns neither true nor false, means that the call needs an approval, and warns ("callback_failed"). A
   *  decision survives a reload, as does the wait. */
  needsApproval?: boolean | ((args: unknown) => boolean | Promise<boolean>);
  /** For a resumed run whose tool had started and has no stored result. "report" (default) adds the error result
   *  "interrupted, may have run"; "rerun" runs the tool again; "ask" lets the call wait for an approval to run again,
   *  as "rerun" does for a call that needs an approval. */
  onInterrupted?: "report" | "rerun" | "ask";
  /** Like `ReplayPolicy.freshness`, for results of this tool. */
  freshness?: number | null;
  /**
   * Returns what to store of a call: replacement `arguments` and `result` (an absent member is stored unchanged), or
   * `null` to store only that the tool was called. Called before the call is stored, with `result` undefined, and again
   * with the result; the later return value counts. It applies to the log, the audit table, the journal, and the
   * provider's own members of the call; the live run sends the original values.
   *
   * If it throws, or returns a promise or an object with an unknown member, nothing is stored and a warning is reported
   * ("callback_failed"). A call of which nothing is stored is omitted from later requests ("redacted"); after a crash
   * it is reported as interrupted and never run again.
   */
  persist?(
    invocation: { name: string; arguments: unknown },
    result?: unknown,
  ): { arguments?: unknown; result?: unknown } | null;
}

/** Returned by `execute` of a tool that is `async`: the result comes later. From another tool it is an error result. */
export declare const pending: unique symbol;
/** Returns the tool unchanged, with the arguments of `execute` typed by its Standard Schema, or by `defineTool<Args>`
 *  (not checked at run time). */
export function defineTool<S extends StandardSchema<any, any>>(
  tool: Omit<Tool<SchemaOutput<S>>, "parameters"> & { parameters: S },
): Tool<SchemaOutput<S>>;
export function defineTool<Args = unknown>(tool: Tool<Args>): Tool<Args>;
