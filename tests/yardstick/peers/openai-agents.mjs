// The OpenAI Agents SDK: a history as a session returns it.

import {
  Agent,
  MemorySession,
  OpenAIChatCompletionsModel,
  OpenAIResponsesModel,
  run,
  setTracingDisabled,
  tool,
} from '@openai/agents';
import OpenAI from 'openai';
import { cannot, runPeer, toolNames } from './peer.mjs';

setTracingDisabled(true);

const MODELS = { 'openai-chat': OpenAIChatCompletionsModel, 'openai-responses': OpenAIResponsesModel };

function itemsOf({ role, parts }, nameOf) {
  if (role === 'system') return parts.map(({ text }) => ({ role, content: text }));
  if (role === 'user') return [{ role, content: parts.map(({ text }) => ({ type: 'input_text', text })) }];
  return parts.map((part) => {
    const id = part.itemId && { id: part.itemId };
    switch (part.type) {
      case 'text':
        return { ...id, role, status: 'completed', content: [{ type: 'output_text', text: part.text }] };
      case 'reasoning':
        return {
          ...id,
          type: 'reasoning',
          content: part.text ? [{ type: 'input_text', text: part.text }] : [],
          rawContent: part.itemId ? undefined : [{ type: 'reasoning_text', text: part.text }],
          ...(part.encrypted && { providerData: { encrypted_content: part.encrypted } }),
        };
      case 'call': {
        const text = typeof part.input === 'string' ? part.input : JSON.stringify(part.input);
        return { ...id, type: 'function_call', callId: part.id, name: part.name, status: 'completed', arguments: text };
      }
      default:
        return {
          type: 'function_call_result',
          callId: part.id,
          name: nameOf(part.id),
          status: 'completed',
          output: { type: 'text', text: part.text },
        };
    }
  });
}

await runPeer(async ({ dialect, given }, { lane, ran }) => {
  const Model = MODELS[dialect] ?? cannot('it has models of OpenAI alone');
  const client = new OpenAI({ apiKey: 'test-key', baseURL: `${lane}/v1`, maxRetries: 0 });
  const tools = given.tools.map((name) =>
    tool({
      name,
      description: name,
      parameters: { type: 'object', properties: {}, required: [], additionalProperties: true },
      strict: false,
      execute: async () => {
        ran();
        return 'RAN AGAIN';
      },
    }),
  );
  const agent = new Agent({ name: 'assistant', model: new Model(client, given.model), tools });
  const nameOf = toolNames(given);
  // What the user says last is the input of the run, and the session has what was before.
  const { messages } = given;
  const isQuestion = messages.at(-1)?.role === 'user';
  const items = (list) => list.flatMap((message) => itemsOf(message, nameOf));
  const session = new MemorySession({ initialItems: items(isQuestion ? messages.slice(0, -1) : messages) });
  await run(agent, isQuestion ? items(messages.slice(-1)) : [], { session, maxTurns: 1 });
});
