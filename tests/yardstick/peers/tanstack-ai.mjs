// TanStack AI with the adapter packages of its own.

import { chat, toolDefinition } from '@tanstack/ai';
import { createAnthropicChat } from '@tanstack/ai-anthropic';
import { createGeminiChat } from '@tanstack/ai-gemini';
import { createMistralText } from '@tanstack/ai-mistral';
import { createOpenaiChat, createOpenaiChatCompletions } from '@tanstack/ai-openai';
import { cannot, runPeer, textOf } from './peer.mjs';

const apiKey = 'test-key';
const ADAPTERS = {
  'openai-chat': (lane, model) => createOpenaiChatCompletions(model, apiKey, { baseURL: `${lane}/v1`, maxRetries: 0 }),
  'openai-responses': (lane, model) => createOpenaiChat(model, apiKey, { baseURL: `${lane}/v1`, maxRetries: 0 }),
  anthropic: (lane, model) => createAnthropicChat(model, apiKey, { baseURL: lane, maxRetries: 0 }),
  gemini: (lane, model) => createGeminiChat(model, apiKey, { baseURL: lane }),
  mistral: (lane, model) => createMistralText(model, apiKey, { baseURL: `${lane}/mistral` }),
};

function messagesOf({ role, parts }) {
  if (role === 'system') return cannot('its messages have no system message between others');
  if (role === 'user')
    return [
      {
        role,
        content: parts.length === 1 ? parts[0].text : parts.map(({ text }) => ({ type: 'text', content: text })),
      },
    ];
  if (role === 'tool')
    return parts.map(({ id, text, isError }) => ({
      role,
      toolCallId: id,
      content: text,
      ...(isError && { error: text }),
    }));
  if (parts.some(({ encrypted, redacted }) => encrypted || redacted))
    cannot('its messages have no encrypted reasoning');
  const calls = parts.filter(({ type }) => type === 'call');
  const thinking = parts.filter(({ type }) => type === 'reasoning');
  return [
    {
      role,
      content: textOf(parts) || (calls.length ? null : ''),
      ...(thinking.length && { thinking: thinking.map(({ text, signature }) => ({ content: text, signature })) }),
      ...(calls.length && {
        toolCalls: calls.map(({ id, name, input, signature }) => ({
          id,
          type: 'function',
          function: { name, arguments: typeof input === 'string' ? input : JSON.stringify(input) },
          ...(signature && { metadata: { thoughtSignature: signature } }),
        })),
      }),
    },
  ];
}

await runPeer(async ({ dialect, given }, { lane, ran }) => {
  const adapterOf = ADAPTERS[dialect] ?? cannot('it has no package for this provider');
  const messages = [...given.messages];
  const systemPrompts = messages[0]?.role === 'system' ? [textOf(messages.shift().parts)] : [];
  const tools = given.tools.map((name) =>
    toolDefinition({ name, description: name, inputSchema: { type: 'object', properties: {} } }).server(async () => {
      ran();
      return 'RAN AGAIN';
    }),
  );
  const stream = chat({
    adapter: adapterOf(lane, given.model),
    messages: messages.flatMap(messagesOf),
    systemPrompts,
    tools,
    ...(given.thinking && { modelOptions: { thinking: given.thinking } }),
  });
  for await (const chunk of stream)
    if (chunk.type === 'RUN_ERROR') throw new Error(chunk.message ?? chunk.error?.message);
});
