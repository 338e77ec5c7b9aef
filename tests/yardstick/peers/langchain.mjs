// LangChain: its messages, on the chat models of its provider packages.

import { BedrockRuntimeClient } from '@aws-sdk/client-bedrock-runtime';
import { NodeHttpHandler } from '@smithy/node-http-handler';
import { ChatAnthropic } from '@langchain/anthropic';
import { ChatBedrockConverse } from '@langchain/aws';
import { AIMessage, HumanMessage, SystemMessage, ToolMessage } from '@langchain/core/messages';
import { ChatGoogle } from '@langchain/google';
import { ChatMistralAI } from '@langchain/mistralai';
import { ChatOpenAI } from '@langchain/openai';
import { cannot, runPeer, textOf, toolNames } from './peer.mjs';

const apiKey = 'test-key';

const openAi = (useResponsesApi) => (lane, model) =>
  new ChatOpenAI({ model, apiKey, maxRetries: 0, useResponsesApi, configuration: { baseURL: `${lane}/v1` } });

const MODELS = {
  'openai-chat': openAi(false),
  'openai-responses': openAi(true),
  anthropic: (lane, model, { thinking }) =>
    new ChatAnthropic({
      model,
      apiKey,
      maxRetries: 0,
      maxTokens: 4096,
      anthropicApiUrl: lane,
      ...(thinking && { thinking }),
    }),
  gemini: (lane, model) => new ChatGoogle({ model, apiKey, maxRetries: 0, endpoint: lane }),
  mistral: (lane, model) => new ChatMistralAI({ model, apiKey, maxRetries: 0, serverURL: `${lane}/mistral` }),
  bedrock: (lane, model) =>
    new ChatBedrockConverse({
      model,
      maxRetries: 0,
      region: 'us-east-1',
      credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
      client: new BedrockRuntimeClient({
        endpoint: lane,
        region: 'us-east-1',
        maxAttempts: 1,
        credentials: { accessKeyId: 'test', secretAccessKey: 'test' },
        requestHandler: new NodeHttpHandler(),
      }),
    }),
};

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** A part of an answer of Gemini, as `ChatGoogle` writes it: it sends the calls that are in the content. */
function googleBlock({ type, id, name, input, text, signature }) {
  const sealed = signature && { thoughtSignature: signature };
  if (type === 'call') return { type: 'functionCall', functionCall: { id, name, args: input }, ...sealed };
  return { type: 'text', text, ...(type === 'reasoning' && { thought: true }), ...sealed };
}

/** A block of an answer of Claude, as `ChatAnthropic` writes it: calls are in the content, too. */
function anthropicBlock({ type, id, name, input, text, signature, redacted }) {
  if (type === 'call') return { type: 'tool_use', id, name, input };
  if (type === 'text') return { type: 'text', text };
  return redacted ? { type: 'redacted_thinking', data: redacted } : { type: 'thinking', thinking: text, signature };
}

/** A block of an answer of Bedrock, as `ChatBedrockConverse` writes it: calls are in `tool_calls` alone. */
const bedrockBlock = ({ type, text, signature }) =>
  type === 'text' ? { type, text } : { type: 'reasoning_content', reasoningText: { text, signature } };

/** The blocks of an answer as its provider package writes them. */
function contentOf(parts, dialect) {
  const isText = parts.every(({ type, signature }) => type === 'text' && !signature);
  const besideCalls = parts.filter(({ type }) => type !== 'call');
  if (isText && parts.length < 2) return textOf(parts);
  if (dialect === 'gemini') return parts.map(googleBlock);
  if (dialect === 'anthropic') return parts.map(anthropicBlock);
  if (dialect === 'bedrock') return besideCalls.length ? besideCalls.map(bedrockBlock) : '';
  const said = parts.filter(({ type }) => type === 'text').map(({ text }) => ({ type: 'text', text }));
  if (dialect === 'openai-responses') return said;
  if (dialect !== 'openai-chat' && said.length < besideCalls.length)
    return cannot('its messages have no reasoning for this provider');
  return said.length > 1 ? said : textOf(parts);
}

/** Where each package keeps what else came with an answer. */
function besides(parts, dialect) {
  const [reasoning] = parts.filter(({ type }) => type === 'reasoning');
  const calls = parts.filter(({ type }) => type === 'call');
  if (dialect === 'openai-chat' && reasoning) return { reasoning_content: reasoning.text };
  if (dialect === 'openai-responses') {
    const ids = calls.filter(({ itemId }) => itemId).map(({ id, itemId }) => [id, itemId]);
    return {
      ...(ids.length && { __openai_function_call_ids__: Object.fromEntries(ids) }),
      ...(reasoning && {
        reasoning: {
          type: 'reasoning',
          id: reasoning.itemId,
          summary: reasoning.text ? [{ type: 'summary_text', text: reasoning.text }] : [],
          ...(reasoning.encrypted && { encrypted_content: reasoning.encrypted }),
        },
      }),
    };
  }
  return {};
}

function messagesOf({ role, parts }, dialect, nameOf) {
  if (role === 'system') return [new SystemMessage(textOf(parts))];
  if (role === 'user')
    return [
      new HumanMessage(
        parts.length === 1 ? parts[0].text : { content: parts.map(({ text }) => ({ type: 'text', text })) },
      ),
    ];
  if (role === 'tool')
    return parts.map(
      ({ id, text, isError }) =>
        new ToolMessage({ tool_call_id: id, name: nameOf(id), content: text, ...(isError && { status: 'error' }) }),
    );
  const calls = parts.filter(({ type }) => type === 'call');
  // `ChatGoogle` and `ChatAnthropic` read arguments as they come.
  const isValid = ({ input }) => isObject(input) || dialect === 'gemini' || dialect === 'anthropic';
  const message = {
    id: parts.find(({ type, itemId }) => type === 'text' && itemId)?.itemId,
    content: contentOf(parts, dialect),
    tool_calls: calls.filter(isValid).map(({ id, name, input }) => ({ type: 'tool_call', id, name, args: input })),
    invalid_tool_calls: calls
      .filter((call) => !isValid(call))
      .map(({ id, name, input }) => ({
        type: 'invalid_tool_call',
        id,
        name,
        args: typeof input === 'string' ? input : JSON.stringify(input),
      })),
    additional_kwargs: besides(parts, dialect),
  };
  return [new AIMessage(message)];
}

await runPeer(async ({ dialect, given }, { lane }) => {
  const nameOf = toolNames(given);
  const messages = given.messages.flatMap((message) => messagesOf(message, dialect, nameOf));
  const tools = given.tools.map((name) => ({
    type: 'function',
    function: { name, description: name, parameters: { type: 'object', properties: {} } },
  }));
  const model = MODELS[dialect](lane, given.model, given);
  await (tools.length ? model.bindTools(tools) : model).invoke(messages);
});
