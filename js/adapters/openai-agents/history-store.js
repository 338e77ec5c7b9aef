// Reads and changes the items of a session: each change is one append.

import { executionsOf } from '../once/executions.js';
import { answerElsewhere, isDamage, keptElsewhere, listBranches, startedElsewhere } from '../other-branches.js';
import { changeSession, KnownMessages } from '../session-messages.js';
import { TaskQueue } from '../task-queue.js';
import { History, startsOf } from './history.js';
import { recordMessage } from './items.js';

/** Reads and changes the items of one session. */
export class HistoryStore extends TaskQueue {
  #session;
  #messages;
  /** The last one that was read. @type {History | null} */
  #known = null;
  #knownOf = /** @type {any[]} */ ([]);
  /** The calls of which it is known what other branches say, with the error of one that cannot be read.
   *  @type {WeakMap<History, Map<string, any>>} */
  #complete = new WeakMap();
  /** The calls that `once` has started in other branches, as far as that was read. */
  #startedByOnce = new Set();
  /** Messages that were removed in a branch, and that others keep. */
  #kept = { branch: '', ids: new Set() };

  constructor(session) {
    super();
    this.#session = session;
    this.#messages = new KnownMessages(session);
  }

  /** The calls of `once` whose stored results come from executions here. */
  get executed() {
    return executionsOf(this.#session);
  }

  /** @returns {Promise<History>} */
  async read() {
    const read = await this.#messages.read();
    if (this.#known && this.#knownOf === read.messages) return this.#known;
    const history = new History(read);
    // The first time, it notes which branches are damaged: calls that come later are in none of them.
    if (!this.#known || history.openCalls.length)
      history.isForked = (await listBranches(this.#session, read.messages)).others.length > 0;
    history.addStarts({ started: new Set(), startedByOnce: this.#startedByOnce, doubted: new Set() });
    [this.#known, this.#knownOf] = [history, read.messages];
    return history;
  }

  /** Adds to what was read the starts that other branches have of its open calls, by default of those that nobody
   *  knows to have started. Returns the error of a branch that cannot be read, and may have started one: a run is
   *  told that it may have run.
   *  @param {History} history @param {(call: import('./history.js').Call) => boolean} [isAsked] */
  async completeStarts(history, isAsked = ({ callId }) => !history.started.has(callId)) {
    const known = this.#complete.get(history) ?? new Map();
    this.#complete.set(history, known);
    const open = history.openCalls.filter((call) => !history.startedByOnce.has(call.invocation) && isAsked(call));
    const asked = open.map(({ invocation }) => invocation);
    const invocations = asked.filter((invocation) => !known.has(invocation));
    if (invocations.length) {
      const { damage, ...told } = await startedElsewhere(this.#session, this.#knownOf, invocations, startsOf);
      history.addStarts(told);
      for (const one of told.startedByOnce) this.#startedByOnce.add(one);
      for (const one of invocations) known.set(one, told.doubted.has(one) ? damage : undefined);
    }
    return asked.map((invocation) => known.get(invocation)).find((damage) => damage !== undefined);
  }

  /** The same for the calls that these items answer: what a run was told of one that `once` has started elsewhere is no
   *  result. @param {History} history @param {any[]} items */
  completeAnswered(history, items) {
    const answered = new Set(items.flatMap(({ type, callId }) => (type === 'function_call_result' ? [callId] : [])));
    return this.completeStarts(history, ({ callId }) => answered.has(callId));
  }

  /** Appends what `change` returns for the history as it is, and erases what that removes; for the newer history if
   *  another writer was first, and after a change that is `isRetold`.
   *  @template {{ messages: any[], removes?: string[], isRetold?: boolean }} C
   *  @param {(history: History) => C | Promise<C>} change
   *  @returns {Promise<{ made: C, before: number, after: number }>} the revisions before and after */
  async change(change) {
    for (;;) {
      const changed = await this.#changeOnce(change);
      if (!changed.made.isRetold) return changed;
    }
  }

  /** @template {{ messages: any[], removes?: string[] }} C @param {(history: History) => C | Promise<C>} change */
  async #changeOnce(change) {
    const attempt = async (history) => {
      const made = await change(history);
      const { messages, removes = [] } = made;
      // Of two that remove the same, one has its append rejected. A notice is erased with what it is about.
      const isNotice = !messages.length && removes.length > 0;
      const appended = isNotice ? [recordMessage({ removes })] : messages;
      if (!appended.length) return { made, before: history.revision, left: [], notice: [] };
      const ids = await this.#messages.append(appended, history.revision);
      const left = [...history.left.filter((id) => removes.length || !this.#isKept(id)), ...removes];
      return { made, before: history.revision, left, notice: isNotice ? ids : [] };
    };
    const { made, before, left, notice } = await changeSession(this.#session, () => this.read(), attempt);
    const after = this.#session.revision;
    await this.#erase(left, notice);
    return { made, before, after: left.length ? this.#session.revision : after };
  }

  #isKept(id) {
    return this.#kept.branch === this.#session.branch && this.#kept.ids.has(id);
  }

  /** Erases messages that count no longer, unless another branch has them, and with all of them the notice that says
   *  so. While a run of the session is not over, or where another process does the same, it is left to the next change;
   *  what another branch has, to the next one that removes something.
   *  @param {string[]} ids @param {string[]} notice */
  async #erase(ids, notice) {
    if (!ids.length) return;
    const { messages } = await this.#messages.read();
    const kept = await keptElsewhere(this.#session, messages, ids);
    this.#kept = { branch: this.#session.branch, ids: kept };
    const stored = new Set(messages.map(({ id }) => id));
    const left = [...ids, ...(kept.size ? [] : notice)].filter((id) => stored.has(id) && !kept.has(id));
    try {
      if (left.length) await this.#session.deleteMessages(left);
    } catch (error) {
      const isLater = ['busy', 'wrong_state', 'not_found', 'conflict'].includes(error?.code);
      // The change is stored. What a damaged record has is not erased.
      if (!isLater && !isDamage(error)) throw error;
    }
  }

  /** Stores the result of a call of a branch that is not shown.
   *  @param {string} invocation @param {any} item the result @param {string} text that of the result */
  answerElsewhere(invocation, item, text) {
    const replaced = (messages, revision) => {
      const history = new History({ revision, messages });
      history.isForked = true;
      return history.answered(item).messages;
    };
    return answerElsewhere(this.#session, invocation, { content: text }, replaced);
  }

  async clear() {
    await this.#session.clear();
    this.#known = null;
  }
}
