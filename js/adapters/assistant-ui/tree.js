// The branches of a session as they were read last, and the messages of assistant-ui in each.

import { RethreadError } from '../../error.js';
import { MARK, mark } from '../ai-sdk/marks.js';
import { readEntries } from '../ai-sdk/read.js';
import { markValue } from '../marks.js';
import { readPages, withNewest } from '../session-messages.js';

/** Messages that are read after an append. */
const NEWEST = 100;

/**
 * A branch: its stored messages, and the messages of assistant-ui that these are, oldest first.
 *
 * @typedef {import('../ai-sdk/read.js').Entry} Entry
 * @typedef {{ branch: string, isConflict: boolean, stored: any[], entries: Entry[] }} TreeBranch
 */

/** How often a message was replaced by another text: a mark at the end of its first stored message. @param {Entry} entry
 *  @returns {number} */
const editOf = (entry) =>
  entry.first.parts.map((part) => markValue(MARK, part)).find((value) => value?.edit !== undefined)?.edit ?? 0;

/** Positive if the first form of a message was written later than the second. @param {Entry} a @param {Entry} b */
const order = (a, b) => editOf(a) - editOf(b) || a.storedIds.length - b.storedIds.length;

const newBranch = ({ branch, kind }, stored) => ({
  branch,
  isConflict: kind === 'conflict',
  stored,
  entries: readEntries(stored),
});

export class SessionTree {
  #session;
  #revision = -1;
  /** @type {TreeBranch[]} */
  branches = [];
  /** The newest form of each message, until something changes. @type {Map<string, Entry> | undefined} */
  #newest;
  /** The parent of each message that was read or written, also of those that are erased. @type {Map<string, string | null>} */
  #parents = new Map();

  constructor(session) {
    this.#session = session;
  }

  /** Reads what has changed. */
  async read() {
    const session = this.#session;
    await session.refresh();
    while (session.revision !== this.#revision) {
      const { revision } = session;
      const listed = (await session.branches()).filter(({ damaged }) => !damaged);
      const branches = [];
      for (const branch of listed) branches.push(newBranch(branch, await readPages(session, branch.branch)));
      if (session.revision !== revision) continue;
      [this.branches, this.#revision, this.#newest] = [branches, revision, undefined];
      this.#learnParents();
    }
    return { revision: this.#revision };
  }

  #learnParents() {
    for (const { entries } of this.branches)
      for (const [at, { id }] of entries.entries()) this.#parents.set(id, entries[at - 1]?.id ?? null);
  }

  /** Appends to a branch, if no other writer has appended since the tree was read. */
  async append(branch, items) {
    const known = this.#revision;
    if (known < 0) throw new RethreadError('conflict', 'another writer has appended since the branches were read');
    this.#revision = -1;
    await this.#session.append(items, { branch, expectedRevision: known });
    const callIds = items.flatMap(({ role, parts }) => (role === 'tool' ? parts.map(({ callId }) => callId) : []));
    if (this.#session.revision !== known + 1) return;
    await this.#readEnd(branch, new Set(callIds));
    if (this.#session.revision === known + 1) this.#revision = known + 1;
  }

  async #readEnd(branch, callIds) {
    const read = this.branches.find((other) => other.branch === branch);
    if (!read) return;
    this.#newest = undefined;
    const { items } = await this.#session.messages({ branch, limit: NEWEST });
    const newest = withNewest(read.stored, items, callIds);
    if (newest && read.stored.length && callIds.size === 0) {
      readEntries(newest.slice(read.stored.length), read.entries);
      read.stored = newest;
    } else {
      read.stored = await readPages(this.#session, branch);
      read.entries = readEntries(read.stored);
    }
  }

  /** Forks after a message of a branch, or with `undefined` at the beginning. Shows nothing else. */
  async fork({ branch, stored, entries }, parent) {
    const at = entries.findIndex(({ id }) => id === parent);
    const next = entries[at + 1]?.storedIds[0];
    const end = next === undefined ? stored.length : stored.findIndex(({ id }) => id === next);
    const forked = await this.#shownWhile(branch, () => this.#session.fork(stored[end - 1]?.id ?? null));
    const read = newBranch({ ...forked, kind: 'fork' }, await readPages(this.#session, forked.branch));
    this.branches.push(read);
    this.#newest = undefined;
    return read;
  }

  /** A session forks the branch that it shows. */
  async #shownWhile(branch, task) {
    const session = this.#session;
    const shown = session.branch;
    if (shown === branch) return task();
    await session.switchTo(branch);
    try {
      return await task();
    } finally {
      await session.switchTo(shown);
    }
  }

  /** The newest form of a message: what was written last, in whatever branch. @returns {Entry | undefined} */
  newest(id) {
    if (!this.#newest) {
      this.#newest = new Map();
      for (const entry of this.branches.flatMap(({ entries }) => entries)) {
        const known = this.#newest.get(entry.id);
        if (!known || order(entry, known) > 0) this.#newest.set(entry.id, entry);
      }
    }
    return this.#newest.get(id);
  }

  /** The form of a message that another branch has, if it was written later. @param {Entry} entry */
  newer(entry) {
    const newest = this.newest(entry.id);
    return newest && order(newest, entry) > 0 ? newest : undefined;
  }

  /** The messages of a new form that takes the place of a stored one.
   *  @param {Entry} entry @param {any[]} messages */
  asEdit(entry, [first, ...others]) {
    const newest = this.newest(entry.id) ?? entry;
    const edit = Math.max(editOf(entry) + 1, editOf(newest));
    return [{ ...first, parts: [...first.parts, mark({ edit })] }, ...others];
  }

  /** True if the branch ends with the newest form of its last message: others are what an edit has replaced. */
  isCurrent({ entries }) {
    const last = entries.at(-1);
    return !last || editOf(last) === editOf(this.newest(last.id) ?? last);
  }

  /** The branches that can be continued: the one that is shown first. */
  current() {
    const shown = this.#session.branch;
    const current = this.branches.filter((branch) => !branch.isConflict && this.isCurrent(branch));
    return current.sort((a, b) => Number(b.branch === shown) - Number(a.branch === shown));
  }

  /** The stored message that a new one follows: its parent, or if that is erased the nearest one before it. The parent
   *  of which nothing is known is the last message that is shown. @returns {string | null} */
  storedParent(parentId) {
    const seen = new Set();
    let id = parentId ?? null;
    while (id !== null && !this.newest(id)) {
      if (seen.has(id) || !this.#parents.has(id)) return this.#shownEnd();
      seen.add(id);
      id = this.#parents.get(id) ?? null;
    }
    return id;
  }

  #shownEnd() {
    const shown = this.branches.find(({ branch }) => branch === this.#session.branch);
    return shown?.entries.at(-1)?.id ?? null;
  }

  /** Reads everything the next time. */
  forget() {
    this.#revision = -1;
  }

  learnParent(id, parentId) {
    if (!this.#parents.has(id)) this.#parents.set(id, parentId ?? null);
  }

  /** True if no stored message has the id. */
  isFree(id) {
    return !this.branches.some(({ stored }) => stored.some((message) => message.id === id));
  }

  /** The ids of all stored messages of these messages. */
  storedIdsOf(ids) {
    const wanted = new Set(ids);
    const entries = this.branches.flatMap((branch) => branch.entries.filter(({ id }) => wanted.has(id)));
    return [...new Set(entries.flatMap(({ storedIds }) => storedIds))];
  }
}
