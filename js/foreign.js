// Values that applications throw, written for hostile ones: a getter may throw, a proxy may be revoked, a message may be no string.

const tagOfTypedArray = Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag).get;

/** Whether a value is a Uint8Array, of any realm, and not one in name only. Never throws. */
export const isBytes = (value) => tagOfTypedArray.call(value) === 'Uint8Array';

/** Whether a value is an array. Never throws: a revoked proxy is none. */
export function isList(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** A member, or undefined where reading it fails. */
export function memberOf(value, key) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  try {
    return value[key];
  } catch {
    return undefined;
  }
}

/** A member that is a text, or undefined. */
export function textOf(value, key) {
  const text = memberOf(value, key);
  return typeof text === 'string' ? text : undefined;
}

/** The text of a failure, whatever was thrown. Never throws, and is never empty. */
export function reasonOf(error) {
  const message = textOf(error, 'message');
  if (message) return message;
  if (typeof error === 'string' && error) return error;
  if (typeof error === 'object' || typeof error === 'function') return textOf(error, 'name') || 'no reason given';
  return error === undefined || error === '' ? 'no reason given' : String(error);
}
