// The model and the tools of runs that are killed: two calls, one call, text. What is asked and what runs is a line of a file.

import { appendFileSync } from 'node:fs';

const ROUNDS = [[['a', 'look'], ['b', 'find']], [['c', 'look']]];

/** The request of a run: its answer depends on the body alone, so it goes on after any kill. */
export function runRequest(file, persistence) {
  const execute = (_, { invocationId }) => {
    appendFileSync(file, `tool ${invocationId}\n`);
    return 'found';
  };
  const schema = { type: 'object', properties: {} };
  return {
    provider: { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } },
    tools: { look: { parameters: schema, execute }, find: { parameters: schema, execute } },
    ...(persistence && { persistence }),
  };
}

/** Answers as a provider of chat completions. */
export const fetchFor = (file) => async (_, { body }) => {
  const { messages } = JSON.parse(new TextDecoder().decode(body));
  const rounds = messages.slice(messages.findLastIndex(({ role }) => role === 'user')).filter(({ role }) => role === 'assistant').length;
  appendFileSync(file, `model ${rounds}\n`);
  const calls = ROUNDS[rounds];
  const message = calls
    ? { role: 'assistant', content: null, tool_calls: calls.map(([id, name]) => ({ id, type: 'function', function: { name, arguments: '{}' } })) }
    : { role: 'assistant', content: 'Done.' };
  return Response.json({ id: 'r', object: 'chat.completion', model: 'm', choices: [{ index: 0, message, finish_reason: calls ? 'tool_calls' : 'stop' }] });
};
