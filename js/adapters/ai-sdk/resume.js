// The stored messages of a chat whose process ended, for a loop that goes on.

import { RethreadError } from '../../error.js';
import { settleCalls } from './durable-tools.js';
import { loadUIMessages } from './load.js';
import { checkSession } from './session-argument.js';

/** @type {typeof import('../ai-sdk.d.ts').resumeUIMessages} */
export async function resumeUIMessages(session, { tools, ...options } = {}) {
  checkSession(session, 'resumeUIMessages');
  const unknown = Object.keys(options).find((name) => name !== 'ai');
  if (unknown !== undefined) throw new RethreadError('config_invalid', `\`resumeUIMessages\` has no option ${unknown}`);
  await settleCalls(session, tools);
  return loadUIMessages(session, options);
}
