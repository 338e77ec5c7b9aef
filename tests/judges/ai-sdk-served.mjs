// A chat that `chatHandler` of `rethread/ai-sdk` serves, and pages with `useChat` of the `ai` package.

import { chatHandler, loadUIMessages } from 'rethread/ai-sdk';
import { modelOf, again, newSession } from './ai-sdk-models.mjs';
import { pageOf } from './ai-sdk-page.mjs';

/** `answers`: lists of the parts of a model's stream. */
export async function servedChat([, ai, Model], answers, { tools = {}, settings = {}, ...options } = {}) {
  const session = await newSession();
  const { model, prompts } = modelOf(Model, answers);
  const { page: pageOptions, ...served } = options;
  const handler = chatHandler({
    session: async (id) => again(session, id),
    tools,
    answer: async ({ messages, tools: durable, abortSignal }) =>
      ai.streamText({
        model,
        tools: durable,
        messages: await ai.convertToModelMessages(messages, { tools: durable }),
        abortSignal,
        stopWhen: ai.stepCountIs(5),
        maxRetries: 0,
        onError: () => {},
        ...settings,
      }),
    ...served,
  });
  const transport = new ai.DefaultChatTransport({
    api: 'https://server.test/api/chat',
    fetch: (url, init) => handler(new Request(url, init)),
  });
  const pageWith = (messages, more) => pageOf(ai, { id: session.id, transport, messages, ...more });
  /** A page that is loaded now. */
  const reload = async (more) => pageWith(await loadUIMessages(await again(session)), more);
  const stop = () => handler(new Request(`https://server.test/api/chat/${session.id}/stop`, { method: 'POST' }));
  return { session, handler, prompts, page: pageWith([], pageOptions), reload, stop };
}
