// Checks of arguments before they reach the wasm, whose glue converts any value to a string. The wasm checks options itself.

import { RethreadError } from './error.js';
import { isBytes, reasonOf } from './foreign.js';

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && !isBytes(value);
/** @type {(code: import('./types.js').ErrorCode, message: string, cause?: unknown) => never} */
const fail = (code, message, cause) => {
  throw new RethreadError(code, message, {}, cause === undefined ? undefined : { cause });
};
const invalid = (message) => fail('invalid_input', message);

/** A string without unpaired surrogates: they have no UTF-8 encoding, so two different strings would become equal. */
export const text = (what) => (value) => {
  if (typeof value !== 'string') invalid(`${what} is a string, not ${value === null ? 'null' : `of type ${typeof value}`}`);
  if (value.isWellFormed?.() === false) invalid(`${what} is a string of whole characters: it holds half of a surrogate pair`);
};
export const bytes = (what) => (value) => isBytes(value) || invalid(`${what} is a Uint8Array`);
export const callback = (what) => (value) => typeof value === 'function' || invalid(`${what} is a function`);
export const object = (what) => (value) => isObject(value) || invalid(`${what} is an object`);
/** A check that accepts `undefined` and `null`. */
const optional = (check) => (value) => value === undefined || value === null || check(value);

/** An object with checks for some of its members; others are not checked. */
const shape = (what, members) => (value) => {
  object(what)(value);
  for (const [key, check] of Object.entries(members)) optional(check)(value[key]);
};
const amount = (what) => (value) => (typeof value === 'number' && value >= 0) || fail('config_invalid', `${what} is a number, 0 or more`);
const kind = (what, holds) => (value) => holds(value) || fail('config_invalid', what);

/** An object with these members only; unknown ones are `config_invalid`. */
const only = (what, members) => (value) => {
  object(what)(value);
  for (const name of Object.keys(value)) {
    if (!Object.hasOwn(members, name)) fail('config_invalid', `\`${name}\` is not one of ${what}: ${Object.keys(members).join(', ')}`);
  }
  shape(what, members)(value);
};

/** Reports a value that cannot be read (a getter that throws, a revoked proxy) as `invalid_input`. */
const readable = (check) => (value) => {
  try {
    check(value);
  } catch (cause) {
    if (cause instanceof RethreadError) throw cause;
    fail('invalid_input', `a value that was given cannot be read: ${reasonOf(cause)}`, cause);
  }
};

export const sessionId = readable(text('a session\'s id'));
export const runId = readable(text('the run\'s id'));
export const effectId = readable(text('the effect\'s id'));
export const callId = readable(text('the call\'s id'));
export const stateKey = readable(text('the key'));
export const listener = readable(callback('the listener'));
export const request = readable(object('the request'));
export const effectAnswer = readable(object('an answer'));
export const pieceOfAnswer = readable(bytes('what is fed'));
export const drivenRun = readable((run) =>
  (typeof run?.effects === 'function' && typeof run.changed === 'function') || invalid('the first argument of `drive` must be a run, the value that `session.run` or `session.resume` resolves to'));
export const driveOptions = readable(only('the options of `drive`', {
  fetch: kind('`fetch` is a function', (value) => typeof value === 'function'),
  headers: () => {}, // checked where they are read: an error about them could quote a credential
  signal: kind('`signal` is an AbortSignal', (value) => isObject(value) && typeof value.addEventListener === 'function'),
  idleTimeoutMs: amount('`idleTimeoutMs`'),
  toolConcurrency: amount('`toolConcurrency`'),
  toolTimeoutMs: amount('`toolTimeoutMs`'),
}));
