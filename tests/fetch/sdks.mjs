// The providers' own clients and two frameworks, each behind the same few functions. They keep their providers'
// addresses; `local` leads these to the stand-in.

import { createAnthropic } from '@ai-sdk/anthropic';
import { createOpenAI } from '@ai-sdk/openai';
import Anthropic from '@anthropic-ai/sdk';
import { GoogleGenAI } from '@google/genai';
import { ChatAnthropic } from '@langchain/anthropic';
import { AIMessage, HumanMessage, ToolMessage } from '@langchain/core/messages';
import { ChatOpenAI } from '@langchain/openai';
import { Mistral } from '@mistralai/mistralai';
import { HTTPClient } from '@mistralai/mistralai/lib/http.js';
import { generateText, jsonSchema, streamText, tool } from 'ai';
import OpenAI, { AzureOpenAI } from 'openai';

const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const TOOLS = ['get_weather', 'get_time', 'book_table'];
const apiKey = 'test-key';
const answered = ({ name, input }) => `RESULT-${name} for ${JSON.stringify(input)}`;

/** A fetch that asks the stand-in's lane instead of the provider: same path, same everything. */
export const local = (base) => (input, init) => {
  const request = typeof input === 'object' && 'url' in input ? input : null;
  const { hostname, pathname, search } = new URL(request ? request.url : input);
  const target = `${base}${hostname === 'api.mistral.ai' ? '/mistral' : ''}${pathname}${search}`;
  return fetch(request ? new Request(target, request) : target, init);
};

const chatCalls = (calls) =>
  (calls ?? []).map((call) => ({ id: call.id, name: call.function.name, input: JSON.parse(call.function.arguments) }));

/** OpenAI's chat, at any client that has it. */
const chat = (client, model) => ({
  dialect: 'openai-chat',
  question: (content) => ({ role: 'user', content }),
  results: (calls) => calls.map((call) => ({ role: 'tool', tool_call_id: call.id, content: answered(call) })),
  async ask(fetch, messages, { stream, signal, retries = 0 }) {
    const { completions } = client(fetch, retries).chat;
    const params = {
      model,
      messages,
      tools: TOOLS.map((name) => ({ type: 'function', function: { name, parameters: city } })),
    };
    const found = stream
      ? await completions.stream(params, { signal }).finalChatCompletion()
      : await completions.create(params, { signal });
    const [{ message }] = found.choices;
    const { parsed, ...plain } = message; // what the stream helper adds is no part of the wire
    if (plain.tool_calls)
      plain.tool_calls = plain.tool_calls.map(({ id, type, function: { name, arguments: text } }) => ({
        id,
        type,
        function: { name, arguments: text },
      }));
    return { text: message.content, calls: chatCalls(message.tool_calls), said: [plain] };
  },
});

const openai = chat((fetch, maxRetries) => new OpenAI({ apiKey, maxRetries, fetch }), 'gpt-4.1');
const azure = chat(
  (fetch, maxRetries) =>
    new AzureOpenAI({
      apiKey,
      maxRetries,
      fetch,
      endpoint: 'https://example.openai.azure.com',
      apiVersion: '2025-04-01-preview',
    }),
  'gpt-4.1',
);
const openRouter = chat(
  (fetch, maxRetries) => new OpenAI({ apiKey, maxRetries, fetch, baseURL: 'https://openrouter.ai/api/v1' }),
  'openai/gpt-4.1',
);

const responses = {
  dialect: 'openai-responses',
  question: (content) => ({ role: 'user', content }),
  results: (calls) => calls.map((call) => ({ type: 'function_call_output', call_id: call.id, output: answered(call) })),
  async ask(fetch, input, { stream, signal, retries = 0 }) {
    const client = new OpenAI({ apiKey, maxRetries: retries, fetch });
    const params = {
      model: 'gpt-5',
      input,
      store: false,
      include: ['reasoning.encrypted_content'],
      reasoning: { effort: 'low' },
      tools: TOOLS.map((name) => ({ type: 'function', name, parameters: city, strict: false })),
    };
    const found = stream
      ? await client.responses.stream(params, { signal }).finalResponse()
      : await client.responses.create(params, { signal });
    const calls = found.output.filter((item) => item.type === 'function_call');
    const said = found.output.map(({ parsed_arguments: _, ...item }) =>
      item.content ? { ...item, content: item.content.map(({ parsed: __, ...part }) => part) } : item,
    );
    return {
      text: found.output_text,
      calls: calls.map((call) => ({ id: call.call_id, name: call.name, input: JSON.parse(call.arguments) })),
      said,
    };
  },
};

const anthropic = {
  dialect: 'anthropic',
  question: (content) => ({ role: 'user', content }),
  results: (calls) => [
    {
      role: 'user',
      content: calls.map((call) => ({ type: 'tool_result', tool_use_id: call.id, content: answered(call) })),
    },
  ],
  async ask(fetch, messages, { stream, signal, retries = 0 }) {
    const client = new Anthropic({ apiKey, maxRetries: retries, fetch });
    const params = {
      model: 'claude-sonnet-4-6',
      max_tokens: 2048,
      messages,
      thinking: { type: 'enabled', budget_tokens: 1024 },
      tools: TOOLS.map((name) => ({ name, input_schema: city })),
    };
    const found = stream
      ? await client.messages.stream(params, { signal }).finalMessage()
      : await client.messages.create(params, { signal });
    const text = found.content
      .filter((block) => block.type === 'text')
      .map((block) => block.text)
      .join('');
    const calls = found.content
      .filter((block) => block.type === 'tool_use')
      .map(({ id, name, input }) => ({ id, name, input }));
    return { text, calls, said: [{ role: 'assistant', content: found.content }] };
  },
};

const google = {
  dialect: 'gemini',
  question: (text) => ({ role: 'user', parts: [{ text }] }),
  results: (calls) => [
    {
      role: 'user',
      parts: calls.map((call) => ({
        functionResponse: { id: call.id, name: call.name, response: { result: answered(call) } },
      })),
    },
  ],
  async ask(fetch, contents, { stream, signal, retries = 0 }) {
    const retryOptions = retries ? { attempts: retries + 1, initialDelay: 0.001, maxDelay: 0.01 } : { attempts: 1 };
    const { models } = new GoogleGenAI({ apiKey, httpOptions: { fetch, retryOptions } });
    const config = {
      abortSignal: signal,
      tools: [{ functionDeclarations: TOOLS.map((name) => ({ name, parametersJsonSchema: city })) }],
    };
    const params = { model: 'gemini-3-pro-preview', contents, config };
    const parts = [];
    if (stream)
      for await (const chunk of await models.generateContentStream(params))
        parts.push(...(chunk.candidates[0].content?.parts ?? []));
    else parts.push(...(await models.generateContent(params)).candidates[0].content.parts);
    const calls = parts
      .filter((part) => part.functionCall)
      .map(({ functionCall: { id, name, args } }) => ({ id, name, input: args }));
    return { text: parts.map((part) => part.text ?? '').join(''), calls, said: [{ role: 'model', parts }] };
  },
};

const mistral = {
  dialect: 'mistral',
  question: (content) => ({ role: 'user', content }),
  results: (calls) =>
    calls.map((call) => ({ role: 'tool', toolCallId: call.id, name: call.name, content: answered(call) })),
  async ask(fetch, messages, { stream, signal, retries = 0 }) {
    const retryConfig = retries
      ? {
          strategy: 'backoff',
          backoff: { initialInterval: 1, maxInterval: 10, exponent: 1.1, maxElapsedTime: 20_000 },
          retryConnectionErrors: false,
        }
      : { strategy: 'none' };
    const client = new Mistral({ apiKey, retryConfig, httpClient: new HTTPClient({ fetcher: fetch }) });
    const params = {
      model: 'mistral-small-latest',
      messages,
      tools: TOOLS.map((name) => ({ type: 'function', function: { name, parameters: city } })),
    };
    const said = { role: 'assistant', content: '' };
    if (stream) {
      for await (const { data } of await client.chat.stream(params, { signal, fetchOptions: { signal } })) {
        const { content, toolCalls } = data.choices[0].delta;
        said.content += content ?? '';
        if (toolCalls) said.toolCalls = [...(said.toolCalls ?? []), ...toolCalls];
      }
    } else {
      const { message } = (await client.chat.complete(params, { fetchOptions: { signal } })).choices[0];
      said.content = message.content;
      if (message.toolCalls) said.toolCalls = message.toolCalls;
    }
    return { text: said.content, calls: chatCalls(said.toolCalls), said: [said] };
  },
};

/** The `ai` package refuses an open call by itself; it sends a result whose call was trimmed away. */
const orphan =
  (sdk) =>
  (question, { calls }) => [sdk.question(question), ...sdk.results(calls), sdk.question('Hello?')];

const aiSdk = (dialect, model) => {
  const sdk = {
    dialect,
    question: (content) => ({ role: 'user', content }),
    results: (calls) => [
      {
        role: 'tool',
        content: calls.map((call) => ({
          type: 'tool-result',
          toolCallId: call.id,
          toolName: call.name,
          output: { type: 'text', value: answered(call) },
        })),
      },
    ],
    async ask(fetch, messages, { stream, signal, retries = 0 }) {
      const tools = Object.fromEntries(TOOLS.map((name) => [name, tool({ inputSchema: jsonSchema(city) })]));
      const params = { model: model(fetch), messages, tools, maxRetries: retries, abortSignal: signal };
      let found;
      if (stream) {
        found = streamText({ ...params, onError() {} });
        for await (const part of found.fullStream) {
          if (part.type === 'error') throw part.error;
          if (part.type === 'abort') throw signal.reason;
        }
      } else {
        found = await generateText(params);
      }
      const [text, calls, response] = await Promise.all([found.text, found.toolCalls, found.response]);
      return {
        text,
        calls: calls.map((call) => ({ id: call.toolCallId, name: call.toolName, input: call.input })),
        said: response.messages,
      };
    },
  };
  return { ...sdk, broken: orphan(sdk) };
};

const langChain = (dialect, model) => ({
  dialect,
  question: (text) => new HumanMessage(text),
  results: (calls) =>
    calls.map((call) => new ToolMessage({ tool_call_id: call.id, name: call.name, content: answered(call) })),
  async ask(fetch, messages, { stream, signal, retries = 0 }) {
    const bound = model(fetch, retries).bindTools(
      TOOLS.map((name) => ({ type: 'function', function: { name, parameters: city } })),
    );
    let found;
    if (stream)
      for await (const chunk of await bound.stream(messages, { signal })) found = found ? found.concat(chunk) : chunk;
    else found = await bound.invoke(messages, { signal });
    const calls = (found.tool_calls ?? []).map(({ id, name, args }) => ({ id, name, input: args }));
    return { text: found.text, calls, said: [new AIMessage({ content: found.text, tool_calls: found.tool_calls })] };
  },
});

/** By name: `question(text)`, `results(calls)` and `ask(fetch, history, how)`, which gives `{ text, calls, said }`;
 *  `said` goes on the history. `broken(text, answer)` is a history that the client sends and the provider refuses. */
export const SDKS = {
  'openai, chat': openai,
  'openai, responses': responses,
  'openai, Azure': azure,
  'openai, OpenRouter': openRouter,
  '@anthropic-ai/sdk': anthropic,
  '@google/genai': google,
  '@mistralai/mistralai': mistral,
  '@ai-sdk/openai, chat': aiSdk('openai-chat', (fetch) => createOpenAI({ apiKey, fetch }).chat('gpt-4.1')),
  '@ai-sdk/openai, responses': aiSdk('openai-responses', (fetch) =>
    createOpenAI({ apiKey, fetch }).responses('gpt-4.1'),
  ),
  '@ai-sdk/anthropic': aiSdk('anthropic', (fetch) => createAnthropic({ apiKey, fetch })('claude-sonnet-5')),
  'LangChain, ChatOpenAI': langChain(
    'openai-chat',
    (fetch, maxRetries) => new ChatOpenAI({ model: 'gpt-4.1', apiKey, maxRetries, configuration: { fetch } }),
  ),
  'LangChain, ChatAnthropic': langChain(
    'anthropic',
    (fetch, maxRetries) =>
      new ChatAnthropic({ model: 'claude-sonnet-5', apiKey, maxRetries, clientOptions: { fetch } }),
  ),
};
for (const sdk of Object.values(SDKS))
  sdk.broken ??= (question, { said }) => [sdk.question(question), ...said, sdk.question('Hello?')];
