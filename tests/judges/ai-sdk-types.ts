// `rethread/ai-sdk` with the named types of `ai` 6 and 7, and those of an application.

import {
  DefaultChatTransport,
  convertToModelMessages,
  type ChatInit,
  type ChatTransport,
  type ModelMessage,
  type UIMessage,
} from "ai";
import {
  DefaultChatTransport as DefaultChatTransport7,
  type ChatInit as ChatInit7,
  type ChatTransport as ChatTransport7,
  type UIMessage as UIMessage7,
} from "ai-7";
import type { NewMessage, Session } from "rethread";
import { fromUIMessages, loadUIMessages, toUIMessages, withSession } from "rethread/ai-sdk";

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
