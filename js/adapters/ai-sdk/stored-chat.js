// The UI messages of a session, and what is appended so that it has those of a page or of a stream.

import { additions, isChanged, withStatus } from '../message-difference.js';
import { StoredEntries } from '../stored-entries.js';
import { withDurableCalls } from './calls.js';
import { difference } from './changes.js';
import { FORMAT } from './format.js';
import { arriving } from './marks.js';
import { messageOf } from './read.js';

const hasContent = ({ parts }) => parts.some(({ type }) => type !== 'step-start');

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
  #entries;
  /** Where the next answer begins a branch: after this stored message, or with `null` at the beginning. */
  #forkAfter = /** @type {string | null | undefined} */ (undefined);
  /** Results of tools that could not be stored yet, by the invocation of their call. @type {Map<string, any>} */
  unstored = new Map();

  constructor(session) {
    this.#session = session;
    this.#entries = new StoredEntries(session, FORMAT);
  }

  /** Shows a new branch that begins after a stored message. */
  #fork(after) {
    return this.#entries.fork(after, () => {
      this.#forkAfter = undefined;
    });
  }

  /**
   * The last message if it is an answer. `isCut`: it has not come to its end. Stores what was arriving when its page
   * ended.
   */
  lastAnswer() {
    return this.#entries.queued(() =>
      this.#entries.repeated(async () => {
        await this.#storeArriving();
        const last = (await this.#entries.read()).at(-1);
        if (last?.role !== 'assistant') return undefined;
        const isCut = last.isCut || arriving.shown(this.#session).some(({ id }) => id === last.id);
        return { isCut, message: messageOf(last) };
      }),
    );
  }

  /** The stored form of a UI message, if there is one. */
  find(id) {
    return this.#entries.queued(async () => storedForm(await this.#entries.read(), id));
  }

  /** The messages of a page as they are stored: the page may have fewer, or fewer parts. */
  pageMessages(messages) {
    return this.#entries.queued(async () => {
      const entries = await this.#entries.read();
      const end = entries.findLastIndex(({ id }) => id === messages.at(-1)?.id);
      if (end < 0) return messages.map((message) => storedForm(entries, message.id) ?? message);
      const own = messages.findIndex((message) => entries.some(({ id }) => id === message.id));
      return [...messages.slice(0, own), ...entries.slice(0, end + 1).map(messageOf)];
    });
  }

  /** The UI messages as they are stored, all of the branch that is shown. */
  entries() {
    return this.#entries.queued(() => this.#entries.refresh());
  }

  /** The same, with the starts of their open calls that other branches have. */
  entriesWithStarts() {
    return this.#entries.queued(() => this.#entries.refreshWithStarts());
  }

  /**
   * Appends the `items` that `decide` returns for the stored messages, or performs its `write` on the session; for the
   * newer messages if another writer was first. `startsOf`: `decide` gets the starts that other branches have of this
   * call.
   *
   * @template {{ items?: any[], write?: (session: any, options: { expectedRevision: number }) => Promise<any> }} D
   * @param {(entries: import('../marked-entries.js').Entry[]) => D} decide
   * @param {{ startsOf?: string }} [options]
   * @returns {Promise<D>}
   */
  change(decide, { startsOf } = {}) {
    return this.#entries.queued(() =>
      this.#entries.repeated(async () => {
        const isAsked = startsOf !== undefined;
        const entries = isAsked ? this.#entries.refreshWithStarts(startsOf) : this.#entries.refresh();
        const decision = decide(await entries);
        await this.#entries.append(decision.items ?? []);
        if (decision.write) await decision.write(this.#session, { expectedRevision: this.#entries.revision });
        return decision;
      }),
    );
  }

  /** A new UI message as messages for `append`. */
  written(message) {
    return this.#entries.newMessages(message);
  }

  /** Stores what the messages of a page have and the session has not. Other messages at a place are another branch. */
  storePage(messages) {
    return this.#entries.queued(() =>
      this.#entries.repeated(async () => {
        this.#forkAfter = undefined;
        await this.#storeArriving();
        // What is left is stored, or the branch has gone on without it.
        for (const { id } of arriving.shown(this.#session)) arriving.keep(this.#session, id, null);
        const entries = await this.#entries.read();
        const { items, next, replaced } = compare(entries, messages);
        await this.#entries.append(items);
        await this.#entries.read();
        if (replaced && next.length) await this.#fork(this.#entries.before(replaced));
        else if (replaced) this.#forkAfter = this.#entries.before(replaced);
        await this.#entries.append(next.flatMap((message) => this.#entries.newMessages(message)));
      }),
    );
  }

  /** Stores an answer that the end of its page cut off. */
  async #storeArriving() {
    if (!arriving.shown(this.#session).length) return;
    const answer = arriving.cut(this.#session, await this.#entries.read(), this.#entries.stored);
    if (!answer) return;
    await this.#storeAnswer(answer.message, { status: 'stopped', isEnd: true, durable: new Set(answer.durable) });
  }

  /** Keeps an answer while it arrives: for a page that is loaded after this one has ended.
   *  @param {any} message @param {Set<string>} durable The names of its durable tools. */
  keepArriving(message, durable) {
    return this.#entries.queued(async () => {
      // A page that is loaded from now on shows the branch.
      if (this.#forkAfter !== undefined && hasContent(message)) await this.#fork(this.#forkAfter);
      const entries = await this.#entries.read();
      const stored = entries.findLast(({ id }) => id === message.id);
      const found = stored && difference(messageOf(stored), message, { isGrowing: true, mayLag: true });
      if (found && !isChanged(found)) return;
      const { branch } = this.#session;
      const after = this.#entries.stored.at(-1)?.id ?? null;
      const names = durable.size ? { durable: [...durable] } : {};
      arriving.keep(this.#session, message.id, { id: message.id, branch, message, after, ...names });
      await this.#session.save();
    });
  }

  /**
   * Stores what an answer has and its stored form has not. `status`: it was cut off. `isEnd`: no more of it arrives;
   * until then its id is kept, under which it is continued after a reload. `durable`: the names of the tools that
   * store that they start before they do.
   *
   * @param {any} message
   * @param {{ status?: string, isEnd: boolean, durable?: Set<string> }} options
   */
  storeAnswer(message, options) {
    return this.#entries.queued(() => this.#entries.repeated(() => this.#storeAnswer(message, options)));
  }

  /** @param {any} message @param {{ status?: string, isEnd: boolean, durable?: Set<string> }} options */
  async #storeAnswer(message, { status, isEnd, durable = new Set() }) {
    if (this.#forkAfter !== undefined && hasContent(message)) await this.#fork(this.#forkAfter);
    const entries = await this.#entries.read();
    const { id } = message;
    const at = entries.findLastIndex((entry) => entry.id === id);
    const items = withDurableCalls(await this.#itemsOf(message, entries, at, status), durable);
    if (!items.length && !(isEnd && arriving.isKept(this.#session, id))) return;
    const undo = arriving.keep(this.#session, id, isEnd ? null : { id, branch: this.#session.branch });
    try {
      await (items.length ? this.#entries.append(items) : this.#session.save());
    } catch (error) {
      undo();
      throw error;
    }
  }

  async #itemsOf(message, entries, at, status) {
    if (at < 0) {
      if (!hasContent(message)) return [];
      return withStatus(this.#entries.newMessages(message), status);
    }
    const entry = entries[at];
    const found = difference(messageOf(entry), message, { isGrowing: true, mayLag: true });
    if (found) return isChanged(found) || (status && !entry.isCut) ? additions(FORMAT, entry, found, status) : [];
    await this.#fork(this.#entries.before(entry));
    return this.#entries.newMessages(message);
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
    if (isChanged(found)) items.push(...additions(FORMAT, entry, found));
  }
  return { items, next: own.slice(place), replaced: entries[first + place] };
}
