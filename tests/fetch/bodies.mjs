// Broken conversations, and a `fetch` that records its arguments.

const user = (content = 'hello') => ({ role: 'user', content });

/** By dialect, a body whose call has no result. */
export const BROKEN = {
  'openai-chat': {
    model: 'gpt-4.1',
    messages: [
      user(),
      {
        role: 'assistant',
        content: null,
        tool_calls: [
          { id: 'call_1', type: 'function', function: { name: 'f', arguments: '{"n":12345678901234567890}' } },
        ],
      },
      user('?'),
    ],
  },
  'openai-responses': {
    model: 'gpt-5',
    input: [user(), { type: 'function_call', call_id: 'call_1', name: 'f', arguments: '{}' }, user('?')],
  },
  anthropic: {
    model: 'claude-sonnet-5',
    max_tokens: 9,
    messages: [
      user(),
      { role: 'assistant', content: [{ type: 'tool_use', id: 'toolu_1', name: 'f', input: {} }] },
      user('?'),
    ],
  },
  'gemini-interactions': {
    input: [
      { type: 'user_input', content: [{ type: 'text', text: 'hello' }] },
      { type: 'function_call', id: 't1', name: 'f', arguments: {} },
      { type: 'user_input', content: [{ type: 'text', text: '?' }] },
    ],
  },
  bedrock: {
    messages: [
      { role: 'user', content: [{ text: 'hello' }] },
      { role: 'assistant', content: [{ toolUse: { toolUseId: 't1', name: 'f', input: {} } }] },
      { role: 'user', content: [{ text: '?' }] },
    ],
    toolConfig: { tools: [{ toolSpec: { name: 'f', inputSchema: { json: { type: 'object' } } } }] },
  },
  gemini: {
    contents: [
      { role: 'user', parts: [{ text: 'hello' }] },
      { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
      { role: 'user', parts: [{ text: '?' }] },
    ],
  },
  mistral: {
    model: 'mistral-small-latest',
    messages: [
      user(),
      { role: 'assistant', content: '', tool_calls: [{ id: 'aaaaaaaaa', function: { name: 'f', arguments: '{}' } }] },
      user('?'),
    ],
  },
  'mistral-conversations': {
    model: 'mistral-small-latest',
    inputs: [
      user(),
      { type: 'function.call', tool_call_id: 'aaaaaaaaa', name: 'f', arguments: '{}' },
      { type: 'message.input', ...user('?') },
    ],
  },
};
export const VALID = { model: 'gpt-4.1', messages: [user('Grüße 🙂')], seed: 1 };
export const OPENAI = 'https://api.openai.com/v1/chat/completions';

/** `{ fetch, calls }`: answers every request with an empty response. */
export function spy() {
  const calls = [];
  const fetch = async (...args) => {
    calls.push(args);
    return new Response('{}');
  };
  return { fetch, calls };
}

/** The bytes that a real `fetch` would send for these arguments. */
export async function sentText([input, init]) {
  const request = new Request(input, init);
  return request.text();
}
