// Values that are stored as JSON, and come back equal.

import { RethreadError } from '../../error.js';

const isPlain = (value) => Array.isArray(value) || [Object.prototype, null].includes(Object.getPrototypeOf(value));

/** True if JSON keeps nothing of the value: a function, a map, bytes, an error, a response. */
function isLost(value) {
  if (typeof value !== 'object' || value === null) return ['function', 'symbol'].includes(typeof value);
  if (ArrayBuffer.isView(value)) return true;
  return typeof value.toJSON !== 'function' && !isPlain(value) && Object.keys(value).length === 0;
}

/** Returns the value as JSON keeps it; undefined becomes null. Throws `invalid_input` for what JSON has no place for. */
export function asJson(value) {
  let text;
  try {
    text = JSON.stringify(value, function (key, member) {
      if (isLost(this[key])) throw new TypeError(`there is no JSON for ${Object.prototype.toString.call(this[key])}`);
      return member;
    });
  } catch (error) {
    throw new RethreadError('invalid_input', `it is no JSON: ${error.message}`, {}, { cause: error });
  }
  return text === undefined ? null : JSON.parse(text);
}
