// The `ai` package with the provider packages of its own.

import { createAmazonBedrock } from '@ai-sdk/amazon-bedrock';
import { createAnthropic } from '@ai-sdk/anthropic';
import { createGoogleGenerativeAI } from '@ai-sdk/google';
import { createMistral } from '@ai-sdk/mistral';
import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateText, jsonSchema, tool } from 'ai';
import { runPeer, toolNames } from './peer.mjs';

const apiKey = 'test-key';

const MODELS = {
  'openai-chat': (lane, model) =>
    /^(?:gpt|o\d)/.test(model)
      ? createOpenAI({ apiKey, baseURL: `${lane}/v1` }).chat(model)
      : createOpenAICompatible({ name: 'compatible', apiKey, baseURL: `${lane}/v1` })(model),
  'openai-responses': (lane, model) => createOpenAI({ apiKey, baseURL: `${lane}/v1` }).responses(model),
  anthropic: (lane, model) => createAnthropic({ apiKey, baseURL: `${lane}/v1` })(model),
  gemini: (lane, model) => createGoogleGenerativeAI({ apiKey, baseURL: `${lane}/v1beta` })(model),
  mistral: (lane, model) => createMistral({ apiKey, baseURL: `${lane}/mistral/v1` })(model),
  bedrock: (lane, model) => createAmazonBedrock({ region: 'us-east-1', apiKey, baseURL: lane })(model),
};

/** What each provider package reads of what came with a part. */
function providerOptions(part, dialect) {
  if (dialect === 'openai-responses' && (part.itemId || part.encrypted))
    return { openai: { itemId: part.itemId, ...(part.encrypted && { reasoningEncryptedContent: part.encrypted }) } };
  if (dialect === 'gemini' && part.signature) return { google: { thoughtSignature: part.signature } };
  if (dialect === 'anthropic' && part.type === 'reasoning')
    return { anthropic: part.redacted ? { redactedData: part.redacted } : { signature: part.signature } };
  if (dialect === 'bedrock' && part.type === 'reasoning') return { bedrock: { signature: part.signature } };
  return undefined;
}

function assistantPart(part, dialect) {
  const options = { providerOptions: providerOptions(part, dialect) };
  if (part.type === 'call')
    return { type: 'tool-call', toolCallId: part.id, toolName: part.name, input: part.input, ...options };
  return { type: part.type, text: part.text, ...options };
}

const messageOf = (nameOf, dialect) => (message) => {
  const { role, parts } = message;
  if (role === 'system') return { role, content: parts.map(({ text }) => text).join('') };
  if (role === 'user') return { role, content: parts.map(({ text }) => ({ type: 'text', text })) };
  if (role === 'assistant') return { role, content: parts.map((part) => assistantPart(part, dialect)) };
  const results = parts.map(({ id, text, isError }) => ({
    type: 'tool-result',
    toolCallId: id,
    toolName: nameOf(id),
    output: { type: isError ? 'error-text' : 'text', value: text },
  }));
  return { role, content: results };
};

await runPeer(async ({ dialect, given }, { lane, ran }) => {
  const messages = given.messages.map(messageOf(toolNames(given), dialect));
  const instructions = messages[0]?.role === 'system' ? messages.shift().content : undefined;
  const execute = async () => {
    ran();
    return 'RAN AGAIN';
  };
  const tools = given.tools.map((name) => [name, tool({ inputSchema: jsonSchema({ type: 'object' }), execute })]);
  await generateText({
    model: MODELS[dialect](lane, given.model),
    instructions,
    messages,
    allowSystemInMessages: true,
    tools: Object.fromEntries(tools),
    maxRetries: 0,
    providerOptions: {
      // The service has no items of these histories, to which the package would refer by their ids.
      openai: { store: false },
      ...(given.thinking && { anthropic: { thinking: thinkingOf(given.thinking) } }),
    },
  });
});

/** The options of the provider package are in camel case. */
function thinkingOf({ budget_tokens: budgetTokens, ...rest }) {
  return { ...rest, ...(budgetTokens && { budgetTokens }) };
}
