// An answer that another process makes, as a stream for a page: what is stored of it, as it comes.

import { RethreadError } from '../../error.js';
import { reasonOf } from '../../untrusted-value.js';
import { readPages } from '../session-messages.js';
import { heldAnswer, isUnderWay, leaseOf, pause } from './answer-hold.js';
import { replayed } from './changes.js';
import { newAnswer } from './ids.js';
import { errorText } from './live-answer.js';
import { arriving } from './marks.js';
import { chunksSince } from './message-chunks.js';
import { messageOf, readEntries } from './read.js';

/** Codes of errors that another look does not get over. */
const PERMANENT = ['closed', 'not_found', 'evicted', 'unsupported_version', 'wrong_key', 'corrupt_record'];

/** The error of a page whose answer cannot be read any more. */
function unreadable(error) {
  if (!(error instanceof RethreadError)) return error;
  const message = `what another process has stored of the answer cannot be read: ${reasonOf(error)}`;
  return new RethreadError(error.code, message, error.details, { cause: error });
}

class FollowedAnswer {
  #session;
  /** The mark of its holder as it was read last. @type {import('./answer-hold.js').Hold} */
  #hold;
  /** What the page has of it. */
  #sent;
  /** Since when the session cannot be read. @type {number | undefined} */
  #failingSince;
  /** The stored messages at a revision of a branch. */
  #known = { at: '', entries: /** @type {import('../marked-entries.js').Entry[]} */ ([]) };

  constructor(session, hold) {
    this.#session = session;
    this.#hold = hold;
  }

  /** What has come since: nothing while the session cannot be read, until no mark that it may have counts any more.
   *  Rejects then. @returns {Promise<{ chunks: any[], isOver: boolean }>} */
  async next() {
    try {
      const next = await this.#next();
      this.#failingSince = undefined;
      return next;
    } catch (error) {
      this.#failingSince ??= Date.now();
      const isLate = Date.now() - this.#failingSince >= leaseOf(this.#session);
      if (isLate || PERMANENT.includes(error?.code)) throw unreadable(error);
      return { chunks: [], isOver: false };
    }
  }

  async #next() {
    await this.#session.refresh();
    const hold = heldAnswer(this.#session);
    const isHeld = hold?.holder === this.#hold.holder;
    if (isHeld && hold) this.#hold = hold;
    const isOver = !isHeld || !isUnderWay(hold);
    const found = await this.#read({ isOver });
    const chunks = found.message ? this.#chunksTo(found.message) : [];
    return { chunks: isOver && this.#sent ? [...chunks, this.#end(found, isHeld)] : chunks, isOver };
  }

  async #read({ isOver }) {
    const { id, branch: begun } = this.#hold;
    const kept = arriving.find(this.#session, id);
    const entry = (await this.#find(id, kept?.branch ?? begun)) ?? (isOver ? await this.#findAnywhere(id) : undefined);
    const stored = entry && messageOf(entry);
    const came = kept?.message;
    return { entry, kept, message: stored && came ? replayed(stored, came) : (came ?? stored) };
  }

  async #find(id, branch) {
    return (await this.#entries(branch)).findLast((one) => one.id === id);
  }

  /** In the newest branch that has it: the answer may have begun a branch that no mark has named here. */
  async #findAnywhere(id) {
    for (const { branch } of (await this.#session.branches()).toReversed()) {
      const entry = await this.#find(id, branch);
      if (entry) return entry;
    }
    return undefined;
  }

  async #entries(branch) {
    const at = JSON.stringify([this.#session.revision, branch]);
    if (this.#known.at !== at) this.#known = { at, entries: readEntries(await readPages(this.#session, branch)) };
    return this.#known.entries;
  }

  #chunksTo(message) {
    const chunks = chunksSince(this.#sent ?? newAnswer(message.id), message);
    if (!chunks) return [];
    const start = this.#sent ? [] : [{ type: 'start', messageId: message.id }];
    this.#sent = message;
    return [...start, ...chunks];
  }

  /** How it has ended. One whose holder has died is interrupted. If another answer has taken the place of the mark, it
   *  is seen from what is stored: of one that has not ended there is something kept. */
  #end({ entry, kept }, isHeld) {
    const isInterrupted = !entry || (isHeld ? this.#hold.until !== 0 : kept !== undefined);
    if (!isInterrupted && entry.last.status === 'failed') return { type: 'error', errorText: errorText(undefined) };
    return { type: isInterrupted || entry.isCut ? 'abort' : 'finish' };
  }
}

/** A stream of the whole message, for a page that begins it anew. It ends when the answer has ended, or its holder, and
 *  with an error if the session cannot be read any more.
 *  @param {any} session @param {import('./answer-hold.js').Hold} hold @returns {ReadableStream} */
export function followedAnswer(session, hold) {
  const answer = new FollowedAnswer(session, hold);
  let isLeft = false;
  return new ReadableStream({
    async pull(controller) {
      while (!isLeft) {
        const { chunks, isOver } = await answer.next();
        if (isLeft) return;
        for (const chunk of chunks) controller.enqueue(chunk);
        if (isOver) controller.close();
        if (isOver || chunks.length) return;
        await pause();
      }
    },
    cancel() {
      isLeft = true;
    },
  });
}
