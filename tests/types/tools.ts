// Tools typed by a schema or by hand, and failures typed by their code.

import { type } from "arktype";
import { toStandardJsonSchema } from "@valibot/to-json-schema";
import * as v from "valibot";
import { z } from "zod";
import {
  RethreadError,
  defineTool,
  type ErrorCode,
  type ErrorInfo,
  type RunResult,
  type Session,
  type StandardSchema,
  type Tool,
  type ToolContext,
  type Tools,
} from "rethread";

/** Fails to compile unless both are the same type. */
type Same<A, B> = (<T>() => T extends A ? 1 : 2) extends <T>() => T extends B ? 1 : 2 ? true : false;
const same = <A, B>(_: Same<A, B>): void => {};

// ---- inferred from the schema: what comes out of it, not what goes in

const zod = defineTool({
  description: "Weather.",
  parameters: z.object({ city: z.string(), days: z.string().transform(Number).optional() }),
  execute(args, context) {
    same<typeof args, { city: string; days?: number | undefined }>(true);
    same<typeof context, ToolContext>(true);
    return args.city.toUpperCase();
  },
});
const valibot = defineTool({
  parameters: toStandardJsonSchema(v.object({ city: v.string(), days: v.pipe(v.string(), v.transform(Number)) })),
  async execute(args, { signal }) {
    same<typeof args, { city: string; days: number }>(true);
    signal.throwIfAborted();
  },
});
const arktype = defineTool({
  parameters: type({ city: "string", "days?": "number" }),
  execute: (args) => {
    same<typeof args, { city: string; days?: number }>(true);
    return args.days ?? 1;
  },
});
const companion = defineTool({
  parameters: v.object({ city: v.string() }),
  jsonSchema: { type: "object" },
  execute: ({ city }) => city.length,
});

// ---- by hand, and not at all

const byHand = defineTool<{ city: string }>({
  parameters: { type: "object", properties: { city: { type: "string" } } },
  // @ts-expect-error a tool has no such member
  needs: undefined,
});
const typed = defineTool<{ city: string }>({
  parameters: { type: "object" },
  endsRun: true,
  onInterrupted: "rerun",
  freshness: Infinity,
  persist: () => null,
  execute({ city }) {
    return city.toUpperCase();
  },
});
const untyped = defineTool({
  parameters: { type: "object" },
  execute(args) {
    same<typeof args, unknown>(true);
  },
});
const form = defineTool({ parameters: z.object({ ask: z.string() }) });
same<typeof typed, Tool<{ city: string }>>(true);

interface Schema7 {
  type: "object";
  properties: { city: { type: "string" } };
}
const schema7: Schema7 = { type: "object", properties: { city: { type: "string" } } };
export const tools: Tools = {
  zod,
  valibot,
  arktype,
  companion,
  typed,
  untyped,
  form,
  inline: { parameters: z.object({}), execute: (args) => args },
  named: { parameters: schema7 },
};
export const schemas: StandardSchema[] = [
  z.string(),
  v.number(),
  type("string"),
  z.object({ a: z.string().transform(Number) }),
];

export async function run(session: Session): Promise<void> {
  await session.run({ provider: { dialect: "anthropic", url: "https://example.com", params: {} }, tools });
  // @ts-expect-error `execute` takes what the schema gives
  defineTool({ parameters: z.object({ city: z.string() }), execute: (args: { town: string }) => args.town });
  defineTool<{ city: string }>({
    // @ts-expect-error no such argument
    execute: ({ town }) => town,
  });
}

// ---- failures

export function facts(error: unknown): string | number | undefined {
  if (!(error instanceof RethreadError)) return undefined;
  same<typeof error.code, ErrorCode>(true);
  switch (error.code) {
    case "conflict":
      same<typeof error.details.expected, number | undefined>(true);
      return error.details.revision;
    case "busy":
      same<typeof error.details.leaseUntil, number | undefined>(true);
      return error.message;
    case "model_error": {
      const { status, providerCode, answerStatus, finishReason, hostCode } = error.details;
      same<typeof status, number | undefined>(true);
      same<typeof providerCode, string | null | undefined>(true);
      same<typeof answerStatus, "complete" | "truncated" | "incomplete" | "refused" | "blocked" | "failed" | undefined>(
        true,
      );
      return finishReason ?? hostCode ?? providerCode ?? answerStatus ?? status;
    }
    case "replay_unsafe":
      same<typeof error.details.status, number | undefined>(true);
      return error.details.hostCode ?? error.details.providerCode ?? error.message;
    case "invalid_input":
      same<typeof error.details.line, number | undefined>(true);
      return error.details.line;
    case "quota_exceeded":
      same<(typeof error.details)["anything"], unknown>(true);
      return error.stack;
    // @ts-expect-error no such code
    case "qouta_exceeded":
    default: {
      const { details, cause, name } = error;
      same<typeof name, "RethreadError">(true);
      console.log(details["outcome"], cause);
      return error.code;
    }
  }
}

export function failed({ error }: RunResult): number | undefined {
  const info: ErrorInfo | null = error;
  const plain: { code: string; message: string } | null = error;
  console.log(info?.message, plain?.code);
  return error?.code === "model_error" ? error.details?.status : undefined;
}
export { byHand };
