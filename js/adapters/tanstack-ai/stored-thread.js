// The messages of a chat of TanStack in a session: what is appended so that it has those of a page.

import { additions, isChanged, withStatus } from '../message-difference.js';
import { isSame, plain } from '../plain.js';
import { StoredEntries } from '../stored-entries.js';
import { difference } from './changes.js';
import { arriving, checkedMessage, FORMAT, isRunning, RESUME } from './format.js';
import { datedMessage, messageOf } from './read.js';
import { strayResults } from './stray-results.js';

/** True if TanStack has changed nothing of a message: it copies what it changes. */
export const isUntouched = (before, after) =>
  before === after ||
  (before.id === after.id &&
    before.metadata === after.metadata &&
    before.parts.length === after.parts.length &&
    before.parts.every((part, at) => part === after.parts[at]));

/** The status of an answer that is over: of one of which nothing came, the run has failed, or was stopped. */
const statusOf = ({ role, parts }) => (role === 'assistant' && !parts.length ? 'failed' : undefined);

export class StoredThread {
  #session;
  #entries;
  /** The messages that the page had when they were stored last. @type {any[] | undefined} */
  #base;
  /** Those that `read` returned. @type {any[] | undefined} */
  #loaded;
  /** Ids of messages that were stored at some time: one that is missing was removed by somebody else. */
  #seen = new Set();
  /** The answer that this page receives. @type {string | undefined} */
  #growing;
  /** The snapshot that the page had last. */
  #resume;

  constructor(session) {
    this.#session = session;
    this.#entries = new StoredEntries(session, FORMAT);
  }

  /** The same chat in a session that was created anew: what was removed with the old one does not come back. */
  in(session) {
    const thread = new StoredThread(session);
    [thread.#base, thread.#loaded] = [this.#base, this.#loaded];
    [thread.#growing, thread.#resume] = [this.#growing, this.#resume];
    for (const id of this.#seen) thread.#seen.add(id);
    return thread;
  }

  /** What is stored, with the answer that was arriving when its page ended; null if it is nothing. */
  read() {
    return this.#entries.queued(async () => {
      await this.#entries.refresh();
      const entries = await this.#read();
      const messages = entries.map(messageOf);
      for (const answer of this.#arriving()) {
        const at = entries.findLastIndex(({ id }) => id === answer.id);
        messages.splice(at < 0 ? messages.length : at, at < 0 ? 0 : 1, answer);
      }
      const resume = this.#session.state.get(RESUME);
      if (!messages.length && !resume) return null;
      this.#loaded = messages.map(datedMessage);
      return { messages: [...this.#loaded], ...(resume ? { resume } : {}) };
    });
  }

  /**
   * Stores what a state has and the session has not.
   *
   * @param {{ messages: any[], resume?: any }} state
   * @param {{ isOver: boolean }} options `isOver`: if the last message is an answer, no more of it arrives.
   */
  write(state, options) {
    return this.#entries.queued(async () => {
      const { messages, refused } = this.#storable(state.messages);
      await this.#entries.repeated(() => this.#write({ ...state, messages }, options));
      if (refused) throw refused;
    });
  }

  /** The messages without what JSON cannot have: a message that has it is as it was last, or left out. */
  #storable(messages) {
    const earlier = new Map((this.#base ?? this.#loaded ?? []).map((message) => [message.id, message]));
    let refused;
    const storable = messages.flatMap((message) => {
      const before = earlier.get(message.id);
      try {
        const isChecked = before && Array.isArray(message.parts) && isUntouched(before, message);
        if (!isChecked) checkedMessage(message);
        return [message];
      } catch (error) {
        refused ??= error;
        return before ? [before] : [];
      }
    });
    return { messages: storable, refused };
  }

  /** Removes everything. */
  clear() {
    return this.#entries.queued(async () => {
      await this.#entries.refresh();
      const { state } = this.#session;
      const filled = state.keys().filter((key) => key.startsWith(FORMAT.name) && state.get(key) !== null);
      for (const key of filled) state.set(key, null);
      if (filled.length) await this.#session.save();
      if (this.#session.revision > 0) await this.#session.clear();
      [this.#base, this.#loaded, this.#growing, this.#resume] = [undefined, undefined, undefined, undefined];
      this.#seen.clear();
    });
  }

  async #read() {
    const entries = await this.#entries.read();
    for (const { id } of entries) this.#seen.add(id);
    return entries;
  }

  /** The answers that pages receive, as far as they are kept. @returns {any[]} */
  #arriving() {
    return arriving.shown(this.#session).flatMap(({ message }) => message ?? []);
  }

  /** The messages from which the page came to those that it has. Without any in common it has loaded none. */
  #before(entries, messages) {
    if (this.#base) return this.#base;
    const loaded = this.#loaded ?? entries.map(messageOf);
    return messages.some(({ id }) => loaded.some((other) => other.id === id)) ? loaded : [];
  }

  #mayLag(entry) {
    return entry.isCut || this.#growing === entry.id;
  }

  /** True if a message is stored as it is. */
  #isStored(before, message) {
    return isUntouched(before, message) && this.#growing !== message.id;
  }

  /** The number of messages at the beginning that are those of `base`, some of them with more. */
  #kept(base, messages, entries) {
    const changed = base.findIndex((before, at) => {
      const message = messages[at];
      if (before.id !== message?.id) return true;
      const entry = this.#isStored(before, message) ? undefined : entries.findLast(({ id }) => id === before.id);
      return entry && !difference(entry, checkedMessage(message), { mayLag: this.#mayLag(entry) });
    });
    return changed < 0 ? base.length : changed;
  }

  /** @param {{ messages: any[], resume?: any }} state @param {{ isOver: boolean }} options */
  async #write({ messages, resume }, { isOver }) {
    const entries = await this.#read();
    const base = this.#before(entries, messages);
    const kept = this.#kept(base, messages, entries);
    const removed = base.slice(kept);
    const last = messages.at(-1);
    const growing = last?.role === 'assistant' && !isOver ? last : undefined;
    // A page that joins a run again drops the answer, of which all arrives again.
    const isShorter = kept === messages.length && removed.length === 1;
    const isJoining = isRunning(resume) && isShorter && removed[0].role === 'assistant';
    if (!isJoining) {
      if (removed.length || messages.slice(kept).some((message) => message !== growing))
        await this.#leave(messages, base, kept);
      await this.#append(messages, { base, kept, growing });
    }
    await this.#keep(growing, resume, messages.length > kept && last?.role === 'user');
    if (!isJoining) this.#base = [...messages];
    this.#growing = isJoining ? removed[0].id : growing?.id;
    this.#resume = resume;
  }

  /** Messages that the page has no longer stay in their branch. Also stores answers of other pages that have ended. */
  async #leave(messages, base, kept) {
    const removed = base.slice(kept);
    const entries = await this.#read();
    const isStored = ({ id }) => this.#seen.has(id);
    const left = removed.filter((message) => !isStored(message) && message.parts.length);
    const known = new Set([...messages, ...left].map(({ id }) => id));
    left.push(...this.#arriving().filter(({ id }) => !known.has(id)));
    const items = left.flatMap((message) => withStatus(this.#itemsOf(checkedMessage(message), entries), 'stopped'));
    await this.#store(items, left);
    const stored = await this.#read();
    const first = removed.map(({ id }) => stored.findLast((entry) => entry.id === id)).find(Boolean);
    if (!first) return;
    await this.#fork(first, () => {
      this.#base = base.slice(0, kept);
    });
  }

  #itemsOf(message, entries) {
    const entry = entries.findLast(({ id }) => id === message.id);
    if (!entry) return this.#entries.newMessages(message);
    const found = difference(entry, message, { mayLag: true });
    return found && isChanged(found) ? additions(FORMAT, entry, found) : [];
  }

  /** Shows a branch that ends before a message. `shown`: called once it is shown. */
  async #fork(entry, shown = () => {}) {
    await this.#entries.fork(this.#entries.before(entry), () => {
      this.#seen.clear();
      shown();
    });
    await this.#read();
  }

  /** Appends what the messages have and the branch has not. */
  async #append(messages, { base, kept, growing }) {
    const entries = new Map((await this.#read()).map((entry) => [entry.id, entry]));
    const items = /** @type {any[]} */ ([]);
    const over = /** @type {any[]} */ ([]);
    for (const [at, message] of messages.entries()) {
      const entry = entries.get(message.id);
      const isKnown = at < kept && this.#isStored(base[at], message);
      if (message === growing || (isKnown && (entry || this.#seen.has(message.id)))) continue;
      const isElsewhere = arriving.isKept(this.#session, message.id) && this.#growing !== message.id;
      // Another page may still receive it.
      if (isElsewhere && isKnown && message === messages.at(-1)) continue;
      if (!entry && at < kept && this.#seen.has(message.id)) continue;
      const own = checkedMessage(message);
      over.push(message);
      items.push(...strayResults(own, messages.slice(0, at), entries));
      if (!entry) {
        items.push(...withStatus(this.#entries.newMessages(own), isElsewhere ? 'stopped' : statusOf(own)));
        continue;
      }
      const found = difference(entry, own, { mayLag: this.#mayLag(entry) });
      if (!found) {
        await this.#store(items, over);
        await this.#replace(entry, messages.slice(at), growing);
        return;
      }
      if (isChanged(found)) items.push(...additions(FORMAT, entry, found));
    }
    await this.#store(items, over);
  }

  /** Another message at a place: a branch. */
  async #replace(entry, messages, growing) {
    await this.#fork(entry);
    const own = messages.filter((message) => message !== growing);
    await this.#store(
      own.flatMap((message) => withStatus(this.#entries.newMessages(checkedMessage(message)), statusOf(message))),
      own,
    );
  }

  /** Appends, and keeps the answers no longer that are stored now. */
  async #store(items, messages) {
    const session = this.#session;
    const over = messages.filter(({ id }) => arriving.isKept(session, id));
    const undo = over.map(({ id }) => arriving.keep(session, id, null));
    try {
      if (items.length) await this.#entries.append(items);
      else if (over.length) await session.save();
    } catch (error) {
      for (const step of undo) step();
      throw error;
    }
    await this.#read();
  }

  /** Keeps the answer that arrives, and the snapshot of its run. */
  async #keep(growing, resume, hasAsked) {
    const session = this.#session;
    const undo = /** @type {(() => void)[]} */ ([]);
    if (growing?.parts.length) {
      const message = checkedMessage(growing);
      // The place that is free here may be taken by another page.
      if (!arriving.isKept(session, message.id)) await this.#entries.refresh();
      const entries = await this.#read();
      const entry = entries.findLast(({ id }) => id === message.id);
      const found = entry && difference(entry, message, { mayLag: true });
      if (!found || isChanged(found)) {
        const after = this.#entries.stored.at(-1)?.id ?? null;
        undo.push(arriving.keep(session, message.id, { id: message.id, branch: session.branch, message, after }));
      }
    }
    const stored = session.state.get(RESUME) ?? null;
    const isOwn = stored && stored.resumeState?.runId === this.#resume?.resumeState?.runId;
    const next = resume ? plain(resume) : isOwn || hasAsked ? null : stored;
    if (!isSame(stored, next)) {
      session.state.set(RESUME, next);
      undo.push(() => session.state.set(RESUME, stored));
    }
    if (!undo.length) return;
    try {
      await session.save();
    } catch (error) {
      for (const step of undo) step();
      throw error;
    }
  }
}
