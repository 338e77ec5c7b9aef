// Checks of arguments before they reach the wasm, whose glue converts any value to a string. The wasm checks options
// itself.

import { DIALECTS } from './dialects.js';
import { RethreadError } from './error.js';
import { isBytes, memberOf, reasonOf } from './untrusted-value.js';
import { headerPairs } from './header-pairs.js';

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && !isBytes(value);
/** @type {(code: import('./types.js').ErrorCode, message: string, cause?: unknown) => never} */
const fail = (code, message, cause) => {
  throw new RethreadError(code, message, {}, cause === undefined ? undefined : { cause });
};
const invalid = (message) => fail('invalid_input', message);

/** A string without unpaired surrogates: they have no UTF-8 encoding, so two different strings would become equal. */
export const text = (name) => (value) => {
  if (typeof value !== 'string')
    invalid(`${name} must be a string, not ${value === null ? 'null' : `a value of type ${typeof value}`}`);
  if (value.isWellFormed?.() === false) invalid(`${name} must be a string without unpaired surrogates`);
};
export const bytes = (name) => (value) => isBytes(value) || invalid(`${name} must be a Uint8Array`);
export const callback = (name) => (value) => typeof value === 'function' || invalid(`${name} must be a function`);
export const object = (name) => (value) => isObject(value) || invalid(`${name} must be an object`);
/** A check that accepts `undefined` and `null`. */
const optional = (check) => (value) => value === undefined || value === null || check(value);

/** An object with checks for some of its members; others are not checked. */
const objectWith = (name, members) => (value) => {
  object(name)(value);
  for (const [key, check] of Object.entries(members)) optional(check)(value[key]);
};
const amount = (name) => (value) =>
  (typeof value === 'number' && value >= 0) || fail('config_invalid', `${name} must be a number, 0 or more`);
/** A check by `isValid`. `requirement` is the message of the error. */
const option = (requirement, isValid) => (value) => isValid(value) || fail('config_invalid', requirement);

/** An object with these members only; unknown ones are `config_invalid`. */
const only = (name, members) => (value) => {
  object(name)(value);
  for (const member of Object.keys(value)) {
    if (!Object.hasOwn(members, member))
      fail('config_invalid', `\`${member}\` is not one of ${name}: ${Object.keys(members).join(', ')}`);
  }
  objectWith(name, members)(value);
};

/** Reports a value that cannot be read (a getter that throws, a revoked proxy) as `invalid_input`. */
const readable = (check) => (value) => {
  try {
    check(value);
  } catch (cause) {
    if (cause instanceof RethreadError) throw cause;
    fail('invalid_input', `an argument cannot be read: ${reasonOf(cause)}`, cause);
  }
};

export const sessionId = readable(text("a session's id"));
export const searchedText = readable(text('the text to search for'));
export const exportedSession = readable(text('an exported session'));
/** A stream of text or bytes, or what can be iterated asynchronously. */
export const backupText = readable((value) => {
  if (typeof value?.getReader !== 'function' && typeof value?.[Symbol.asyncIterator] !== 'function')
    invalid('a backup must be a ReadableStream, or an async iterable, of text or bytes');
  if (value.locked === true) invalid('the stream of the backup is locked: something else reads it');
});
export const serializedSession = readable(bytes('a serialized session'));
/** The `id` in the options of `restore` and `importSession`; the wasm checks the rest. */
export const restoredId = (options) => {
  const id = memberOf(options, 'id');
  if (typeof id === 'string') sessionId(id);
};
/** The members of the options of `copy` that are ids; the wasm checks the rest. */
export const copyOptions = (options) => {
  restoredId(options);
  const until = memberOf(options, 'until');
  if (typeof until === 'string') messageId(until);
};
export const runId = readable(text("the run's id"));
/** Checks a run's id or a snapshot; returns the id, or a copy of the bytes, which the caller may change later. */
export function copiedRun(value) {
  if (!isBytes(value)) {
    if (typeof value !== 'string') invalid('the run must be its id or a snapshot, a Uint8Array');
    runId(value);
    return value;
  }
  try {
    return Uint8Array.from(value);
  } catch (cause) {
    return fail('invalid_input', `the bytes of the snapshot cannot be read: ${reasonOf(cause)}`, cause);
  }
}
export const branch = readable(text('the branch'));
export const messageId = readable(text("the message's id"));
/** Checks where to fork: after a message, or before all (`null`). */
export const forkPlace = (value) => {
  if (value !== null) messageId(value);
};
export const messageIds = readable((value) => {
  if (!Array.isArray(value) || !value.every((id) => typeof id === 'string'))
    invalid('the ids of the messages must be an array of strings');
});
export const effectId = readable(text("the effect's id"));
export const callId = readable(text("the call's id"));
export const rejectionReason = readable(optional(text('the reason')));
/** A check of a dialect's name; the wasm rejects unknown ones, and lists the same. */
export const dialectName = (name) =>
  readable((value) => {
    if (value === undefined || value === null) invalid(`${name} is missing; the dialects are ${DIALECTS.join(', ')}`);
    text(name)(value);
  });
export const dialect = dialectName('the dialect');
/** Objects of the platform that are no body, by their tag, with what to do. */
const NO_BODIES = new Map([
  ...['Response', 'Request', 'Blob', 'File'].map((tag) => /** @type {const} */ ([tag, ': await its `text()`'])),
  ...['ArrayBuffer', 'SharedArrayBuffer'].map((tag) => /** @type {const} */ ([tag, ': pass `new Uint8Array(buffer)`'])),
  ...['Map', 'Set', 'ReadableStream', 'FormData'].map((tag) => /** @type {const} */ ([tag, ''])),
]);
/** What is no body at all: the wasm would read it as an empty one. */
export const wireBody = (value) => {
  const isPromise = typeof memberOf(value, 'then') === 'function';
  const tag = typeof value === 'object' && value !== null ? memberOf(value, Symbol.toStringTag) : undefined;
  const advice = NO_BODIES.get(tag);
  const isBody = typeof value === 'object' && value !== null && !isPromise && advice === undefined;
  if (typeof value === 'string' || isBody) return;
  const plain = value === null ? 'null' : typeof value;
  const given = isPromise ? 'a promise: await it' : advice === undefined ? plain : `${tag}${advice}`;
  invalid(`the body must be an object, a string of JSON or a Uint8Array, not ${given}`);
};
export const stateKey = readable(text('the key'));
export const listener = readable(callback('the listener'));
export const handoff = readable(object('the handoff'));
export const request = readable(object('the request'));
/** A check of a member that is a time, if it is there. The wasm checks it, too, but JSON has no numbers such as
 *  `NaN`. */
export const time = (name) => (value, member) => {
  const found = memberOf(value, member);
  if (found === undefined || found === null || (typeof found === 'number' && Number.isFinite(found))) return;
  invalid(`${name}: \`${member}\` must be whole milliseconds since the Unix epoch`);
};
export const effectAnswer = readable(object('the answer'));
/** Checks the answer to an effect. Returns it with its headers as an object: those of `Headers` and lists of pairs are
 *  no members. */
export function plainAnswer(answer) {
  effectAnswer(answer);
  let headers;
  readable(() => {
    if (answer.headers === undefined || answer.headers === null) return;
    if (typeof answer.headers !== 'object') invalid('`headers` of the answer must be an object of strings');
    headers = { value: Object.fromEntries(headerPairs(answer.headers)) };
  })();
  return headers ? Object.create(answer, { headers }) : answer;
}
export const responseBytes = readable(bytes('the response bytes'));
export const drivenRun = readable(
  (run) =>
    (typeof run?.effects === 'function' && typeof run.changed === 'function') ||
    invalid(
      'the first argument of `drive` must be a run, the value that `session.run` or `session.resume` resolves to',
    ),
);
export const driveOptions = readable(
  only('the options of `drive`', {
    fetch: option('`fetch` must be a function', (value) => typeof value === 'function'),
    headers: () => {}, // checked where they are read: an error about them could quote a credential
    signal: option(
      '`signal` must be an AbortSignal',
      (value) => isObject(value) && typeof value.addEventListener === 'function',
    ),
    idleTimeoutMs: amount('`idleTimeoutMs`'),
    longestPauseMs: amount('`longestPauseMs`'),
    saveTimeoutMs: amount('`saveTimeoutMs`'),
    toolConcurrency: amount('`toolConcurrency`'),
    toolTimeoutMs: amount('`toolTimeoutMs`'),
    onApproval: option(
      '`onApproval` must be a function, or "wait"',
      (value) => typeof value === 'function' || value === 'wait',
    ),
  }),
);
export const viewOptions = readable(
  optional(
    only('the options of `view`', {
      notify: option('`notify` must be "change" or "frame"', (value) => value === 'change' || value === 'frame'),
    }),
  ),
);
/** What `resumeAll` resumes runs with. */
export const resumeRequest = readable((value) => {
  if (typeof value !== 'function') request(value);
});
