// "rethread/testing": the conformance suite, for whoever writes a store.

import { RethreadError } from './error.js';
import { Instance } from './instance.js';
import { program } from './testing-program.js';

const ADVICE = 'the suite crashed; run this case alone to find the store method that caused it';

/** @type {typeof import('./testing.js').init} */
export const init = (source) => program.load(source);

/** @type {typeof import('./testing.js').conformance} */
export function conformance(openStore) {
  if (typeof openStore !== 'function')
    throw new RethreadError('config_invalid', '`conformance` takes a function that opens the store');
  const names = Instance.now(program, ADVICE).exports.checkNames();
  // Sessions of another run may be in the store.
  const run = `conformance-${Date.now().toString(36)}-${Math.random().toString(36).slice(2)}`;
  return names.map((name) => ({
    name: name.replaceAll('_', ' '),
    async run() {
      // A separate instance per check, so that checks are independent.
      const instance = await Instance.start(program, ADVICE);
      await instance.promise(() => instance.exports.runCheck(name, run, openStore));
    },
  }));
}
