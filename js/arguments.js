// Checks of arguments before they reach the wasm, which would read a non-string as a string and ignore an option of the wrong type.
// The core checks the values inside.

import { RethreadError } from './error.js';
import { isBytes, reasonOf } from './foreign.js';

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && !isBytes(value);
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
const flag = (what) => (value) => typeof value === 'boolean' || invalid(`${what} is true or false`);

/** An object with checks for some of its members; others are not checked. */
const shape = (what, members) => (value) => {
  object(what)(value);
  for (const [key, check] of Object.entries(members)) optional(check)(value[key]);
};
const each = (what, check) => (value) => {
  object(what)(value);
  for (const [name, one] of Object.entries(value)) check(name)(one);
};
const unbuilt = (what) => (value) => value && fail('config_invalid', `${what} is not built in this version; leave it out (see the changelog for what is there)`);

const replay = shape('`replay`', { toolFreshness: object('`replay.toolFreshness`') });
const tools = each('`tools`, by name,', (name) => shape(`the tool "${name}"`, { execute: callback(`\`execute\` of the tool "${name}"`), endsRun: flag(`\`endsRun\` of the tool "${name}"`), jsonSchema: object(`\`jsonSchema\` of the tool "${name}"`) }));
const provider = shape('`provider`', {
  params: object('`provider.params`'), headers: object('`provider.headers`'), stream: flag('`provider.stream`'),
  compat: shape('`provider.compat`', { streamUsage: flag('`provider.compat.streamUsage`') }),
});
const retry = shape('`retry`', { approveUnsafeReplay: unbuilt('`retry.approveUnsafeReplay`') });

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
export const query = readable(optional(object('the query')));
export const options = readable(optional(object('the last argument, the options,')));
export const openOptions = readable(shape('the options', { replay, channels: each('`channels`', (name) => shape(`the channel "${name}"`, { toolFreshness: object('`toolFreshness`') })) }));
export const sessionOptions = readable(optional(shape('the options', {
  owner: object('`owner`'), replay, onConflict: unbuilt('`onConflict`'), flushMs: unbuilt('`flushMs`'), trimTrailingResults: unbuilt('`trimTrailingResults`'),
})));
export const appendOptions = readable(optional(shape('the options', { source: object('`source`') })));
export const pageOptions = readable(optional(shape('the options', { branch: (name) => name === 'main' || unbuilt('`branch`')(true) })));
export const renderRequest = readable(shape('a render\'s request', { tools, replay, params: object('`params`') }));
export const runRequest = readable(shape('a run\'s request', { provider, tools, retry, replay }));
export const changes = readable(object('what is to change'));
export const effectAnswer = readable(object('an answer'));
export const pieceOfAnswer = readable(bytes('what is fed'));
export const drivenRun = readable((run) =>
  (typeof run?.effects === 'function' && typeof run.changed === 'function') || invalid('the first argument of `drive` is a run: pass what `session.run` or `session.resume` returned'));
export const driveOptions = readable(only('the options of `drive`', {
  fetch: kind('`fetch` is a function', (value) => typeof value === 'function'),
  headers: () => {}, // checked where they are read: an error about them could quote a credential
  signal: kind('`signal` is an AbortSignal', (value) => isObject(value) && typeof value.addEventListener === 'function'),
  idleTimeoutMs: amount('`idleTimeoutMs`'),
  toolConcurrency: amount('`toolConcurrency`'),
  toolTimeoutMs: amount('`toolTimeoutMs`'),
}));
