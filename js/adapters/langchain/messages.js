// Messages of LangChain as messages of a session, and back. What a message of the session does not say is kept in its
// record.

import {
  AIMessage,
  ChatMessage,
  FunctionMessage,
  HumanMessage,
  SystemMessage,
  ToolMessage,
} from '@langchain/core/messages';
import { RethreadError } from '../../error.js';
import { INTERRUPTED } from '../interrupted.js';
import { asStored, recordOf, recordPart } from '../message-record.js';
import { isJsonText } from '../call-arguments.js';
import { isObject, isSameJson } from '../plain.js';

const RECORD = 'langchain';
const CLASSES = /** @type {Record<string, any>} */ ({
  human: HumanMessage,
  ai: AIMessage,
  system: SystemMessage,
  tool: ToolMessage,
  function: FunctionMessage,
  generic: ChatMessage,
});
const DATA_URL = /^data:([^;,]*);base64,(.*)$/s;

/** A message of LangChain in JSON. @typedef {{ type: string, data: Record<string, any> }} StoredMessage */

/** @returns {StoredMessage} */
function storedOf(message) {
  if (typeof message?.getType !== 'function') {
    throw new RethreadError(
      'invalid_input',
      'a history keeps messages of LangChain, such as `new HumanMessage("Hi")`; for objects with a `role` there is `coerceMessageLikeToMessage` of "@langchain/core/messages"',
    );
  }
  const type = message.getType();
  if (!Object.hasOwn(CLASSES, type ?? '')) {
    throw new RethreadError('invalid_input', `a history cannot keep a message of the type ${JSON.stringify(type)}`);
  }
  // Of what LangChain's own `toDict` returns, members that were set later are missing.
  const members = Object.entries(message).filter(([name]) => name !== 'type' && !name.startsWith('lc_'));
  return { type, data: asStored(Object.fromEntries(members)) };
}

/** @param {StoredMessage} stored */
const messageOf = ({ type, data }) => new CLASSES[type](data);

/** @returns {any[]} */
function contentPart(block) {
  if (typeof block?.text === 'string' && (block.type === 'text' || block.type === undefined)) {
    return block.text ? [{ type: 'text', text: block.text }] : [];
  }
  if (block?.type !== 'image_url' && block?.type !== 'image') return [];
  const url = typeof block.image_url === 'string' ? block.image_url : (block.image_url?.url ?? block.url);
  const [, mediaType, data] = DATA_URL.exec(url ?? '') ?? [];
  if (data !== undefined) return [{ type: 'image', data, ...(mediaType && { mediaType }) }];
  return typeof url === 'string' ? [{ type: 'image', url }] : [];
}

function contentParts(content) {
  if (typeof content === 'string') return content ? [{ type: 'text', text: content }] : [];
  return Array.isArray(content) ? content.flatMap(contentPart) : [];
}

/** The calls that a request with this answer has: a provider rejects it unless each has a result. Beside the parsed
 *  ones these are blocks of the content, as Anthropic's package sends them, and, in an answer without a parsed one, the
 *  raw calls of OpenAI's. @returns {{ id: string, name: string, args: any }[]} */
function callsOf({ content, tool_calls: parsed = [], additional_kwargs: more }) {
  const blocks = (Array.isArray(content) ? content : []).filter(({ type }) => type === 'tool_use');
  const raw = parsed.length || !Array.isArray(more?.tool_calls) ? [] : more.tool_calls;
  const unparsed = [
    ...blocks.map(({ id, name, input }) => ({ id, name, args: input })),
    ...raw.map(({ id, function: called }) => ({ id, name: called?.name, args: called?.arguments })),
  ];
  const ids = new Set(parsed.map(({ id }) => id));
  const isNew = ({ id }) => typeof id === 'string' && !ids.has(id) && ids.add(id);
  return [...parsed, ...unparsed.filter(isNew)];
}

const callPart = ({ id, name, args }) => ({
  type: 'tool',
  ...(id && { callId: id }),
  name: name ?? '',
  arguments: args ?? {},
});

function usageOf({ usage_metadata: usage }) {
  if (typeof usage?.input_tokens !== 'number' || typeof usage.output_tokens !== 'number') return {};
  return { usage: { inputTokens: usage.input_tokens, outputTokens: usage.output_tokens } };
}

/** The message that is stored for one of LangChain which is no result. */
function drafted(stored) {
  const { type, data } = stored;
  const parts = contentParts(data.content);
  const isAnswer = type === 'ai' || (type === 'generic' && data.role === 'assistant');
  if (!isAnswer)
    return { stored, role: type === 'system' ? 'system' : 'user', parts: type === 'function' ? [] : parts };
  const calls = callsOf(data).map(callPart);
  const model = data.response_metadata?.model_name;
  return {
    stored,
    role: 'assistant',
    parts: [...parts, ...calls],
    ...usageOf(data),
    ...(typeof model === 'string' && { model }),
  };
}

/** What the session keeps of a result. */
function resultOf({ data }) {
  return { result: data.content ?? '', ...(data.status === 'error' && { isError: true }) };
}

/** The message for a result that only the session has. */
function resultMessage({ callId, name, result: { content, isError } }) {
  const text = typeof content === 'string' || Array.isArray(content) ? content : JSON.stringify(content);
  const status = isError ? 'error' : 'success';
  return storedOf(new ToolMessage({ content: text, tool_call_id: callId, name, status }));
}

/** The arguments of a call as an object, which providers require: as `render` sends what the model wrote otherwise. */
function argumentsOf({ arguments: args = {}, argumentsText }) {
  if (isObject(args)) return args;
  return isJsonText(argumentsText ?? JSON.stringify(args)) ? { value: args } : { invalid_json: args };
}

/** The messages that a message without a record stands for. Results are not among them. */
function derived({ role, parts }) {
  const content = parts
    .flatMap((part) => (part.type === 'text' || part.type === 'refusal' ? [part.text] : []))
    .join('\n');
  const calls = parts.filter(({ type }) => type === 'tool_call' || type === 'tool');
  if (role === 'assistant') {
    const toolCalls = calls.map((call) => ({
      type: 'tool_call',
      id: call.callId,
      name: call.name,
      args: argumentsOf(call),
    }));
    return content || calls.length ? [storedOf(new AIMessage({ content, tool_calls: toolCalls }))] : [];
  }
  const images = parts.filter(({ type }) => type === 'image').map(imageBlock);
  if (!content && !images.length) return [];
  if (role !== 'user') return [storedOf(new SystemMessage({ content }))];
  const text = content ? [{ type: 'text', text: content }] : [];
  return [storedOf(new HumanMessage({ content: images.length ? [...text, ...images] : content }))];
}

const imageBlock = ({ url, data, mediaType }) => ({
  type: 'image_url',
  image_url: { url: url ?? `data:${mediaType ?? ''};base64,${data}` },
});

/** @param {any[]} messages @param {Set<string>} storedCalls the ids of stored calls without a result
 *  @returns {any[]} the messages for `Session.append` */
export function appendedMessages(messages, storedCalls) {
  const open = new Set(storedCalls);
  const toolMessages = [];
  const drafts = /** @type {any[]} */ ([]);
  for (const stored of messages.map(storedOf)) {
    const callId = stored.data.tool_call_id;
    if (stored.type !== 'tool') {
      drafts.push(drafted(stored));
      continue;
    }
    const findCall = ({ parts }) => parts.find((part) => part.callId === callId && part.result === undefined);
    const draft = drafts.findLast(findCall);
    if (draft) {
      Object.assign(findCall(draft), resultOf(stored));
    } else if (open.delete(callId)) {
      toolMessages.push({ role: 'tool', parts: [{ type: 'tool_result', callId, ...resultOf(stored) }] });
    }
    const home = draft ?? drafts.at(-1);
    if (home) home.results = [...(home.results ?? []), stored];
    else drafts.push({ role: 'assistant', parts: [], results: [stored] });
  }
  return [...toolMessages, ...drafts.map(withRecord)];
}

/** @param {any} drafted */
function withRecord({ stored, results, ...message }) {
  const record = { ...(stored && { message: stored }), ...(results && { results }) };
  const isPlain = !results && isSameJson(derived(message), [stored]);
  if (isPlain && !message.usage && !message.model) return message;
  return { ...message, parts: [recordPart(RECORD, record, message.parts), ...message.parts] };
}

/** What the session's messages say: the messages of LangChain, and the calls without a result. */
export function readConversation(messages) {
  const stored = /** @type {StoredMessage[]} */ ([]);
  const calls = messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool_call'));
  for (const message of messages) {
    const record = recordOf(RECORD, message);
    stored.push(...(record ? (record.message ? [record.message] : []) : derived(message)), ...(record?.results ?? []));
    const told = new Set((record?.results ?? []).map(({ data }) => data.tool_call_id));
    const untold = message.parts.filter((part) => part.type === 'tool_call' && part.result && !told.has(part.callId));
    // A result that a later record has as well precedes this one's copy only if that is of another call.
    stored.push(...untold.map((call) => ({ ...resultMessage(call), isCopy: true })));
  }
  const open = new Set(calls.filter(({ result }) => !result).map(({ callId }) => callId));
  return { stored, open };
}

/** The messages, each result after its call, in the order of the calls. A result without a call is left out, and a call
 *  without a result gets one that says so; with `keepOpen` not if nothing follows it. @returns {any[]} */
export function pairedMessages(stored, keepOpen) {
  const rest = stored.filter(({ type }) => type !== 'tool');
  const last = rest.at(-1);
  const resultsOf = resultsByAnswer(stored);
  return rest
    .flatMap((message) => {
      const calls = message.type === 'ai' ? callsOf(message.data) : [];
      const known = resultsOf.get(message);
      const results = calls.map(({ id, name }) => known?.get(id) ?? missingResult(id, name));
      return [message, ...(keepOpen && message === last ? results.filter(({ isMissing }) => !isMissing) : results)];
    })
    .map(messageOf);
}

function missingResult(callId, name) {
  return { ...resultMessage({ callId, name, result: { content: INTERRUPTED, isError: true } }), isMissing: true };
}

/** The results of each answer by the ids of its calls: the one that was added, or else the session's. A result is that
 *  of the newest answer before it that has its id. @returns {Map<StoredMessage, Map<string, any>>} */
function resultsByAnswer(stored) {
  const results = new Map();
  const answers = new Map();
  for (const message of stored) {
    if (message.type === 'ai') {
      results.set(message, new Map());
      for (const { id } of callsOf(message.data)) answers.set(id, message);
    }
    const callId = message.data.tool_call_id;
    const known = message.type === 'tool' ? results.get(answers.get(callId)) : undefined;
    const first = known?.get(callId);
    if (known && (!first || (first.isCopy && !message.isCopy))) known.set(callId, message);
  }
  return results;
}
