// Checks of what a caller gives, before it reaches the wasm: a text that is none would be read as one there, and an option of the
// wrong kind would be passed over. Values inside are the core's to judge.

import { RethreadError } from './error.js';

const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof Uint8Array);
const refuse = (code, message) => {
  throw new RethreadError(code, message);
};
const invalid = (message) => refuse('invalid_input', message);

/** A string of whole characters: half of a surrogate pair has no UTF-8, and two such texts would meet in one. */
export const text = (what) => (value) => {
  if (typeof value !== 'string') invalid(`${what} is a string, not ${value === null ? 'null' : `of type ${typeof value}`}`);
  if (value.isWellFormed?.() === false) invalid(`${what} is a string of whole characters: it holds half of a surrogate pair`);
};
export const bytes = (what) => (value) => value instanceof Uint8Array || invalid(`${what} is a Uint8Array`);
export const callback = (what) => (value) => typeof value === 'function' || invalid(`${what} is a function`);
export const object = (what) => (value) => isObject(value) || invalid(`${what} is an object`);
/** The check of a value that may be left out. */
const optional = (check) => (value) => value === undefined || value === null || check(value);
const flag = (what) => (value) => typeof value === 'boolean' || invalid(`${what} is true or false`);

/** An object, and checks of what it may hold. */
const shape = (what, members) => (value) => {
  object(what)(value);
  for (const [key, check] of Object.entries(members)) optional(check)(value[key]);
};
const each = (what, check) => (value) => {
  object(what)(value);
  for (const [name, one] of Object.entries(value)) check(name)(one);
};
const unbuilt = (what) => (value) => value && refuse('config_invalid', `${what} is not built in this version; leave it out (see the changelog for what is there)`);

const replay = shape('`replay`', { toolFreshness: object('`replay.toolFreshness`') });
const tools = each('`tools`, by name,', (name) => shape(`the tool "${name}"`, { execute: callback(`\`execute\` of the tool "${name}"`), endsRun: flag(`\`endsRun\` of the tool "${name}"`), jsonSchema: object(`\`jsonSchema\` of the tool "${name}"`) }));
const provider = shape('`provider`', {
  params: object('`provider.params`'), headers: object('`provider.headers`'), stream: flag('`provider.stream`'),
  compat: shape('`provider.compat`', { streamUsage: flag('`provider.compat.streamUsage`') }),
});
const retry = shape('`retry`', { approveUnsafeReplay: unbuilt('`retry.approveUnsafeReplay`') });

export const sessionId = text('a session\'s id');
export const runId = text('the run\'s id');
export const effectId = text('the effect\'s id');
export const callId = text('the call\'s id');
export const stateKey = text('the key');
export const listener = callback('the listener');
export const query = optional(object('the query'));
export const options = optional(object('the last argument, the options,'));
export const openOptions = shape('the options', { replay, channels: each('`channels`', (name) => shape(`the channel "${name}"`, { toolFreshness: object('`toolFreshness`') })) });
export const sessionOptions = optional(shape('the options', {
  owner: object('`owner`'), replay, onConflict: unbuilt('`onConflict`'), flushMs: unbuilt('`flushMs`'), trimTrailingResults: unbuilt('`trimTrailingResults`'),
}));
export const appendOptions = optional(shape('the options', { source: object('`source`') }));
export const pageOptions = optional(shape('the options', { branch: (name) => name === 'main' || unbuilt('`branch`')(true) }));
export const renderRequest = shape('a render\'s request', { tools, replay, params: object('`params`') });
export const runRequest = shape('a run\'s request', { provider, tools, retry, replay });
export const changes = object('what is to change');
export const effectAnswer = object('an answer');
export const pieceOfAnswer = bytes('what is fed');
