// `rethread/ai-sdk` with the named types of `ai` 6 and 7, and those of an application.

import {
  DefaultChatTransport,
  convertToModelMessages,
  stepCountIs,
  streamText,
  tool,
  wrapLanguageModel,
  type ChatInit,
  type ChatTransport,
  type LanguageModel,
  type ModelMessage,
  type UIMessage,
} from "ai";
import {
  convertToModelMessages as convertToModelMessages7,
  DefaultChatTransport as DefaultChatTransport7,
  generateText as generateText7,
  streamText as streamText7,
  tool as tool7,
  wrapLanguageModel as wrapLanguageModel7,
  type ChatInit as ChatInit7,
  type ChatTransport as ChatTransport7,
  type UIMessage as UIMessage7,
} from "ai-7";
import type { NewMessage, Session } from "rethread";
import {
  chatHandler,
  durableTools,
  fromUIMessages,
  historyMiddleware,
  loadUIMessages,
  resumeUIMessages,
  sessionTransport,
  toUIMessages,
  withSession,
} from "rethread/ai-sdk";
import { z } from "zod";

type Metadata = { tokens: number };
type Data = { weather: { city: string } };
type Tools = { look: { input: { of: number }; output: string } };
type AppMessage = UIMessage<Metadata, Data, Tools>;
type AppMessage7 = UIMessage7<Metadata, Data, Tools>;

export async function pages(session: Session, app: ChatTransport<AppMessage>, messages: AppMessage[]): Promise<void> {
  const plain: ChatInit<UIMessage> = {
    messages: await loadUIMessages(session),
    transport: withSession(new DefaultChatTransport({ api: "/api/chat" }), session),
  };
  const typed: ChatInit<AppMessage> = {
    messages: await loadUIMessages<AppMessage>(session, { ai: 6 }),
    transport: withSession(app, session),
  };
  const added: NewMessage[] = fromUIMessages(messages);
  await session.append(added);
  const shown: UIMessage[] = toUIMessages(session.view().getSnapshot().messages);
  const stored: AppMessage[] = toUIMessages((await session.messages()).items);
  const sent: ModelMessage[] = await convertToModelMessages(await loadUIMessages(session));
  // @ts-expect-error A version that there is no adapter for.
  toUIMessages([], { ai: 5 });
  // @ts-expect-error No transport.
  withSession({}, session);
  void [plain, typed, shown, stored, sent];
}

export async function pagesOf7(session: Session, app: ChatTransport7<AppMessage7>): Promise<void> {
  const plain: ChatInit7<UIMessage7> = {
    messages: await loadUIMessages(session),
    transport: withSession(new DefaultChatTransport7({ api: "/api/chat" }), session),
  };
  const typed: ChatInit7<AppMessage7> = {
    messages: await loadUIMessages<AppMessage7>(session, { ai: 7 }),
    transport: withSession(app, session),
  };
  fromUIMessages(typed.messages ?? []);
  void plain;
}

type Wrapped = Parameters<typeof wrapLanguageModel>[0]["model"];
type Wrapped7 = Parameters<typeof wrapLanguageModel7>[0]["model"];

export async function loops(session: Session, model: Wrapped, model7: Wrapped7): Promise<void> {
  const look = tool({ inputSchema: z.object({ of: z.number() }), execute: async ({ of }) => ({ of }) });
  const tools = durableTools({ look }, session, { onInterrupted: { look: "rerun" } });
  const wrapped: LanguageModel = wrapLanguageModel({ model, middleware: historyMiddleware(session) });
  const messages = await convertToModelMessages(await resumeUIMessages(session, { tools }), { tools });
  const result = streamText({ model: wrapped, tools, messages, stopWhen: stepCountIs(3) });
  for (const { input } of (await result.toolCalls).flatMap((call) => (call.dynamic ? [] : [call]))) void input.of;
  // @ts-expect-error No tool has this name.
  durableTools({ look }, session, { onInterrupted: { lock: "rerun" } });
  // @ts-expect-error One of two words.
  durableTools({ look }, session, { onInterrupted: { look: "again" } });

  const look7 = tool7({ inputSchema: z.object({ of: z.number() }), execute: async ({ of }) => ({ of }) });
  const tools7 = durableTools({ look7 }, session);
  await generateText7({
    model: wrapLanguageModel7({ model: model7, middleware: historyMiddleware(session) }),
    tools: tools7,
    messages: await convertToModelMessages7(await resumeUIMessages<UIMessage7>(session, { tools: tools7, ai: 7 })),
  });
}

export function servers(session: Session, model: Wrapped, model7: Wrapped7): unknown[] {
  const look = tool({ inputSchema: z.object({ of: z.number() }), execute: async ({ of }) => ({ of }) });
  const handler: (request: Request) => Promise<Response> = chatHandler({
    session: async (id, { headers }) => (headers.get("cookie") ? session : new Response(id, { status: 401 })),
    tools: { look },
    onInterrupted: { look: "rerun" },
    answer: async ({ messages, tools, abortSignal }) =>
      streamText({ model, tools, messages: await convertToModelMessages(messages), abortSignal }),
  });
  // @ts-expect-error Without `session`.
  chatHandler({ answer: () => new ReadableStream() });
  const transport = sessionTransport(session, {
    answer: async ({ messages, abortSignal }) =>
      streamText7({ model: model7, messages: await convertToModelMessages7(messages), abortSignal }),
  });
  const chat: ChatInit<UIMessage> = { transport };
  const chat7: ChatInit7<UIMessage7> = { transport };
  const stopped: Promise<boolean | "asked"> = transport.stop();
  return [handler, chat, chat7, stopped];
}
