// What another library keeps of a message, in a part of the stored message that no provider is sent: its items
// exactly as they were, in JSON, where texts that the message itself has are not stored twice.

import { base64Of, bytesOf } from '../bytes.js';
import { RethreadError } from '../error.js';

/** Shorter texts are stored again: a reference is no smaller. */
const SHORTEST_REFERENCE = 48;
const MARKS = ['$text', '$data', '$bytes', '$object'];

/** The texts of a part that a record may refer to: two, one of which may be missing. */
function textsOf(part) {
  switch (part.type) {
    case 'text':
    case 'refusal':
    case 'reasoning':
      return [part.text, undefined];
    case 'image':
    case 'file':
      return [part.data, undefined];
    case 'tool':
      return [part.arguments, part.result];
    case 'tool_call':
      return [part.argumentsText, part.result?.content];
    default:
      return [undefined, undefined];
  }
}

function encodeText(value, texts) {
  if (value.length < SHORTEST_REFERENCE) return value;
  const at = texts.indexOf(value);
  if (at >= 0) return { $text: at };
  // A data URL, of which a part has the bytes.
  const start = value.startsWith('data:') ? value.indexOf(',') + 1 : 0;
  const bytesAt = start ? texts.indexOf(value.slice(start)) : -1;
  return bytesAt < 0 ? value : { $data: bytesAt, before: value.slice(0, start) };
}

function encode(value, texts) {
  if (typeof value === 'string') return encodeText(value, texts);
  if (value instanceof Uint8Array) return { $bytes: base64Of(value) };
  if (Array.isArray(value)) return value.map((entry) => encode(entry ?? null, texts));
  if (typeof value !== 'object' || value === null) return value;
  if (typeof value.toJSON === 'function') return encode(value.toJSON(), texts);
  const members = Object.entries(value).filter(([, member]) => member !== undefined && typeof member !== 'function');
  const encoded = Object.fromEntries(members.map(([key, member]) => [key, encode(member, texts)]));
  return MARKS.some((mark) => Object.hasOwn(encoded, mark)) ? { $object: encoded } : encoded;
}

function referred(texts, at) {
  if (texts[at] !== undefined) return texts[at];
  throw new RethreadError('corrupt_record', 'a stored item refers to a text that its message does not have');
}

function decode(value, texts) {
  if (Array.isArray(value)) return value.map((entry) => decode(entry, texts));
  if (typeof value !== 'object' || value === null) return value;
  if (Object.hasOwn(value, '$text')) return referred(texts, value.$text);
  if (Object.hasOwn(value, '$data')) return value.before + referred(texts, value.$data);
  if (Object.hasOwn(value, '$bytes')) return bytesOf(value.$bytes);
  const members = Object.hasOwn(value, '$object') ? value.$object : value;
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, decode(member, texts)]));
}

const isRecordOf = (name) => (part) => part.type === 'data' && part.name === name;

/** Returns the value as JSON keeps it: without undefined members, bytes included. */
export const asStored = (value) => decode(encode(value, []), []);

/** Returns the part that keeps `record` beside these parts. */
export function recordPart(name, record, parts) {
  return { type: 'data', name, value: encode(record, parts.flatMap(textsOf)) };
}

/** Returns what `recordPart` kept in a stored message, or undefined. */
export function recordOf(name, message) {
  const part = message.parts.find(isRecordOf(name));
  if (!part) return undefined;
  const others = message.parts.filter((other) => other !== part);
  return decode(part.value, others.flatMap(textsOf));
}
