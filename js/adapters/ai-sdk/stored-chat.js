// The UI messages of a session, and what is appended so that it has those of a page or of a stream.

import { KnownMessages } from '../message-record.js';
import { arrivingAnswers, arrivingMessage, isKept, keep } from './arriving.js';
import { difference, isChanged } from './changes.js';
import { messageOf, readEntries } from './read.js';
import { continuation, newMessages } from './write.js';

const ATTEMPTS = 20;

const hasContent = ({ parts }) => parts.some(({ type }) => type !== 'step-start');

/**
 * What `append` needs for the changes of a stored message.
 *
 * @param {import('./read.js').Entry} entry
 * @param {any} found
 * @param {string} [status]
 */
function additions(entry, found, status) {
  /** @type {any[]} */
  const items = found.results.length ? [{ role: 'tool', parts: found.results }] : [];
  const isLonger = found.changes.length + found.parts.length > 0 || found.metadata !== undefined;
  if (isLonger || status) items.push(...continuation(entry, found));
  if (status && items.length) items[items.length - 1] = { ...items.at(-1), status };
  return items;
}

function storedForm(entries, id) {
  const entry = entries.findLast((other) => other.id === id);
  return entry && messageOf(entry);
}

/** By session: one object for all that store in it here. @type {WeakMap<object, StoredChat>} */
const chats = new WeakMap();

/** Returns the chat of a session. @returns {StoredChat} */
export function storedChat(session) {
  const known = chats.get(session);
  if (known) return known;
  const chat = new StoredChat(session);
  chats.set(session, chat);
  return chat;
}

export class StoredChat {
  #session;
  #known;
  /** The messages at `#revision` of `#branch`, as they are stored. @type {any[]} */
  #stored = [];
  /** The same as UI messages. @type {import('./read.js').Entry[]} */
  #read = [];
  #revision = -1;
  #branch = '';
  /** Ids that messages of other branches have. */
  #taken = new Set();
  /** Where the next answer begins a branch: after this stored message, or with `null` at the beginning. */
  #forkAfter = /** @type {string | null | undefined} */ (undefined);
  #work = Promise.resolve();
  /** Results of tools that could not be stored yet, by the id of their call. @type {Map<string, any>} */
  unstored = new Map();

  constructor(session) {
    this.#session = session;
    this.#known = new KnownMessages(session);
  }

  /** Runs tasks one after the other. @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  #queued(task) {
    const done = this.#work.then(task);
    this.#work = done.then(
      () => {},
      () => {},
    );
    return done;
  }

  async #entries() {
    const session = this.#session;
    if (session.revision !== this.#revision || session.branch !== this.#branch) {
      const { revision, branch, messages } = await this.#known.read();
      [this.#revision, this.#branch, this.#stored] = [revision, branch, messages];
      this.#read = readEntries(messages);
      for (const { id } of messages) this.#taken.add(id);
    }
    return this.#read;
  }

  /** Appends to what was read. `conflict` if another tab has appended meanwhile. */
  async #append(items) {
    if (!items.length) return;
    const before = this.#revision;
    await this.#session.append(items, { expectedRevision: before });
    this.#revision = -1;
    const callIds = items.flatMap(({ role, parts }) => (role === 'tool' ? parts.map(({ callId }) => callId) : []));
    await this.#known.readAppended(before, new Set(callIds));
  }

  /** Runs a task again if another tab appended between what it read and what it wrote.
   *  @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  async #repeated(task) {
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

  /** The stored message that precedes the first one of a UI message; null if none does. */
  #before(entry) {
    const first = this.#stored.findIndex(({ id }) => id === entry.storedIds[0]);
    return this.#stored[first - 1]?.id ?? null;
  }

  /**
   * Shows a new branch that begins after a stored message. What was added later to the UI messages of its beginning is
   * appended again.
   */
  async #fork(after) {
    const entries = await this.#entries();
    const length = this.#stored.findIndex(({ id }) => id === after) + 1;
    const shared = new Set(this.#stored.slice(0, length).map(({ id }) => id));
    const kept = new Set(entries.flatMap(({ storedIds }) => (shared.has(storedIds[0]) ? storedIds : [])));
    const late = this.#stored.slice(length).filter(({ id }) => kept.has(id));
    const { branch } = await this.#session.fork(after);
    await this.#session.switchTo(branch);
    this.#forkAfter = undefined;
    await this.#entries();
    await this.#append(late.map(({ id, ...message }) => message));
    await this.#entries();
  }

  /** @returns {any[]} */
  #newMessages(message) {
    const { id } = message;
    return newMessages(message, typeof id === 'string' && id && !this.#taken.has(id) ? id : undefined);
  }

  /**
   * The last message if it is an answer. `isCut`: it has not come to its end. Stores what was arriving when its page
   * ended.
   */
  lastAnswer() {
    return this.#queued(() =>
      this.#repeated(async () => {
        await this.#storeArriving();
        const last = (await this.#entries()).at(-1);
        if (last?.role !== 'assistant') return undefined;
        const isCut = last.isCut || arrivingAnswers(this.#session).some(({ id }) => id === last.id);
        return { isCut, message: messageOf(last) };
      }),
    );
  }

  /** The stored form of a UI message, if there is one. */
  find(id) {
    return this.#queued(async () => storedForm(await this.#entries(), id));
  }

  /** The messages of a page as they are stored: the page may have fewer, or fewer parts. */
  pageMessages(messages) {
    return this.#queued(async () => {
      const entries = await this.#entries();
      const end = entries.findLastIndex(({ id }) => id === messages.at(-1)?.id);
      if (end < 0) return messages.map((message) => storedForm(entries, message.id) ?? message);
      const own = messages.findIndex((message) => entries.some(({ id }) => id === message.id));
      return [...messages.slice(0, own), ...entries.slice(0, end + 1).map(messageOf)];
    });
  }

  /** The UI messages as they are stored, all of the branch that is shown. */
  entries() {
    return this.#queued(async () => {
      await this.#session.refresh();
      return this.#entries();
    });
  }

  /**
   * Appends the `items` that `decide` returns for the stored messages, or performs its `write` on the session; for the
   * newer messages if another writer was first.
   *
   * @template {{ items?: any[], write?: (session: any, options: { expectedRevision: number }) => Promise<any> }} D
   * @param {(entries: import('./read.js').Entry[]) => D} decide
   * @returns {Promise<D>}
   */
  change(decide) {
    return this.#queued(() =>
      this.#repeated(async () => {
        await this.#session.refresh();
        const decision = decide(await this.#entries());
        await this.#append(decision.items ?? []);
        if (decision.write) await decision.write(this.#session, { expectedRevision: this.#revision });
        return decision;
      }),
    );
  }

  /** A new UI message as messages for `append`. */
  written(message) {
    return this.#newMessages(message);
  }

  /** Stores what the messages of a page have and the session has not. Other messages at a place are another branch. */
  storePage(messages) {
    return this.#queued(() =>
      this.#repeated(async () => {
        this.#forkAfter = undefined;
        await this.#storeArriving();
        // What is left is stored, or the branch has gone on without it.
        for (const { id } of arrivingAnswers(this.#session)) keep(this.#session, id, null);
        const entries = await this.#entries();
        const { items, next, replaced } = compare(entries, messages);
        await this.#append(items);
        await this.#entries();
        if (replaced && next.length) await this.#fork(this.#before(replaced));
        else if (replaced) this.#forkAfter = this.#before(replaced);
        await this.#append(next.flatMap((message) => this.#newMessages(message)));
      }),
    );
  }

  /** Stores an answer that the end of its page cut off. */
  async #storeArriving() {
    if (!arrivingAnswers(this.#session).length) return;
    const arriving = arrivingMessage(this.#session, await this.#entries(), this.#stored);
    if (arriving) await this.#storeAnswer(arriving, { status: 'stopped', isEnd: true });
  }

  /** Keeps an answer while it arrives: for a page that is loaded after this one has ended. */
  keepArriving(message) {
    return this.#queued(async () => {
      // A page that is loaded from now on shows the branch.
      if (this.#forkAfter !== undefined && hasContent(message)) await this.#fork(this.#forkAfter);
      const entries = await this.#entries();
      const stored = entries.findLast(({ id }) => id === message.id);
      const found = stored && difference(messageOf(stored), message, { isGrowing: true, mayLag: true });
      if (found && !isChanged(found)) return;
      const { branch } = this.#session;
      const after = this.#stored.at(-1)?.id ?? null;
      keep(this.#session, message.id, { id: message.id, branch, message, after });
      await this.#session.save();
    });
  }

  /**
   * Stores what an answer has and its stored form has not. `status`: it was cut off. `isEnd`: no more of it arrives;
   * until then its id is kept, under which it is continued after a reload.
   *
   * @param {any} message
   * @param {{ status?: string, isEnd: boolean }} options
   */
  storeAnswer(message, options) {
    return this.#queued(() => this.#repeated(() => this.#storeAnswer(message, options)));
  }

  /** @param {any} message @param {{ status?: string, isEnd: boolean }} options */
  async #storeAnswer(message, { status, isEnd }) {
    if (this.#forkAfter !== undefined && hasContent(message)) await this.#fork(this.#forkAfter);
    const entries = await this.#entries();
    const { id } = message;
    const at = entries.findLastIndex((entry) => entry.id === id);
    const items = await this.#itemsOf(message, entries, at, status);
    if (!items.length && !(isEnd && isKept(this.#session, id))) return;
    const undo = keep(this.#session, id, isEnd ? null : { id, branch: this.#session.branch });
    try {
      await (items.length ? this.#append(items) : this.#session.save());
    } catch (error) {
      undo();
      throw error;
    }
  }

  async #itemsOf(message, entries, at, status) {
    if (at < 0) {
      if (!hasContent(message)) return [];
      const items = this.#newMessages(message);
      if (status) items[items.length - 1] = { ...items[items.length - 1], status };
      return items;
    }
    const entry = entries[at];
    const found = difference(messageOf(entry), message, { isGrowing: true, mayLag: true });
    if (found) return isChanged(found) || (status && !entry.isCut) ? additions(entry, found, status) : [];
    await this.#fork(this.#before(entry));
    return this.#newMessages(message);
  }
}

/**
 * Compares the messages of a page with the stored ones: `items` is what stored messages lack, `next` has the page's
 * messages that are not stored, and `replaced` is the stored one at the place of the first of them. A page may have
 * messages of its own before those of the session, a greeting for example.
 */
function compare(entries, messages) {
  const stored = new Set(entries.map(({ id }) => id));
  const start = messages.findIndex(({ id }) => stored.has(id));
  const first = start < 0 ? entries.length : entries.findIndex(({ id }) => id === messages[start].id);
  const own = messages.slice(Math.max(start, 0));
  const items = /** @type {any[]} */ ([]);
  let place = 0;
  for (; place < own.length && first + place < entries.length; place += 1) {
    const entry = entries[first + place];
    if (entry.id !== own[place].id) break;
    const found = difference(messageOf(entry), own[place], { isGrowing: true, mayLag: entry.isCut });
    if (!found) break;
    if (isChanged(found)) items.push(...additions(entry, found));
  }
  return { items, next: own.slice(place), replaced: entries[first + place] };
}
