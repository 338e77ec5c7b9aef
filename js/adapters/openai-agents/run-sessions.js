// Which session a run of the SDK has: an agent that is durable writes to its own, whatever `run` was passed.

import { RethreadError } from '../../error.js';
import { asStored } from '../message-record.js';
import { ItemCount, storedItem } from './run-items.js';

/** @typedef {import('./session.js').AgentsSession} AgentsSession */

/** The sessions that were read with the context of a run. Agents that are its tools, and have sessions of their own,
 *  have the same context. A model is not told which run asks it. @type {WeakMap<object, Set<AgentsSession>>} */
const sessionsRead = new WeakMap();

/** @param {object} runContext @param {AgentsSession} session */
export function hasRead(runContext, session) {
  const read = sessionsRead.get(runContext) ?? new Set();
  sessionsRead.set(runContext, read.add(session));
}

const OTHER =
  'the agent is durable for another session than the one of this run: make one for each session, ' +
  '`history.durable(agent)`, and pass that `history` to `run(agent, input, { session: history })`';
const NONE =
  'the agent is durable, and this run has not read its session: pass the `agentsSession` that has made the agent, ' +
  '`run(agent, input, { session: history })`; a session that wraps it needs `acceptsRunContext` and passes the context ' +
  'on; a `RunState` goes on before another run of its session';
const noCall = (callId) =>
  `the agent is durable for a session that does not have the call ${callId} of this state: make the agent with the ` +
  'session of the run that made the state, `history.durable(agent)`, and pass that `history` to ' +
  '`run(agent, state, { session: history })`';

/** The runs of the agents that are durable for one session. */
export class RunsOfSession {
  #session;
  /** What a run began with. @type {WeakMap<object, any[]>} */
  #begun = new WeakMap();

  /** @param {AgentsSession} session */
  constructor(session) {
    this.#session = session;
  }

  hasBegun(runContext, input) {
    this.#begun.set(runContext, input ?? []);
  }

  /** Rejects for a run of another session, or of none, before anything of it is stored or sent. A run that goes on from
   *  a `RunState` reads its session after its first model call or not at all: it is accepted by what it has.
   *  @param {object} runContext @param {string} [callId] that of the tool which is to run */
  async check(runContext, callId) {
    const read = sessionsRead.get(runContext);
    if (read?.has(this.#session)) return;
    if (read) throw new RethreadError('config_invalid', OTHER);
    const { store } = this.#session;
    const history = await store.queued(() => store.read());
    const begun = this.#begun.get(runContext);
    if (begun && !isAmong(history.items.at(-1), begun)) throw new RethreadError('config_invalid', NONE);
    if (!begun && callId !== undefined && isMissing(history, callId))
      throw new RethreadError('config_invalid', noCall(callId));
    hasRead(runContext, this.#session);
  }
}

/** True if a run that began with these items may be of a session that ends with this one. More input may follow it;
 *  what a guardrail checks is not stored yet, so a new session has none. */
function isAmong(item, input) {
  return item === undefined || new ItemCount(asStored(input).map(storedItem)).take(storedItem(item));
}

/** True if no run of the session has made the call. Another branch may have it, or a compaction may have removed it. */
function isMissing(history, callId) {
  return !history.call(callId) && !history.isForked && !history.blocks.some(({ record }) => record.startsHistory);
}
