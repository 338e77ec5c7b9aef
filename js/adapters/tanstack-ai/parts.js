// The parts of TanStack's messages as neutral parts, and back.

import { isObject, isSame, without } from '../plain.js';
import { callPart, isCall, isResult, keptOfCall, keptResult, neutralCall, storedCall } from './tools.js';

const MEDIA = ['image', 'audio', 'video', 'document'];
const DATA_URL = /^data:[^,]*;base64,/;

const isBase64 = (text) => text.length % 4 === 0 && /^[A-Za-z0-9+/]+={0,2}$/.test(text);
const isMediaType = (type) => typeof type === 'string' && /^[^/*\s]+\/[^/*\s]+$/.test(type);

/** The bytes or the address of a source; undefined for what no provider can read. */
function sourceOf({ type, value }) {
  if (typeof value !== 'string') return undefined;
  if (type === 'data') return isBase64(value) ? { data: value } : undefined;
  const before = DATA_URL.exec(value)?.[0];
  if (before === undefined) return /^https?:\/\//i.test(value) ? { url: value } : undefined;
  const data = value.slice(before.length);
  return isBase64(data) ? { data, before } : undefined;
}

function writtenMedia(part) {
  const source = isObject(part.source) ? sourceOf(part.source) : undefined;
  if (!source) return undefined;
  const { before, ...content } = source;
  const named = [part.source.mimeType, before?.slice('data:'.length).split(/[;,]/)[0]].find(isMediaType);
  const neutral = {
    type: part.type === 'image' ? 'image' : 'file',
    ...content,
    ...(named === undefined ? {} : { mediaType: named }),
  };
  const rest = { ...part, source: without(part.source, 'value') };
  return { neutral, kept: before === undefined ? { rest } : { rest, before } };
}

/** The image or file of a neutral part; undefined for one that only its provider can read. */
function mediaPart({ type, url, data, mediaType }, kept) {
  const value = url ?? (data === undefined ? undefined : (kept?.before ?? '') + data);
  if (value === undefined) return undefined;
  if (kept) return { ...kept.rest, source: { ...kept.rest.source, value } };
  const kind = mediaType?.split('/')[0];
  const fallback = type === 'image' ? 'image/png' : 'application/octet-stream';
  const mimeType = mediaType ?? (url === undefined ? fallback : undefined);
  return {
    type: type === 'image' ? 'image' : MEDIA.includes(kind) ? kind : 'document',
    source: { type: url === undefined ? 'data' : 'url', value, ...(mimeType === undefined ? {} : { mimeType }) },
  };
}

/** A complete structured answer is sent to the model as its text. */
const isAnswerText = ({ type, status, raw }) =>
  type === 'structured-output' && status === 'complete' && typeof raw === 'string' && raw !== '';

/** @returns {{ neutral: any, kept: any } | undefined} */
function neutralOf(part, role, parts) {
  const { type, content } = part;
  const isAnswer = role === 'assistant';
  if ((type === 'text' || (type === 'thinking' && isAnswer)) && typeof content === 'string') {
    const neutral = { type: type === 'text' ? 'text' : 'reasoning', text: content };
    return { neutral, kept: { rest: without(part, 'type', 'content') } };
  }
  if (MEDIA.includes(type) && role !== 'system') return writtenMedia(part);
  if (isCall(part) && isAnswer) {
    const neutral = neutralCall(part, parts);
    return neutral && { neutral, kept: keptOfCall(part, parts) };
  }
  if (isAnswer && isAnswerText(part))
    return { neutral: { type: 'text', text: part.raw }, kept: { rest: without(part, 'raw') } };
  return undefined;
}

/** @type {import('../marks.js').MarkFormat['writtenPart']} */
export function writtenPart(part, role, parts) {
  const written = neutralOf(part, role, parts);
  if (!written) return undefined;
  const { neutral } = written;
  const isTool = neutral.type === 'tool';
  const stored = isTool ? { type: 'tool', call: storedCall(neutral) } : neutral;
  // A call that has its result alone: without a mark it would get a part for it.
  const isAlone = isTool && neutral.result !== undefined && !parts.some((other) => isResultOfCall(other, part));
  return !isAlone && isSame(uiPart(stored), part) ? { neutral } : written;
}

const isResultOfCall = (part, call) => isResult(part) && part.toolCallId === call.id;

/** The mark of a part that has no neutral form. */
export const unwrittenPart = (part, parts) => (isResult(part) ? keptResult(part, parts) : { part });

/** The part of a neutral one, as a message of the store has it; `kept` is the value of its mark. Blocks of one dialect
 *  and data of others are not shown. */
export function uiPart(part, kept) {
  switch (part.type) {
    case 'text':
    case 'refusal':
      if (kept?.rest.type === 'structured-output') return { ...kept.rest, raw: part.text };
      return { type: 'text', ...kept?.rest, content: part.text };
    case 'reasoning':
      return { type: 'thinking', ...kept?.rest, content: part.text };
    case 'image':
    case 'file':
      return mediaPart(part, kept);
    case 'tool':
      return callPart(part.call, kept);
    case 'tool_call':
      return part.name === undefined ? undefined : callPart(part, kept);
    default:
      return undefined;
  }
}
