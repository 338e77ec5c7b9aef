// The options of `repairing()`, checked when it is called, so that no request fails because of them later.

import { RethreadError } from '../error.js';

/** The body member that contains the conversation, by dialect. */
export const LISTS = { 'openai-chat': 'messages', 'openai-responses': 'input', anthropic: 'messages', gemini: 'contents', mistral: 'messages' };

const MODES = ['repair', 'report', 'reject'];
const DANGLING = ['synthesize', 'omit'];

const wrong = (message) => {
  throw new RethreadError('config_invalid', message);
};
const oneOf = (names) => names.map((name) => `"${name}"`).join(', ').replace(/, (?="[^"]*"$)/, ' or ');
const callback = (name) => (value) => typeof value === 'function' || wrong(`\`${name}\` is a function`);
const choice = (name, values) => (value) => values.includes(value) || wrong(`\`${name}\` is ${oneOf(values)}`);

/** Checks a dialect: null skips the request, undefined uses the dialect of the URL. */
export function knownDialect(dialect) {
  if (dialect === undefined || dialect === null || Object.hasOwn(LISTS, dialect)) return dialect;
  return wrong(`\`dialect\` is ${oneOf(Object.keys(LISTS))}, or a function that returns one of these or null`);
}

const CHECKS = {
  fetch: callback('fetch'),
  dialect: (value) => typeof value === 'function' || knownDialect(value),
  onRepair: callback('onRepair'),
  mode: choice('mode', MODES),
  danglingCalls: choice('danglingCalls', DANGLING),
  danglingText: (value) => typeof value === 'string' || wrong('`danglingText` is a string'),
};

/** The options with their defaults. Throws `config_invalid`. */
export function checkedOptions(given) {
  if (typeof given !== 'object' || given === null) wrong('the options of `repairing` are an object');
  /** @type {any} */
  const options = { mode: 'repair' };
  for (const [name, value] of Object.entries(given)) {
    if (!Object.hasOwn(CHECKS, name)) wrong(`\`${name}\` is not an option of \`repairing\`; the options are ${Object.keys(CHECKS).join(', ')}`);
    if (value === undefined) continue;
    CHECKS[name](value);
    options[name] = value;
  }
  return options;
}
