// The messages of a library that a session has, with what appends to them: one task at a time, begun again if another
// tab was first, and branches.

import { newMessages } from './marked-messages.js';
import { markValue } from './marks.js';
import { readMarked } from './marked-entries.js';
import { listBranches, startedElsewhere } from './other-branches.js';
import { ATTEMPTS, KnownMessages } from './session-messages.js';
import { TaskQueue } from './task-queue.js';

export class StoredEntries extends TaskQueue {
  #session;
  #format;
  #known;
  /** The messages at `#revision` of `#branch`, as they are stored. @type {any[]} */
  #stored = [];
  /** The same as messages of the library. @type {import('./marked-entries.js').Entry[]} */
  #read = [];
  /** The entries of which it is known which starts other branches have, with the invocations of these calls.
   *  @type {WeakMap<object, Set<string>>} */
  #complete = new WeakMap();
  #revision = -1;
  #branch = '';
  /** Ids that messages of this branch or of others have. */
  #taken = new Set();

  /** @param {any} session @param {import('./marks.js').MarkFormat} format */
  constructor(session, format) {
    super();
    this.#session = session;
    this.#format = format;
    this.#known = new KnownMessages(session);
  }

  /** The stored messages of which `read` has made the last entries. */
  get stored() {
    return this.#stored;
  }

  /** The revision of what was read; -1 after an append, until it is read again. */
  get revision() {
    return this.#revision;
  }

  async read() {
    const session = this.#session;
    if (session.revision !== this.#revision || session.branch !== this.#branch) {
      const { revision, branch, messages } = await this.#known.read();
      [this.#revision, this.#branch, this.#stored] = [revision, branch, messages];
      // The first time, it notes which branches are damaged: calls that come later are in none of them.
      if (!this.#taken.size) await listBranches(session, messages);
      this.#read = readMarked(this.#format, messages);
      for (const { id } of messages) this.#taken.add(id);
    }
    return this.#read;
  }

  /** Reads what other tabs have stored. */
  async refresh() {
    await this.#session.refresh();
    return this.read();
  }

  /** Reads what other tabs have stored, with the starts of its open calls that other branches have; of one call, if an
   *  id is passed: then a branch that cannot be read, and may have started it, is an error. @param {string} [callId] */
  async refreshWithStarts(callId) {
    const entries = await this.refresh();
    const known = this.#complete.get(entries) ?? new Set();
    this.#complete.set(entries, known);
    const calls = entries.flatMap((entry) => entry.slots.map(({ neutral }) => ({ entry, call: neutral })));
    const open = calls.filter(({ call }) => call?.type === 'tool_call' && call.result === null);
    const isAsked = ({ entry, call }) =>
      (callId ?? call.callId) === call.callId && !entry.starts.has(call.callId) && !known.has(call.invocation);
    const asked = open.filter(isAsked);
    const startsOf = ({ parts }) => parts.flatMap((part) => markValue(this.#format.name, part)?.starts ?? []);
    const invocations = asked.map(({ call }) => call.invocation);
    const { started, doubted, damage } = await startedElsewhere(this.#session, this.#stored, invocations, startsOf);
    if (damage && callId !== undefined) throw damage;
    for (const { entry, call } of asked) {
      if (started.has(call.invocation) || doubted.has(call.invocation)) entry.starts.add(call.callId);
      known.add(call.invocation);
    }
    return entries;
  }

  /** Appends to what was read. `conflict` if another tab has appended meanwhile. */
  async append(items) {
    if (!items.length) return;
    await this.#known.append(items, this.#revision);
    this.#revision = -1;
  }

  /** Runs a task again if another tab appended between what it read and what it wrote.
   *  @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  async repeated(task) {
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await task();
      } catch (error) {
        if (error?.code !== 'conflict' || attempt === ATTEMPTS) throw error;
        await this.#session.refresh();
        this.#revision = -1;
      }
    }
  }

  /** The stored message that precedes the first one of an entry; null if none does. */
  before(entry) {
    const first = this.#stored.findIndex(({ id }) => id === entry.storedIds[0]);
    return this.#stored[first - 1]?.id ?? null;
  }

  /**
   * Shows a new branch that begins after a stored message. What was added later to the messages of its beginning is
   * appended again.
   *
   * @param {string | null} after
   * @param {() => void} [shown] Called once the branch is shown: what fails then is no reason for another one.
   */
  async fork(after, shown) {
    const entries = await this.read();
    const length = this.#stored.findIndex(({ id }) => id === after) + 1;
    const shared = new Set(this.#stored.slice(0, length).map(({ id }) => id));
    const kept = new Set(entries.flatMap(({ storedIds }) => (shared.has(storedIds[0]) ? storedIds : [])));
    const late = this.#stored.slice(length).filter(({ id }) => kept.has(id));
    const { branch } = await this.#session.fork(after);
    await this.#session.switchTo(branch);
    shown?.();
    await this.read();
    await this.append(late.map(({ id, ...message }) => message));
    await this.read();
  }

  /** A message of the library that is not stored yet, as messages for `append`. @returns {any[]} */
  newMessages(message) {
    const { id } = message;
    const isFree = typeof id === 'string' && id && !this.#taken.has(id);
    return newMessages(this.#format, message, isFree ? id : undefined);
  }
}
