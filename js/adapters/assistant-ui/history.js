// The history of a session for assistant-ui: what is loaded, and what is written for each change of its tree.

import { FORMAT } from '../ai-sdk/format.js';
import { messageOf, partsOf } from '../ai-sdk/read.js';
import { newMessages } from '../marked-messages.js';
import { additions, isChanged, withStatus } from '../message-difference.js';
import { changeSession } from '../session-messages.js';
import { TaskQueue } from '../task-queue.js';
import { difference } from './difference.js';
import { SessionTree } from './tree.js';

/**
 * A message to write. `localId`: the id that it may be stored under.
 *
 * @typedef {{ ui: any, details: any, parentId: string | null, localId?: string, codec: any, isHead: boolean }} Write
 */

/** Errors of which a repetition is the same. */
const FINAL = ['invalid_input', 'config_invalid', 'too_large'];

/** Histories that were made of a session, by the session: they share what was read, and write one after the other.
 *  @type {WeakMap<object, SessionHistory>} */
const histories = new WeakMap();

export function historyOf(session) {
  const known = histories.get(session) ?? new SessionHistory(session);
  histories.set(session, known);
  return known;
}

class SessionHistory extends TaskQueue {
  #session;
  #tree;
  /** What could not be written, by id: it is written before anything else. @type {Map<string, Write>} */
  #unwritten = new Map();
  /** The ids of stored messages, by the ids that these have got since. @type {Map<string, string>} */
  #storedIds = new Map();

  constructor(session) {
    super();
    this.#session = session;
    this.#tree = new SessionTree(session);
  }

  /** All branches as a tree, parents first. @returns {Promise<{ headId?: string, messages: any[] }>} */
  load(codec, format) {
    return this.queued(async () => {
      await this.#tree.read();
      const messages = new Map();
      let headId;
      for (const { branch, entries } of this.#tree.branches) {
        let parentId = null;
        for (const { id } of entries) {
          if (!messages.has(id)) messages.set(id, this.#loaded(id, parentId, codec, format));
          if (messages.get(id)) parentId = id;
        }
        if (branch === this.#session.branch && parentId !== null) headId = parentId;
      }
      return { ...(headId === undefined ? {} : { headId }), messages: [...messages.values()].filter(Boolean) };
    });
  }

  #loaded(id, parentId, codec, format) {
    const item = codec.read(this.#tree.newest(id), parentId, format);
    return item && { ...item, parentId };
  }

  /** Writes a message, or what is new in a stored one. With `isHead`, its branch is shown afterwards. */
  put(/** @type {Write & { id: string }} */ { id, ...write }) {
    return this.queued(async () => {
      this.#unwritten.set(id, { ...write, isHead: write.isHead || this.#unwritten.get(id)?.isHead === true });
      for (const [key, earlier] of this.#unwritten) await this.#keepUnlessWritten(key, earlier);
    });
  }

  async #keepUnlessWritten(id, write) {
    try {
      await changeSession(
        this.#session,
        () => this.#tree.read(),
        () => this.#write(id, write),
      );
      this.#unwritten.delete(id);
    } catch (error) {
      if (FINAL.includes(error?.code)) this.#unwritten.delete(id);
      throw error;
    }
  }

  /** @param {string} written @param {Write} write */
  async #write(written, write) {
    const { localId } = write;
    if (localId !== undefined && !this.#tree.newest(written) && this.#tree.newest(localId))
      this.#storedIds.set(written, localId);
    const known = this.#storedId(written);
    const id = this.#tree.newest(known) ? known : written;
    const parentId = write.parentId === null ? null : this.#storedId(write.parentId);
    this.#tree.learnParent(id, parentId);
    const branches = this.#tree.current().filter(({ entries }) => entries.some((entry) => entry.id === id));
    for (const branch of branches) await this.#update(branch, id, write);
    if (!branches.length) await this.#add(id, { ...write, parentId });
    if (!write.isHead) return;
    const home = this.#tree.current().find(({ entries }) => entries.some((entry) => entry.id === id));
    if (home && home.branch !== this.#session.branch) await this.#session.switchTo(home.branch);
  }

  /** The id that a message is stored under, or was. */
  #storedId(id) {
    return this.#tree.newest(id) ? id : (this.#storedIds.get(id) ?? id);
  }

  async #add(id, { ui, details, parentId }) {
    const parent = this.#tree.storedParent(parentId);
    const endsHere = ({ entries }) => (entries.at(-1)?.id ?? null) === parent;
    const branch = this.#tree.current().find(endsHere) ?? (await this.#fork(parent));
    const messages = withDetails(newMessages(FORMAT, ui, this.#tree.isFree(id) ? id : undefined), details);
    // The other side of a conflict may have it: that takes nothing.
    const earlier = this.#tree.newest(id);
    const own = earlier ? this.#tree.asEdit(earlier, messages) : messages;
    await this.#tree.append(branch.branch, [...this.#lateChanges(branch), ...own]);
  }

  /** A branch that ends with the message. */
  async #fork(parent) {
    if (parent === null) return this.#tree.fork(this.#tree.branches[0], undefined);
    const current = this.#tree.current();
    const home = current.find(({ entries }) => entries.some(({ id }) => id === parent));
    if (home) return this.#tree.fork(home, parent);
    // Only the other side of a conflict, or a branch that an edit has replaced, has it: its messages are copied.
    const entries =
      this.#tree.branches.map((branch) => branch.entries).find((own) => own.some(({ id }) => id === parent)) ?? [];
    const path = entries.slice(0, entries.findIndex(({ id }) => id === parent) + 1);
    const shared = path.findLastIndex(({ id }) =>
      current.some((branch) => branch.entries.some((entry) => entry.id === id)),
    );
    const branch = await this.#fork(path[shared]?.id ?? null);
    await this.#tree.append(branch.branch, this.#copies(path.slice(shared + 1)));
    return branch;
  }

  /** What these messages of a branch have got in another branch, as items for `append`. */
  #lateChanges({ entries }) {
    return entries.flatMap((entry) => {
      const newest = this.#tree.newer(entry);
      if (!newest) return [];
      const isLast = entry === entries.at(-1);
      const found = difference(messageOf(entry), messageOf(newest), { slots: partsOf(entry), isLast });
      return found ? additions(FORMAT, entry, found) : [];
    });
  }

  /** Messages that are appended again, in their newest form. */
  #copies(entries) {
    return entries.flatMap((entry) => {
      const newest = this.#tree.newest(entry.id) ?? entry;
      const details = { createdAt: newest.first.createdAt, status: newest.last.status };
      return this.#tree.asEdit(entry, withDetails(newMessages(FORMAT, messageOf(newest), undefined), details));
    });
  }

  async #update(branch, id, { ui, details, codec }) {
    const at = branch.entries.findIndex((entry) => entry.id === id);
    const entry = branch.entries[at];
    const isLast = at === branch.entries.length - 1;
    const stored = { slots: codec.parts(entry), head: codec.head(entry), isLast };
    const found = difference(messageOf(entry), ui, stored);
    if (found && !isChanged(found)) return;
    if (found) await this.#tree.append(branch.branch, additions(FORMAT, entry, found));
    else await this.#replace(branch, at, { ui, details });
  }

  /** A text that was sent is another one: the messages from it on are a branch of their own. */
  async #replace(branch, at, { ui, details }) {
    const isShown = branch.branch === this.#session.branch;
    const later = branch.entries.slice(at + 1);
    const forked = await this.#tree.fork(branch, branch.entries[at - 1]?.id);
    const edited = this.#tree.asEdit(branch.entries[at], withDetails(newMessages(FORMAT, ui, undefined), details));
    const late = this.#lateChanges(forked);
    await this.#tree.append(forked.branch, [...late, ...edited, ...this.#copies(later)]);
    if (isShown) await this.#session.switchTo(forked.branch);
  }

  /** Erases messages. Those that are not stored are erased already. */
  remove(ids) {
    return this.queued(async () => {
      for (const id of ids) this.#unwritten.delete(id);
      for (let isRepeated = false; ; isRepeated = true) {
        await this.#tree.read();
        const stored = this.#tree.storedIdsOf(ids.map((id) => this.#storedId(id)));
        if (!stored.length) return;
        try {
          await this.#session.deleteMessages(stored);
          this.#tree.forget();
          return;
        } catch (error) {
          // Another tab has erased one of them.
          this.#tree.forget();
          if (error?.code !== 'not_found' || isRepeated) throw error;
        }
      }
    });
  }
}

/** The times and the status of the stored messages of a new message. */
function withDetails(messages, { createdAt, status }) {
  const timed = createdAt === undefined ? messages : messages.map((message) => ({ ...message, createdAt }));
  return withStatus(timed, status === 'streaming' ? undefined : status);
}
