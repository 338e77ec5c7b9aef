// The options of `repairing()`, checked when it is called, so that no request fails because of them later.

import { DIALECTS } from '../dialects.js';
import { RethreadError } from '../error.js';

const MODES = ['repair', 'report', 'reject'];
const DANGLING = ['synthesize', 'omit'];

const reject = (message) => {
  throw new RethreadError('config_invalid', message);
};
const oneOf = (names) =>
  names
    .map((name) => `"${name}"`)
    .join(', ')
    .replace(/, (?="[^"]*"$)/, ' or ');
const callback = (name) => (value) => typeof value === 'function' || reject(`\`${name}\` must be a function`);
const choice = (name, values) => (value) => values.includes(value) || reject(`\`${name}\` must be ${oneOf(values)}`);

/** Checks a dialect: null skips the request, undefined uses the dialect of the URL. */
export function knownDialect(dialect) {
  if (dialect === undefined || dialect === null || DIALECTS.includes(dialect)) return dialect;
  return reject(`\`dialect\` must be ${oneOf(DIALECTS)}, or a function that returns one of these or null`);
}

const CHECKS = {
  fetch: callback('fetch'),
  dialect: (value) => typeof value === 'function' || knownDialect(value),
  onRepair: callback('onRepair'),
  mode: choice('mode', MODES),
  heal: (value) => typeof value === 'boolean' || reject('`heal` must be true or false'),
  danglingCalls: choice('danglingCalls', DANGLING),
  danglingText: (value) => typeof value === 'string' || reject('`danglingText` must be a string'),
};

/** The options with their defaults. Throws `config_invalid`. */
export function checkedOptions(userOptions) {
  if (typeof userOptions === 'function') reject('`repairing` takes options: `repairing({ fetch })`');
  // As a `fetch`, it gets an address or a `Request`.
  const { href, headers } = Object(userOptions);
  if (typeof userOptions === 'string' || typeof href === 'string' || typeof headers?.get === 'function')
    reject('`repairing` is not a `fetch`, it returns one: pass `fetch: repairing()`');
  if (typeof userOptions !== 'object' || userOptions === null) reject('the options of `repairing` must be an object');
  /** @type {any} */
  const options = { mode: 'repair', heal: true };
  for (const [name, value] of Object.entries(userOptions)) {
    if (!Object.hasOwn(CHECKS, name))
      reject(`\`${name}\` is not an option of \`repairing\`; the options are ${Object.keys(CHECKS).join(', ')}`);
    if (value === undefined) continue;
    CHECKS[name](value);
    options[name] = value;
  }
  return options;
}
