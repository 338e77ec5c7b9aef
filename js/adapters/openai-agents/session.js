// A session of rethread as the `Session` of the OpenAI Agents SDK.

import { RethreadError } from '../../error.js';
import { asStored } from '../message-record.js';
import { canonicalJson, isSameJson } from '../plain.js';
import { durableAgent } from './durable-agent.js';
import { RUN } from './history.js';
import { HistoryStore } from './history-store.js';
import { checkedItems } from './checked-items.js';
import { newest, withoutOrphans } from './pairs.js';
import { RunItems } from './run-items.js';
import { hasRead } from './run-sessions.js';

async function digestOf(value) {
  const bytes = new TextEncoder().encode(canonicalJson(value));
  const digest = new Uint8Array(await crypto.subtle.digest('SHA-256', bytes));
  return Array.from(digest, (byte) => byte.toString(16).padStart(2, '0')).join('');
}

const invalid = (message) => new RethreadError('invalid_input', message);

function checkedTransaction(args) {
  const { operationId, transaction } = args ?? {};
  if (typeof operationId !== 'string' || !operationId.trim()) {
    throw invalid('a history transaction needs an `operationId`, which is a text');
  }
  if (transaction?.type === 'append_items') {
    const items = checkedItems(transaction.items, '`items`');
    return { operationId, transaction: { type: transaction.type, items } };
  }
  if (transaction?.type === 'replace_suffix') {
    const { type } = transaction;
    const expectedSuffix = checkedItems(transaction.expectedSuffix, '`expectedSuffix`');
    const replacement = checkedItems(transaction.replacement, '`replacement`');
    return { operationId, transaction: { type, expectedSuffix, replacement } };
  }
  throw invalid('a history transaction is of type "append_items" or "replace_suffix"');
}

/** True if the operation is stored. */
function isApplied(history, { id, digest }) {
  const applied = history.operations.get(id);
  if (applied === undefined || applied === digest) return applied !== undefined;
  throw new RethreadError('conflict', `the operation ${id} was applied with another transaction`);
}

/** The entries with the replacement in the place of the first call of its id, and without others of that id.
 *  @param {import('./history.js').Entry[]} entries */
function withReplacedCall(entries, { type, callId, replacement }) {
  if (type !== 'replace_function_call') throw invalid('the only mutation of history is "replace_function_call"');
  const isCall = ({ item }) => item.type === 'function_call' && item.callId === callId;
  const first = entries.findIndex(isCall);
  const replaced = (entry, at) => (at === first ? [{ ...entry, item: asStored(replacement) }] : []);
  return entries.flatMap((entry, at) => (isCall(entry) ? replaced(entry, at) : [entry]));
}

/** True for what the SDK's runner passes; an application passes none. @returns {value is object} */
const isContext = (value) => typeof value === 'object' && value !== null;

/** The source of what is stored with the context of a run, and without. */
const sourceOf = (runContext) => (isContext(runContext) ? RUN : undefined);

export class AgentsSession {
  acceptsRunContext = /** @type {const} */ (true);
  #session;
  /** @type {WeakMap<object, RunItems>} */
  #runs = new WeakMap();
  /** The run whose history was read last: a model does not say which run asks it. */
  #newest = new RunItems();

  constructor(session) {
    this.#session = session;
    this.store = new HistoryStore(session);
  }

  async getSessionId() {
    return this.#session.id;
  }

  getItems(limit, runContext) {
    return this.store.queued(async () => {
      const history = await this.store.read();
      if (isContext(runContext)) {
        hasRead(runContext, this);
        await this.store.completeStarts(history);
      }
      const items = withoutOrphans(isContext(runContext) ? history.itemsOfRun : history.items);
      const read = limit === undefined ? items : limit > 0 ? newest(items, limit) : [];
      this.runOf(runContext).hasRead(read, history.blocks);
      return structuredClone(read);
    });
  }

  async addItems(items, runContext) {
    const added = checkedItems(items, 'the items');
    await this.store.queued(() => this.append(added, runContext));
  }

  popItem() {
    return this.store.queued(async () => {
      const { made } = await this.store.change((history) => {
        const last = history.entries.length - 1;
        if (last < 0) return { messages: [], popped: undefined };
        return { ...history.replaced(last, []), popped: history.entries[last].item };
      });
      return structuredClone(made.popped);
    });
  }

  clearSession() {
    return this.store.queued(() => this.store.clear());
  }

  async applyHistoryTransaction(args, runContext) {
    const { operationId, transaction } = checkedTransaction(args);
    const operation = { id: operationId, digest: await digestOf(transaction) };
    await this.store.queued(async () => {
      if (transaction.type === 'append_items') {
        await this.append(transaction.items, runContext, operation);
        return;
      }
      await this.store.change((history) => {
        if (isApplied(history, operation)) return { messages: [] };
        const { expectedSuffix, replacement } = transaction;
        const start = history.entries.length - expectedSuffix.length;
        if (start < 0 || !isSameJson(history.items.slice(start), expectedSuffix)) {
          throw new RethreadError('conflict', 'the history does not end with the items that are to be replaced');
        }
        return history.replaced(start, history.sourced(replacement, sourceOf(runContext)), operation);
      });
    });
  }

  async applyHistoryMutations(args) {
    const mutations = args?.mutations;
    if (!Array.isArray(mutations)) throw invalid('`mutations` must be a list');
    await this.store.queued(() =>
      this.store.change((history) => {
        const changed = mutations.reduce(withReplacedCall, history.entries);
        const first = history.entries.findIndex(({ item }, at) => !isSameJson(item, changed[at]?.item ?? null));
        return first < 0 ? { messages: [] } : history.replaced(first, changed.slice(first));
      }),
    );
  }

  async replaceHistoryWithCompaction(items) {
    const compacted = checkedItems(items, 'the items');
    await this.store.queued(() => this.store.change((history) => history.compacted(compacted)));
  }

  prepareHistoryItemsForPersistenceComparison(items) {
    return items.map(asStored);
  }

  /** Returns a copy of the agent that stores answers with calls, and results, as they come. */
  durable(agent, options) {
    return durableAgent(agent, this, options);
  }

  /** @param {object} [runContext] @returns {RunItems} */
  runOf(runContext) {
    if (!isContext(runContext)) return this.#newest;
    const known = this.#runs.get(runContext);
    const run = known ?? new RunItems();
    if (!known) this.#runs.set(runContext, run);
    this.#newest = run;
    return run;
  }

  /** Stores items, which are a run's if it passes its context, while no other call is at work.
   *  @param {any[]} items @param {object} [runContext] @param {{ id: string, digest: string }} [operation] */
  async append(items, runContext, operation) {
    const run = this.runOf(runContext);
    const changed = await this.store.change(async (history) => {
      if (operation && isApplied(history, operation)) return { messages: [], end() {} };
      if (isContext(runContext)) await this.store.completeAnswered(history, items);
      const retold = isContext(runContext) ? history.retold(items, this.store.executed) : undefined;
      return retold ?? run.change(history, history.sourced(items, sourceOf(runContext)), operation);
    });
    changed.made.end();
    return changed;
  }
}
