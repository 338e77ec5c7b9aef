// Messages of `streamText` (`ModelMessage`) as messages for `append`.

import { RethreadError } from '../../error.js';
import { isObject } from '../plain.js';
import { newId } from './ids.js';
import { callOf, fileUrl, metadataOf, outcomeOf } from './prompt.js';
import { fromUIMessages } from './write.js';

const ROLES = ['system', 'user', 'assistant', 'tool'];
const OUTPUTS = ['text', 'json', 'error-text', 'error-json', 'content', 'execution-denied'];
/** The beginnings of images in base64. */
const IMAGES = { iVBORw0KGgo: 'image/png', '/9j/': 'image/jpeg', R0lGOD: 'image/gif', UklGR: 'image/webp' };

const invalid = (at, what) => new RethreadError('invalid_input', `message ${at} is no model message: ${what}`);

/** @param {{ state: string }} call */
const isWithoutResult = ({ state }) => !state.startsWith('output-');

/** The data of a file as `fileUrl` takes it. */
function dataOf(data, at) {
  if (data instanceof ArrayBuffer) return new Uint8Array(data);
  const isTagged = isObject(data) && ['url', 'data', 'text', 'reference'].includes(data.type);
  if (isTagged && data.type === 'data') return dataOf(data.data, at);
  if (typeof data === 'string' || data instanceof URL || data instanceof Uint8Array || isTagged) return data;
  throw invalid(at, 'the data of a file are a string, a URL or bytes');
}

function imageType(url) {
  const bytes = url?.split(';base64,')[1] ?? '';
  return Object.entries(IMAGES).find(([start]) => bytes.startsWith(start))?.[1];
}

function filePart({ type, filename, ...part }, at) {
  const data = dataOf(type === 'image' ? part.image : part.data, at);
  const given = part.mediaType ?? (type === 'image' ? 'image/*' : undefined);
  if (typeof given !== 'string') throw invalid(at, 'a file has no `mediaType`');
  const mediaType = given === 'image/*' ? (imageType(fileUrl({ data, mediaType: given })) ?? given) : given;
  const url = fileUrl({ data, mediaType });
  // A file that only its provider has.
  if (url === undefined) return { type: 'data-file', data: { name: filename, mediaType } };
  const named = filename === undefined ? {} : { filename };
  return { type: type === 'image' ? 'file' : type, mediaType, ...named, url, ...metadataOf(part) };
}

/** Reads the messages in their order: an answer and those that follow its results are one UI message. */
class ModelMessageReader {
  /** @type {any[]} */
  messages = [];
  /** By id, the calls of the newest message that has one: an answer may have several with one id. @type {Map<string, { at: number, calls: any[] }>} */
  #newest = new Map();
  /** The calls by the ids of their approvals. @type {Map<string, any>} */
  #asked = new Map();

  add(message, at) {
    if (!isObject(message) || !ROLES.includes(message.role))
      throw invalid(at, 'its `role` is "system", "user", "assistant" or "tool"');
    const { role, content } = message;
    const isText = typeof content === 'string' && role !== 'tool';
    const parts = isText ? [{ type: 'text', text: content, ...this.#ofSystem(message) }] : content;
    const isPart = (part) => isObject(part) && typeof part.type === 'string';
    if (!Array.isArray(parts) || !parts.every(isPart))
      throw invalid(
        at,
        '`content` is a text or a list of objects with a `type`; convert UI messages with `fromUIMessages`',
      );
    const read = parts.flatMap((part) => this.#read(part, role, at));
    if (role !== 'tool') this.#push(role, read);
  }

  #ofSystem({ role, providerOptions }) {
    return role === 'system' && providerOptions ? { providerOptions } : {};
  }

  #push(role, parts) {
    const last = this.messages.at(-1);
    const own = role === 'assistant' ? [{ type: 'step-start' }, ...parts] : parts;
    if (role === 'assistant' && last?.role === role) last.parts.push(...own);
    else this.messages.push({ id: newId(), role, parts: own });
  }

  /** @returns {any[]} */
  #read(part, role, at) {
    const { type } = part;
    const isAnswer = role === 'assistant';
    const isText = role !== 'tool' && (type === 'text' || (type === 'reasoning' && isAnswer));
    if (isText && typeof part.text !== 'string') throw invalid(at, `a part of type "${type}" has no \`text\``);
    if (isText) return [{ type, text: part.text, ...(isAnswer ? { state: 'done' } : {}), ...metadataOf(part) }];
    if (type === 'file' && (isAnswer || role === 'user')) return [filePart(part, at)];
    if (type === 'image' && role === 'user') return [filePart(part, at)];
    if (type === 'reasoning-file' && isAnswer) return [filePart(part, at)];
    if (type === 'custom' && isAnswer) return [{ type, kind: part.kind, ...metadataOf(part) }];
    if (type === 'tool-call' && isAnswer) return [this.#call(part, at)];
    if (type === 'tool-approval-request' && isAnswer) return this.#request(part, at);
    if (type === 'tool-approval-response' && role === 'tool') return this.#response(part, at);
    if (type === 'tool-result' && (isAnswer || role === 'tool')) return this.#result(part, at);
    throw invalid(at, `a message of role "${role}" has no part of type ${JSON.stringify(type)}`);
  }

  #call(part, at) {
    const { toolCallId, toolName } = part;
    const isNamed = [toolCallId, toolName].every((name) => typeof name === 'string' && name);
    if (!isNamed) throw invalid(at, 'a call has no `toolCallId` or no `toolName`');
    const call = { ...callOf(part), state: 'input-available' };
    const newest = this.#newest.get(toolCallId);
    const earlier = newest && newest.at === at ? newest.calls : [];
    this.#newest.set(toolCallId, { at, calls: [...earlier, call] });
    return call;
  }

  /** The first of the calls with this id that is free to take what a message has for it, if one of them has the name
   *  before those of other names. Undefined if none is free.
   *  @param {{ toolCallId: string, toolName?: string }} part @param {number} at @param {(call: any) => boolean} isFree */
  #freeCall({ toolCallId, toolName }, at, isFree) {
    const { calls } = this.#newest.get(toolCallId) ?? {};
    if (!calls) throw invalid(at, `no message before it has the call ${JSON.stringify(toolCallId)}`);
    const free = calls.filter(isFree);
    return free.find(({ type }) => type === `tool-${toolName}`) ?? free[0];
  }

  #request({ type, approvalId, toolCallId, ...more }, at) {
    const call =
      this.#freeCall({ toolCallId }, at, ({ state }) => state === 'input-available') ??
      this.#freeCall({ toolCallId }, at, isWithoutResult);
    this.#asked.set(approvalId, call);
    if (call) Object.assign(call, { state: 'approval-requested', approval: { id: approvalId, ...more } });
    return [];
  }

  #response({ approvalId, approved, reason }, at) {
    if (!this.#asked.has(approvalId))
      throw invalid(at, `no message before it asks for the approval ${JSON.stringify(approvalId)}`);
    const call = this.#asked.get(approvalId);
    if (!call || !isWithoutResult(call)) return [];
    const told = reason === undefined ? {} : { reason };
    Object.assign(call, { state: 'approval-responded', approval: { ...call.approval, approved, ...told } });
    return [];
  }

  #result({ toolCallId, toolName, output, providerOptions }, at) {
    const call = this.#freeCall({ toolCallId, toolName }, at, isWithoutResult);
    if (!OUTPUTS.includes(output?.type))
      throw invalid(at, `a result has no \`output\` of type ${OUTPUTS.map((type) => `"${type}"`).join(', ')}`);
    // Of two results of a call the first one counts.
    if (!call) return [];
    const { reason } = output;
    const denied = { id: toolCallId, ...call.approval, approved: false, ...(reason === undefined ? {} : { reason }) };
    const outcome =
      output.type === 'execution-denied' ? { state: 'output-denied', approval: denied } : outcomeOf({ output });
    Object.assign(call, outcome, providerOptions ? { resultProviderMetadata: providerOptions } : {});
    return [];
  }
}

/** @type {typeof import('../ai-sdk.d.ts').fromModelMessages} */
export function fromModelMessages(messages) {
  if (!Array.isArray(messages)) throw new RethreadError('invalid_input', 'model messages are a list');
  const reader = new ModelMessageReader();
  for (const [at, message] of messages.entries()) reader.add(message, at);
  return fromUIMessages(reader.messages);
}
