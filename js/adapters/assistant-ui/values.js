// Values as JSON has them, in which dates stay dates.

import { RethreadError } from '../../error.js';

const DATE = '$date';
const OBJECT = '$object';

function encode(value) {
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : { [DATE]: value.toISOString() };
  if (Array.isArray(value)) return value.map((item) => encode(item) ?? null);
  if (typeof value === 'function' || typeof value === 'symbol') return undefined;
  if (typeof value !== 'object' || value === null) return value;
  // A page's file: what was sent of it is in the content of its attachment.
  if (value instanceof Blob) return undefined;
  if (typeof value.toJSON === 'function') return encode(value.toJSON());
  const members = Object.entries(value).map(([key, member]) => [key, encode(member)]);
  const object = Object.fromEntries(members.filter(([, member]) => member !== undefined));
  return Object.hasOwn(object, DATE) || Object.hasOwn(object, OBJECT) ? { [OBJECT]: object } : object;
}

function decode(value) {
  if (Array.isArray(value)) return value.map(decode);
  if (typeof value !== 'object' || value === null) return value;
  if (Object.hasOwn(value, DATE)) return new Date(value[DATE]);
  const members = Object.hasOwn(value, OBJECT) ? value[OBJECT] : value;
  return Object.fromEntries(Object.entries(members).map(([key, member]) => [key, decode(member)]));
}

/** The value as a store keeps it. */
export function toStored(value) {
  try {
    return JSON.parse(JSON.stringify(encode(value)));
  } catch (cause) {
    throw new RethreadError('invalid_input', 'the message cannot be written as JSON', {}, { cause });
  }
}

/** What `toStored` was given. */
export const fromStored = decode;
