// A stored chat of a page with `useChat` of the `ai` package, for tests.

import assert from 'node:assert/strict';
import { open } from 'rethread';
import { loadUIMessages, toUIMessages, withSession } from 'rethread/ai-sdk';
import { Server, pageOf } from './ai-sdk-page.mjs';

export const client = await open({ store: 'memory' });
let count = 0;

/** A session, its server, and a page that shows it. `reload` gives another page of the same session, and
 *  `newPage` one that shows other messages. */
export async function chatOf(ai, options = {}) {
  count += 1;
  const session = await client.session(`chat-${count}`);
  const server = new Server(ai);
  const newPage = (messages) => pageOf(ai, { transport: withSession(server.transport, session), messages, ...options });
  const reload = async () => newPage(await loadUIMessages(session));
  return { session, server, page: newPage([]), newPage, reload };
}

export const items = async (session) => (await session.messages({ limit: 1000 })).items;
export const stored = async (session) => toUIMessages(await items(session));
/** What a page shows of messages: texts, and calls with their states. */
export const shown = (messages) =>
  messages.map(({ role, parts }) =>
    [role, ...parts.flatMap((part) => part.text ?? (part.toolCallId ? `${part.toolCallId} ${part.state}` : []))].join(
      ': ',
    ),
  );
export const until = async (isSo) => {
  for (let waited = 0; !(await isSo()); waited += 5) {
    assert.ok(waited < 10_000, `still not so: ${isSo}`);
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
};

/** An answer of the server whose chunks are sent by the test. */
export function openAnswer() {
  let controller;
  const body = new ReadableStream({
    start: (own) => {
      controller = own;
    },
  });
  const send = (...chunks) => {
    for (const chunk of chunks.flat())
      controller.enqueue(new TextEncoder().encode(`data: ${JSON.stringify(chunk)}\n\n`));
  };
  return { answer: () => new Response(body), send, close: () => controller.close() };
}
/** The beginning of an answer, whose step is left open. */
export const start = (messageId) => [{ type: 'start', messageId }, { type: 'start-step' }];
/** What `session.state` has of answers that arrive. */
export const kept = ({ state }) => state.keys().map((key) => JSON.stringify(state.get(key)));
export const keeps = (session, words) => until(() => kept(session).some((value) => value.includes(words)));
