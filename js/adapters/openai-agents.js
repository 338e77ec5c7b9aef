// "rethread/openai-agents": a session as the `Session` of the OpenAI Agents SDK.

import { RethreadError } from '../error.js';
import { CompactingSession } from './openai-agents/compacting-session.js';
import { AgentsSession } from './openai-agents/session.js';

/** @param {any} session @param {{ compact?: any }} [options] @returns {any} */
export function agentsSession(session, options = {}) {
  if (typeof session?.append !== 'function') {
    throw new RethreadError('config_invalid', '`agentsSession` takes a session: `await store.session(id)`');
  }
  const { compact, ...unknown } = options;
  if (Object.keys(unknown).length || (compact !== undefined && typeof compact !== 'function')) {
    throw new RethreadError('config_invalid', 'the only option of `agentsSession` is `compact`, which is a function');
  }
  return compact ? new CompactingSession(session, compact) : new AgentsSession(session);
}
