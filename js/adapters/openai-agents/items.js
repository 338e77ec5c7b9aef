// Items of the Agents SDK as messages of a session, and messages as items. What a message does not say is kept in its
// record, so that the items come back as they were.

import { asStored, recordOf, recordPart } from '../message-record.js';
import { isSameJson } from '../plain.js';

/** The name of the part that has a message's record. */
export const RECORD = 'openai-agents';

/** What is kept of a message. `removes`: messages that count no longer; `startsHistory`: nor do those before this one;
 *  `starts`: the ids of calls whose tools begin to run.
 *  @typedef {{ items?: object[], removes?: string[], startsHistory?: boolean, starts?: string[],
 *    operations?: { id: string, digest: string }[] }} ItemRecord */

/** Who has stored a message: `Message.source`. @typedef {import('../../types.js').MessageSource} Source */
/** An item, and the source of the message that has it. `isStored`: a result that its call has already. `invocation`: that
 *  of a call which must be known by it; `outcome`: what a call has of a result that is kept.
 *  @typedef {{ item: any, source?: Source, isStored?: boolean, invocation?: string, outcome?: Outcome }} SourcedItem */
/** @typedef {{ content: any, isError: boolean, status: string, startedAt: number | null,
 *    finishedAt: number | null }} Outcome */

/** The invocations of stored calls without a result, in their order, by the id of the call.
 *  @typedef {Map<string, string[]>} OpenCalls */

const isSameSource = (left, right) => left?.type === right?.type && left?.id === right?.id;

const DATA_URL = /^data:([^;,]*);base64,(.*)$/s;

function mediaPart(type, source, name) {
  if (typeof source === 'object' && source !== null) {
    if (typeof source.url === 'string') return mediaPart(type, source.url, name);
    return typeof source.id === 'string' ? { type: 'file', fileId: source.id } : null;
  }
  if (typeof source !== 'string') return null;
  const [, mediaType, data] = DATA_URL.exec(source) ?? [];
  const place = data === undefined ? { url: source } : { data, ...(mediaType && { mediaType }) };
  return { type, ...place, ...(type === 'file' && typeof name === 'string' && { name }) };
}

/** @returns {any} */
function contentPart(content) {
  switch (content?.type) {
    case 'input_text':
    case 'output_text':
      return typeof content.text === 'string' ? { type: 'text', text: content.text } : null;
    case 'refusal':
      return typeof content.refusal === 'string' ? { type: 'refusal', text: content.refusal } : null;
    case 'input_image':
      return mediaPart('image', content.image);
    case 'input_file':
      return mediaPart('file', content.file, content.filename);
    default:
      return null;
  }
}

/** @returns {any[]} */
function contentParts(content) {
  if (typeof content === 'string') return content ? [{ type: 'text', text: content }] : [];
  return Array.isArray(content) ? content.map(contentPart).filter((part) => part !== null && part.text !== '') : [];
}

/** The result of a call as the session keeps it. */
export function resultOf({ output }) {
  return output?.type === 'text' && typeof output.text === 'string' ? output.text : asStored(output ?? null);
}

/** The item of a result that only the session has. */
export function resultItem({ callId, name, result }) {
  const { content } = result;
  const text = typeof content === 'string' ? content : JSON.stringify(content);
  return { type: 'function_call_result', name, callId, status: 'completed', output: { type: 'text', text } };
}

/** True if `resultItem` returns the item for what the session keeps of it. */
export function isPlainResult(item, name) {
  return isSameJson(item, resultItem({ callId: item.callId, name, result: { content: resultOf(item) } }));
}

function reasoningText({ content, rawContent }) {
  const texts = [...(Array.isArray(content) ? content : []), ...(Array.isArray(rawContent) ? rawContent : [])];
  return texts.map(({ text }) => text).join('\n');
}

/** Collects the messages of one append. */
class Draft {
  /** Results of calls that are stored already. */
  toolMessages = [];
  messages = [];
  /** The answer to which items are added. @type {any} */
  #answer = null;
  /** By id, the calls of the newest answer that has one. @type {Map<string, { answer: any, parts: any[] }>} */
  #calls = new Map();

  /** @param {OpenCalls} openCalls */
  constructor(openCalls) {
    this.openCalls = new Map([...openCalls].map(([callId, invocations]) => [callId, [...invocations]]));
  }

  /** @param {SourcedItem} sourced */
  add(sourced) {
    const { item, source } = sourced;
    if (item.type === 'function_call_result') return this.#addResult(sourced);
    const isMessage = item.type === 'message' || (item.type === undefined && typeof item.role === 'string');
    if (isMessage && item.role !== 'assistant') {
      this.#begin(item.role === 'system' ? 'system' : 'user', source, item, contentParts(item.content));
      this.#answer = null;
      return;
    }
    if (this.#answer?.hasResults || !isSameSource(this.#answer?.source, source)) this.#answer = null;
    const answer = this.#answer ?? this.#begin('assistant', source);
    this.#answer = answer;
    answer.items.push(item);
    if (isMessage) answer.parts.push(...contentParts(item.content));
    if (item.type === 'reasoning' && reasoningText(item))
      answer.parts.push({ type: 'reasoning', text: reasoningText(item) });
    if (item.type === 'function_call') this.#addCall(answer, sourced);
  }

  /** @param {any} answer @param {SourcedItem} sourced */
  #addCall(answer, { item: { callId, name, arguments: args }, invocation }) {
    const part = { type: 'tool', callId, name, arguments: args, result: undefined, invocation };
    answer.parts.push(part);
    const newest = this.#calls.get(callId);
    const earlier = newest && newest.answer === answer ? newest.parts : [];
    this.#calls.set(callId, { answer, parts: [...earlier, part] });
  }

  /** A result belongs to the answer before it, whoever has stored that. @param {SourcedItem} sourced */
  #addResult({ item, source, isStored, outcome }) {
    if (!isStored) this.#answerCall(item, outcome);
    this.#answer ??= this.#begin('assistant', source);
    this.#answer.items.push(item);
    // A call that follows may have the id of the one that is answered here.
    this.#answer.hasResults = true;
  }

  #answerCall(item, outcome) {
    const drafted = this.#calls.get(item.callId);
    const part = drafted?.parts.find(({ result }) => result === undefined);
    const invocation = drafted ? undefined : this.openCalls.get(item.callId)?.shift();
    if (part) Object.assign(part, { result: outcome ? outcome.content : resultOf(item), outcome });
    if (invocation !== undefined) this.addStoredResult(item, invocation);
  }

  /** Answers a call that is stored. */
  addStoredResult(item, invocation) {
    const part = { type: 'tool_result', callId: invocation, result: resultOf(item) };
    this.toolMessages.push({ role: 'tool', parts: [part] });
  }

  #begin(role, source, item, parts = []) {
    const message = { role, source, items: item ? [item] : [], parts, hasResults: false };
    this.messages.push(message);
    return message;
  }
}

/** The parts in an order in which they are one message: the session begins another one at what follows a result. */
function partsOfOneMessage(parts) {
  const isCall = ({ type }) => type === 'tool';
  const answered = parts.findIndex((part) => isCall(part) && part.result !== undefined);
  const isOne = answered < 0 || parts.slice(answered).every(isCall);
  return isOne ? parts : [...parts.filter((part) => !isCall(part)), ...parts.filter(isCall)];
}

/** Without the results at the end that the calls of the message have anyway, in their order. */
function withoutPlainResults({ items, parts }) {
  const answered = parts.filter((part) => part.type === 'tool' && part.result !== undefined);
  const rest = items.slice(0, items.length - answered.length);
  const results = items.slice(rest.length);
  const isPlain = answered.every(({ callId, name, result }, at) =>
    isSameJson(results[at], resultItem({ callId, name, result: { content: result } })),
  );
  return isPlain && !rest.some(({ type }) => type === 'function_call_result') ? rest : items;
}

/** The part for `Session.append`. A call as a view has it brings its invocation and all that is stored of its result. */
function storedPart({ invocation, outcome, ...part }) {
  if (invocation === undefined && outcome === undefined) return part;
  const { callId, name, arguments: text, result } = part;
  const { content = result, isError = false, ...more } = outcome ?? { finishedAt: null };
  const told = result === undefined ? null : { content, isError };
  const call = { id: invocation, callId, name, arguments: text, argumentsText: text, result: told, ...more };
  return { type: 'tool', call };
}

function storedMessage(drafted, extra) {
  const { role } = drafted;
  const parts = partsOfOneMessage(drafted.parts);
  const source = drafted.source ? { source: drafted.source } : {};
  const kept = withoutPlainResults(drafted);
  const record = { ...(!isSameJson(kept, itemsOfParts(role, parts)) && { items: kept }), ...extra };
  const stored = parts.map(storedPart);
  if (!Object.keys(record).length) return { role, parts: stored, ...source };
  return { role, parts: [recordPart(RECORD, record, parts), ...stored], ...source };
}

/** Returns the message that has a record and nothing that a conversation shows.
 *  @param {ItemRecord} record @param {Source} [source] */
export const recordMessage = (record, source) =>
  storedMessage({ role: 'assistant', source, items: [], parts: [] }, record);

/** Returns the messages for `Session.append`. `record` is kept with the first of them.
 *  @param {SourcedItem[]} items @param {{ openCalls: OpenCalls, record?: ItemRecord }} options */
export function messagesOf(items, { openCalls, record = {} }) {
  const draft = new Draft(openCalls);
  for (const item of items) draft.add(item);
  const { messages } = draft;
  const stored = messages.map((message, at) => storedMessage(message, at === 0 ? record : {}));
  if (Object.keys(record).length && !messages.length) stored.push(recordMessage(record));
  return [...draft.toolMessages, ...stored];
}

/** Returns the message for `Session.append` that answers a stored call with a result which needs no record. */
export function plainResultMessage(item, invocation) {
  const draft = new Draft(new Map());
  draft.addStoredResult(item, invocation);
  return draft.toolMessages;
}

function mediaSource({ url, data, mediaType, fileId }) {
  if (fileId !== undefined) return { id: fileId };
  return data === undefined ? url : `data:${mediaType ?? ''};base64,${data}`;
}

function inputContent(part) {
  switch (part.type) {
    case 'text':
      return { type: 'input_text', text: part.text };
    case 'image':
      return { type: 'input_image', image: mediaSource(part) };
    case 'file':
      return { type: 'input_file', file: mediaSource(part), ...(part.name !== undefined && { filename: part.name }) };
    default:
      return null;
  }
}

function inputItem(role, parts) {
  const [first, ...others] = parts;
  const isText = first?.type === 'text' && !others.length;
  if (role !== 'user' || isText) {
    const text = parts.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join('\n');
    return text ? [{ type: 'message', role: role === 'user' ? 'user' : 'system', content: text }] : [];
  }
  const content = parts.map(inputContent).filter((entry) => entry !== null);
  return content.length ? [{ type: 'message', role, content }] : [];
}

function answerItem(part) {
  const text = (content) => [{ type: 'message', role: 'assistant', status: 'completed', content: [content] }];
  if (part.type === 'text') return text({ type: 'output_text', text: part.text });
  if (part.type === 'refusal') return text({ type: 'refusal', refusal: part.text });
  if (part.type !== 'tool' && part.type !== 'tool_call') return [];
  const written = part.argumentsText ?? part.arguments;
  const args = typeof written === 'string' ? written : JSON.stringify(written ?? {});
  return [{ type: 'function_call', callId: part.callId, name: part.name, status: 'completed', arguments: args }];
}

/** The items that parts without a record stand for. Results are not among them. */
function itemsOfParts(role, allParts) {
  const parts = allParts.filter(({ type }) => type !== 'data');
  return role === 'assistant' ? parts.flatMap(answerItem) : inputItem(role, parts);
}

/** @param {import('../../types.js').MessageWithCalls} message
 *  @returns {{ record: ItemRecord, items: any[] }} */
export function readMessage(message) {
  const record = recordOf(RECORD, message) ?? {};
  return { record, items: record.items ?? itemsOfParts(message.role, message.parts) };
}
