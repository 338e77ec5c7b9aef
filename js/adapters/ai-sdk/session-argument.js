// The session that the functions of `rethread/ai-sdk` take.

import { RethreadError } from '../../error.js';

/** @param {any} session */
export function checkSession(session, what) {
  if (typeof session?.append === 'function') return;
  throw new RethreadError('config_invalid', `\`${what}\` takes a session: \`await store.session(id)\``);
}
