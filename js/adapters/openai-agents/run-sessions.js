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
  '`run(agent, input, { session: history })`; a session that wraps it needs `acceptsRunContext` and passes the context on';

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

  /** Rejects for a run of another session, or of none, before anything of it is stored or sent. */
  async check(runContext) {
    const read = sessionsRead.get(runContext);
    if (read?.has(this.#session)) return;
    if (read) throw new RethreadError('config_invalid', OTHER);
    const begun = this.#begun.get(runContext);
    if (begun && !(await this.#endsWith(begun))) throw new RethreadError('config_invalid', NONE);
    hasRead(runContext, this.#session);
  }

  /** True if the session ends as this input does: a run that goes on from a `RunState` does not read it again. The SDK
   *  itself rejects a state of another session. */
  async #endsWith(input) {
    const { items } = await this.#session.store.queued(() => this.#session.store.read());
    if (!input.length || !items.length) return false;
    return new ItemCount(items.slice(-1)).take(storedItem(asStored(input.at(-1))));
  }
}
