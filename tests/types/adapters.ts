// The adapters against the types of the libraries that they serve.

import {
  Agent,
  run,
  type OpenAIResponsesCompactionOwnershipAwareSession,
  type Session as AgentsSdkSession,
  type SessionHistoryRewriteAwareSession,
  type SessionHistoryTransactionAwareSession,
} from "@openai/agents";
import { RunnableWithMessageHistory, type Runnable } from "@langchain/core/runnables";
import type { BaseListChatMessageHistory } from "@langchain/core/chat_history";
import { ChatClient, type ChatClientPersistence, type ConnectionAdapter } from "@tanstack/ai-client";
import type { Rethread, Session } from "rethread";
import { threadHistory, threadList } from "rethread/assistant-ui";
import { chatMessageHistory } from "rethread/langchain";
import { once } from "rethread/once";
import { agentsSession, type CompactItems } from "rethread/openai-agents";
import { chatPersistence, RethreadError } from "rethread/tanstack-ai";

export async function agents(session: Session, compact: CompactItems): Promise<string | undefined> {
  const kept = agentsSession(session);
  const sdk: AgentsSdkSession & SessionHistoryTransactionAwareSession & SessionHistoryRewriteAwareSession = kept;
  const compacting: OpenAIResponsesCompactionOwnershipAwareSession = agentsSession(session, { compact });
  // @ts-expect-error Without `compact` there is no compaction.
  kept.runCompaction();
  // @ts-expect-error The only option is `compact`.
  agentsSession(session, { limit: 3 });
  const agent: Agent = kept.durable(new Agent({ name: "A" }));
  await run(agent, "q", { session: sdk });
  return (await run(agent, "q", { session: compacting })).finalOutput;
}

export function history(session: Session, runnable: Runnable): RunnableWithMessageHistory<any, any> {
  const kept: BaseListChatMessageHistory = chatMessageHistory(session, { openCalls: "keep" });
  // @ts-expect-error One of two words.
  chatMessageHistory(session, { openCalls: "drop" });
  return new RunnableWithMessageHistory({ runnable, getMessageHistory: async () => kept, config: {} });
}

export async function tanstack(store: Rethread, connection: ConnectionAdapter): Promise<ChatClient> {
  const codes: string[] = [];
  const kept = chatPersistence(store, {
    onError: (error, { id, operation }) => {
      if (error instanceof RethreadError) codes.push(error.code, id, operation);
    },
  });
  const persistence: ChatClientPersistence = kept;
  await kept.flush("chat");
  const loaded = await kept.getItem("chat");
  if (loaded) await kept.setItem("chat", loaded);
  // @ts-expect-error The only option is `onError`.
  chatPersistence(store, { keyPrefix: "a" });
  // @ts-expect-error It takes a store.
  chatPersistence(await store.session("chat"));
  return new ChatClient({ threadId: "chat", persistence, connection });
}

export async function tools(session: Session, signal: AbortSignal): Promise<number> {
  const execute = async (mail: { to: string }, context: { callId: string; signal: AbortSignal }) =>
    mail.to.length + context.callId.length;
  const send = once(session, {
    name: "send_mail",
    execute,
    onInterrupted: () => ({ result: 3 }),
    callId: (mail) => mail.to,
  });
  // @ts-expect-error The arguments are those of `execute`.
  await send({ to: 7 }, { callId: "c", signal });
  // @ts-expect-error The core's "ask" is a function here.
  once(session, { name: "send_mail", execute, onInterrupted: "ask" });
  // @ts-expect-error A result is what `execute` returns.
  once(session, { name: "send_mail", execute, onInterrupted: () => ({ result: "three" }) });
  return send({ to: "ann" }, { callId: "c", signal });
}

// The examples of docs/assistant-ui.md are checked against the types of assistant-ui.
export function threads(store: Rethread, session: Session): Promise<void>[] {
  const kept = threadHistory(session);
  const title = (messages: readonly { role: string }[]): string => messages[0]?.role ?? "";
  const list = threadList(store, { useAui: () => ({}), channel: "a", limit: 10, title });
  // @ts-expect-error It takes a session.
  threadHistory("chat-1");
  // @ts-expect-error An option that there is not.
  threadList(store, { titel: title });
  // @ts-expect-error A title is a text.
  threadList(store, { title: () => 5 });
  return [kept.delete([]), list.rename("id", kept.scopeId)];
}
