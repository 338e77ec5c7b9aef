// Safe access to values of applications: a getter may throw, a proxy may be revoked, a message may not be a string.

/** @type {() => string | undefined} */
const tagOfTypedArray = /** @type {any} */ (
  Object.getOwnPropertyDescriptor(Object.getPrototypeOf(Uint8Array.prototype), Symbol.toStringTag)
).get;

/** True if the value is a real Uint8Array, of any realm. Never throws. */
export const isBytes = (value) => tagOfTypedArray.call(value) === 'Uint8Array';

/** True if the value is an array; false for a revoked proxy. Never throws. */
export function isList(value) {
  try {
    return Array.isArray(value);
  } catch {
    return false;
  }
}

/** The value of a member, or undefined if reading it fails. */
export function memberOf(value, key) {
  if ((typeof value !== 'object' && typeof value !== 'function') || value === null) return undefined;
  try {
    return value[key];
  } catch {
    return undefined;
  }
}

/** The value of a string member, or undefined. */
export function textOf(value, key) {
  const text = memberOf(value, key);
  return typeof text === 'string' ? text : undefined;
}

/** The message of any thrown value. Never throws and never returns an empty string. */
export function reasonOf(error) {
  const message = textOf(error, 'message');
  if (message) return message;
  if (typeof error === 'string' && error) return error;
  if (typeof error === 'object' || typeof error === 'function') return textOf(error, 'name') || 'no reason given';
  return error === undefined || error === '' ? 'no reason given' : String(error);
}
