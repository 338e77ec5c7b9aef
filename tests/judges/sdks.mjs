// The providers' own clients, offline: each decodes recorded bytes as it would decode its provider's.

import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { Mistral } from '@mistralai/mistralai';
import { HTTPClient } from '@mistralai/mistralai/lib/http.js';
import OpenAI from 'openai';

const BASE = 'http://judge.invalid';
const ASKED = [{ role: 'user', content: 'q' }];

/** A fetch that answers with the bytes, in two pieces, and asks no network. */
const answering = (bytes) => async () =>
  new Response(
    new ReadableStream({
      start(controller) {
        const middle = bytes.length >> 1;
        controller.enqueue(bytes.slice(0, middle));
        controller.enqueue(bytes.slice(middle));
        controller.close();
      },
    }),
    { status: 200, headers: { 'content-type': 'text/event-stream' } },
  );

/** Arguments as a value: how a client spells them is its own affair. */
const value = (text) => {
  if (typeof text !== 'string') return text ?? {};
  try {
    return JSON.parse(text || '{}');
  } catch {
    return text;
  }
};
const sum = (...counts) => counts.reduce((all, count) => all + (count ?? 0), 0);

async function chat(bytes) {
  const client = new OpenAI({ apiKey: 'k', baseURL: BASE, maxRetries: 0, fetch: answering(bytes) });
  const stream = client.chat.completions.stream({
    model: 'm',
    messages: ASKED,
    stream_options: { include_usage: true },
  });
  const found = await stream.finalChatCompletion();
  const [{ message, finish_reason: reason }] = found.choices;
  return {
    text: message.content ?? '',
    calls: (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: value(call.function.arguments),
    })),
    reason,
    usage: found.usage ? [found.usage.prompt_tokens, found.usage.completion_tokens] : null,
  };
}

async function responses(bytes) {
  const client = new OpenAI({ apiKey: 'k', baseURL: BASE, maxRetries: 0, fetch: answering(bytes) });
  const found = await client.responses.stream({ model: 'm', input: 'q' }).finalResponse();
  return {
    text: found.output
      .filter((item) => item.type === 'message')
      .flatMap((item) => item.content)
      .map((part) => part.text ?? '')
      .join(''),
    calls: found.output
      .filter((item) => item.type === 'function_call')
      .map((call) => ({ id: call.call_id, name: call.name, arguments: value(call.arguments) })),
    reason: null,
    usage: found.usage ? [found.usage.input_tokens, found.usage.output_tokens] : null,
  };
}

async function anthropic(bytes) {
  const client = new Anthropic({ apiKey: 'k', baseURL: BASE, maxRetries: 0, fetch: answering(bytes) });
  const found = await client.messages.stream({ model: 'm', max_tokens: 9, messages: ASKED }).finalMessage();
  const { usage } = found;
  return {
    text: found.content
      .filter((block) => block.type === 'text')
      .map((block) => block.text)
      .join(''),
    calls: found.content
      .filter((block) => block.type === 'tool_use')
      .map((block) => ({ id: block.id, name: block.name, arguments: block.input })),
    reason: found.stop_reason,
    usage: [
      sum(usage.input_tokens, usage.cache_read_input_tokens, usage.cache_creation_input_tokens),
      usage.output_tokens,
    ],
    thinking: found.content.filter((block) => /thinking/.test(block.type)),
  };
}

/** Puts a piece of a call's arguments in its place: strings go on, everything else comes once. Google's client hands
 *  the pieces out as they come. */
function putPiece(call, { jsonPath, stringValue, numberValue, boolValue }) {
  const path = jsonPath.match(/[^.$[\]'"]+/g);
  let at = call.arguments;
  path.slice(0, -1).forEach((key, place) => {
    at = at[key] ??= /^\d+$/.test(path[place + 1]) ? [] : {};
  });
  const last = path.at(-1);
  at[last] = stringValue === undefined ? (numberValue ?? boolValue ?? null) : (at[last] ?? '') + stringValue;
}

async function gemini(bytes) {
  const client = new GoogleGenAI({ apiKey: 'k', httpOptions: { baseUrl: BASE, fetch: answering(bytes) } });
  const found = { text: '', calls: [], reason: null, usage: null };
  let growing = null;
  for await (const chunk of await client.models.generateContentStream({ model: 'm', contents: 'q' })) {
    const [candidate] = chunk.candidates ?? [];
    for (const part of candidate?.content?.parts ?? []) {
      if (part.text && !part.thought) found.text += part.text;
      const { functionCall } = part;
      if (!functionCall) continue;
      if (!growing || functionCall.name)
        found.calls.push(
          (growing = { id: functionCall.id ?? '', name: functionCall.name, arguments: functionCall.args ?? {} }),
        );
      for (const piece of functionCall.partialArgs ?? []) putPiece(growing, piece);
      if (!functionCall.willContinue) growing = null;
    }
    found.reason = candidate?.finishReason ?? found.reason;
    const usage = chunk.usageMetadata;
    if (usage)
      found.usage = [
        sum(usage.promptTokenCount, usage.toolUsePromptTokenCount),
        sum(usage.candidatesTokenCount, usage.thoughtsTokenCount),
      ];
  }
  return found;
}

async function mistral(bytes) {
  const client = new Mistral({
    apiKey: 'k',
    serverURL: BASE,
    retryConfig: { strategy: 'none' },
    httpClient: new HTTPClient({ fetcher: answering(bytes) }),
  });
  const found = { text: '', calls: [], reason: null, usage: null };
  for await (const { data } of await client.chat.stream({ model: 'm', messages: ASKED })) {
    const [choice] = data.choices;
    const { content, toolCalls } = choice?.delta ?? {};
    if (typeof content === 'string') found.text += content;
    else for (const part of content ?? []) found.text += part.type === 'text' ? part.text : '';
    for (const call of toolCalls ?? [])
      found.calls.push({ id: call.id, name: call.function.name, arguments: value(call.function.arguments) });
    found.reason = choice?.finishReason ?? found.reason;
    if (data.usage) found.usage = [data.usage.promptTokens, data.usage.completionTokens];
  }
  return found;
}

/** By dialect: bytes to `{ text, calls, reason, usage }`; a client that refuses them rejects. */
export const sdks = { 'openai-chat': chat, 'openai-responses': responses, anthropic, gemini, mistral };
