// What a caller gives, looked at before it reaches the wasm: a text that is none would be read as one there, an option of the
// wrong kind would be passed over. Values inside are the core's to judge.

import { RethreadError } from './error.js';

const disposed = new WeakSet();
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
const given = (check) => (value) => value === undefined || value === null || check(value);
const object = (what) => (value) => isObject(value) || invalid(`${what} is an object`);
const flag = (what) => (value) => typeof value === 'boolean' || invalid(`${what} is true or false`);

/** An object, and checks of what it may hold. */
const shape = (what, members) => (value) => {
  object(what)(value);
  for (const [key, check] of Object.entries(members)) given(check)(value[key]);
};
const each = (what, check) => (value) => {
  object(what)(value);
  for (const [name, one] of Object.entries(value)) check(name)(one);
};
const unbuilt = (what) => (value) => value && refuse('config_invalid', `${what} is not built in this version; leave it out (see the changelog for what is there)`);

const replay = shape('`replay`', { toolFreshness: object('`replay.toolFreshness`') });
const tools = each('`tools`, by name,', (name) => shape(`the tool "${name}"`, { execute: callback(`\`execute\` of the tool "${name}"`), endsRun: flag(`\`endsRun\` of the tool "${name}"`) }));
const provider = shape('`provider`', {
  params: object('`provider.params`'), headers: object('`provider.headers`'), stream: flag('`provider.stream`'),
  compat: shape('`provider.compat`', { streamUsage: flag('`provider.compat.streamUsage`') }),
});
const retry = shape('`retry`', { approveUnsafeReplay: unbuilt('`retry.approveUnsafeReplay`') });

export const openOptions = shape('the options', { replay, channels: each('`channels`', (name) => shape(`the channel "${name}"`, { toolFreshness: object('`toolFreshness`') })) });
export const options = given(object('the last argument, the options,'));
const appendOptions = given(shape('the options', { source: object('`source`') }));
const query = given(object('the query'));
const runRequest = shape('a run\'s request', { provider, tools, retry, replay });
const sessionOptions = given(shape('the options', {
  owner: object('`owner`'), replay, onConflict: unbuilt('`onConflict`'), flushMs: unbuilt('`flushMs`'), trimTrailingResults: unbuilt('`trimTrailingResults`'),
}));

/** The checks of each method's arguments, in their order. */
const METHODS = {
  Rethread: {
    session: [text('a session\'s id'), sessionOptions], sessions: [query], deleteSession: [text('a session\'s id')], invocations: [query], pendingRuns: [query],
    subscribe: [callback('the listener')], persist: [], status: [],
  },
  Session: {
    update: [object('what is to change')], save: [], append: [, (value) => typeof value === 'string' || appendOptions(value), appendOptions], messages: [given(shape('the options', { branch: (name) => name === 'main' || unbuilt('`branch`')(true) }))], view: [], invocations: [query],
    render: [shape('a render\'s request', { tools, replay, params: object('`params`') })], run: [runRequest], pendingRuns: [], resume: [, runRequest],
    discard: [text('the run\'s id'), options], refresh: [], subscribe: [callback('the listener')],
  },
  SessionView: { getSnapshot: [], subscribe: [callback('the listener')], older: [] },
  StateBag: { get: [text('the key')], set: [text('the key')], keys: [] },
  Run: {
    effects: [], events: [], changed: [], answer: [text('the effect\'s id'), object('an answer')], feed: [text('the effect\'s id'), bytes('what is fed')],
    approvals: [], cancel: [], save: [], result: [],
  },
};
const SYNC = new Set(['view', 'subscribe', 'getSnapshot', 'get', 'set', 'keys', 'effects', 'events', 'approvals', 'result']);

/** Puts the checks before the methods of a class; a disposed object answers that it is closed. */
function guard(methods, Class) {
  for (const [name, checks] of Object.entries(methods)) {
    const plain = Class.prototype[name];
    const checked = function (...given) {
      if (disposed.has(this)) refuse('closed', 'this object was disposed; take a new one');
      checks.forEach((check, at) => check(given[at]));
      return plain.apply(this, given);
    };
    Class.prototype[name] = SYNC.has(name) ? checked : async function (...given) {
      return checked.apply(this, given);
    };
  }
  // What still runs on it keeps its memory: the collector frees it.
  Class.prototype[Symbol.dispose ?? Symbol.for('Symbol.dispose')] = function () {
    disposed.add(this);
  };
}

/** Of the classes by name: a bundler that shortens names keeps those of members. */
export function guardAll(classes) {
  for (const [name, methods] of Object.entries(METHODS)) guard(methods, classes[name]);
}
