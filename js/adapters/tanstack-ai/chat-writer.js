// When the states of a chat are written: at once what cannot come again, and the text of an answer about once a second.

import { checkedState, isRunning } from './format.js';
import { RenamedAnswers } from './renamed-answers.js';
import { isUntouched, StoredThread } from './stored-thread.js';

/** While text arrives, it is kept once in so many milliseconds. */
const KEEP_MS = 1000;
/** An answer that nothing was added to for so long is stored; what comes later continues it. */
const QUIET_MS = 5000;
const LONGEST_RETRY_MS = 30_000;

/** True if a part has more text, and is otherwise as it was. */
function isSameStep(before, after) {
  return (
    before === after || (before.type === after.type && before.state === after.state && before.status === after.status)
  );
}

/** True if nothing but the last part of the answer at the end has grown. */
function isGrowth(before, after) {
  const [last, next] = [before.messages.at(-1), after.messages.at(-1)];
  if (before.resume !== after.resume || before.messages.length !== after.messages.length) return false;
  return (
    next?.role === 'assistant' &&
    last.id === next.id &&
    last.metadata === next.metadata &&
    last.parts.length === next.parts.length &&
    last.parts.length > 0 &&
    last.parts.every((part, at) => isSameStep(part, next.parts[at])) &&
    before.messages.slice(0, -1).every((message, at) => isUntouched(message, after.messages[at]))
  );
}

const isSameList = (before, after) =>
  before.messages.length === after.messages.length &&
  before.messages.every((message, at) => isUntouched(message, after.messages[at]));

export class ChatWriter {
  #open;
  #report;
  /** @type {Promise<StoredThread> | undefined} */
  #thread;
  /** The one before, of a session that was deleted. @type {StoredThread | undefined} */
  #before;
  /** The state that TanStack gave last, and whether its last answer is over. */
  #handed = /** @type {{ state: any, isOver: boolean } | undefined} */ (undefined);
  /** The last `getItem` of a client that has given nothing since. */
  #loaded = /** @type {{ work: Promise<any>, isPending: boolean, isFailed: boolean, messages: any[] } | undefined} */ (
    undefined
  );
  #renamed = new RenamedAnswers();
  #isWritten = true;
  #isWaiting = false;
  #writtenAt = 0;
  #retries = 0;
  #timer = /** @type {any} */ (undefined);

  /** @param {() => Promise<any>} open Opens the session. @param {(error: unknown, operation: string) => void} report */
  constructor(open, report) {
    this.#open = open;
    this.#report = report;
  }

  async #openThread() {
    const before = this.#before;
    const session = await this.#open();
    return before ? before.in(session) : new StoredThread(session);
  }

  /** Performs a task; anew if the session was deleted meanwhile. */
  async #performed(task) {
    for (let attempt = 1; ; attempt += 1) {
      this.#thread ??= this.#openThread();
      const opening = this.#thread;
      let thread;
      try {
        thread = await opening;
        return await task(thread);
      } catch (error) {
        const isDeleted = error?.code === 'not_found';
        if (this.#thread === opening && (isDeleted || !thread)) this.#thread = undefined;
        this.#before = thread ?? this.#before;
        if (!isDeleted || attempt > 1) throw error;
      }
    }
  }

  /** @template T @param {string} operation @param {(thread: StoredThread) => Promise<T>} task @returns {Promise<T>} */
  async #perform(operation, task) {
    try {
      return await this.#performed(task);
    } catch (error) {
      this.#report(error, operation);
      throw error;
    }
  }

  load() {
    const load = { work: this.#load(), isPending: true, isFailed: false, messages: /** @type {any[]} */ ([]) };
    this.#loaded = load;
    load.work.then(
      (found) => {
        [load.isPending, load.messages] = [false, found?.messages ?? []];
      },
      () => {
        [load.isPending, load.isFailed] = [false, true];
      },
    );
    return load.work;
  }

  async #load() {
    // What fails here was reported, and is tried again later.
    if (this.#isWaiting) await this.#write().catch(() => {});
    return this.#perform('getItem', (thread) => thread.read());
  }

  #checked(given) {
    try {
      const before = this.#handed?.state.messages ?? this.#loaded?.messages ?? [];
      return { ...checkedState(given), messages: this.#renamed.stored(before, given.messages) };
    } catch (error) {
      this.#report(error, 'setItem');
      throw error;
    }
  }

  /** @param {any} given */
  async set(given) {
    const state = this.#checked(given);
    const before = this.#handed;
    const isOver = this.#isOver(before, state);
    const isGrowing = before !== undefined && !before.isOver && !isOver && isGrowth(before.state, state);
    // What the list had is stored before another list takes its place.
    const last = this.#isWaiting ? before?.state.messages.at(-1) : undefined;
    const isGone = last !== undefined && !state.messages.some(({ id }) => id === last.id);
    const earlier = isGone ? this.#write() : undefined;
    this.#handed = { state, isOver };
    this.#loaded = undefined;
    this.#isWritten = false;
    if (isGrowing) {
      this.#isWaiting = true;
      this.#schedule(Math.max(0, this.#writtenAt + KEEP_MS - Date.now()));
      return;
    }
    await Promise.all([earlier, this.#write()]);
  }

  /** True if no more arrives of an answer at the end. TanStack gives the same list again when a run ends. */
  #isOver(before, { messages, resume }) {
    if (isRunning(resume)) return false;
    if (!before) return true;
    const [last, next] = [before.state.messages.at(-1), messages.at(-1)];
    if (next?.role !== 'assistant') return true;
    if (before.isOver) return last !== undefined && isUntouched(last, next);
    return next.parts.length > 0 && isSameList(before.state, { messages });
  }

  #schedule(delay) {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#due(), delay);
    // A program may end in between.
    this.#timer.unref?.();
  }

  #due() {
    if (this.#isWritten && this.#handed && !isRunning(this.#handed.state.resume)) this.#handed.isOver = true;
    // A failure was reported.
    this.#write().catch(() => {
      this.#retries += 1;
    });
  }

  async #write() {
    const handed = this.#handed;
    if (!handed) return;
    const { state, isOver } = handed;
    this.#isWaiting = false;
    clearTimeout(this.#timer);
    let refused;
    try {
      await this.#perform('setItem', (thread) => thread.write(state, { isOver }));
    } catch (error) {
      if (error?.code !== 'invalid_input') {
        this.#schedule(Math.min(KEEP_MS * 2 ** this.#retries, LONGEST_RETRY_MS));
        throw error;
      }
      // The other messages are stored.
      refused = error;
    }
    this.#writtenAt = Date.now();
    this.#retries = 0;
    if (this.#handed === handed) {
      this.#isWritten = true;
      if (!isOver && !isRunning(state.resume)) this.#schedule(QUIET_MS);
    }
    if (refused) throw refused;
  }

  /** Stores what is left, and the last answer as it is. */
  async flush() {
    if (!this.#handed) return;
    if (!isRunning(this.#handed.state.resume)) this.#handed.isOver = true;
    await this.#write();
  }

  /**
   * Removes the chat. A client removes it, too, when it ends something before it has loaded its messages, because it
   * has none then; what it has not seen is kept.
   */
  async remove() {
    const loaded = this.#loaded;
    if (loaded?.isPending) {
      // The client waits for this call before it gives what it has loaded.
      this.#removeLater(loaded);
      return;
    }
    // Rejects as the load did.
    if (loaded && (loaded.isFailed || (await loaded.work) === null)) {
      await loaded.work;
      return;
    }
    await this.#remove();
  }

  async #removeLater(loaded) {
    const found = await loaded.work.catch(() => null);
    await new Promise((resolve) => setTimeout(resolve));
    // A failure was reported.
    if (found && this.#loaded === loaded) await this.#remove().catch(() => {});
  }

  #remove() {
    clearTimeout(this.#timer);
    [this.#handed, this.#loaded] = [undefined, undefined];
    this.#renamed.clear();
    [this.#isWaiting, this.#isWritten, this.#retries] = [false, true, 0];
    return this.#perform('removeItem', (thread) => thread.clear());
  }
}
