// A mark in `session.state` says which process makes the answer of a chat, and until when that process counts as alive.
// Others follow the answer, and ask its holder to stop it.

import { Session } from '../../session.js';
import { newId } from './ids.js';

/** @typedef {{ holder: string, id: string, branch: string, until: number }} Hold `holder`: another one for each answer.
 *  `id`: that of its message. `until`: a time, 0 once the answer has ended. */

const HOLD = 'rethread/ai-sdk:holder';
/** The holder that is asked to stop. */
const STOP = 'rethread/ai-sdk:stop';

/** Milliseconds between two looks at what other processes have stored. */
export const POLL_MS = 300;
/** For so many milliseconds a holder counts as alive after its last write, unless `open` has a `leaseMs`. */
const LEASE_MS = 10_000;
/** Milliseconds that a holder is given to stop. One that lives looks at the session more often. */
const STOP_WAIT_MS = 2000;

/** Waits for what other processes store. `isIdle`: this keeps no process alive. */
export const pause = (ms = POLL_MS, { isIdle = false } = {}) =>
  new Promise((resolve) => {
    const timer = /** @type {any} */ (setTimeout(resolve, ms));
    if (isIdle) timer.unref?.();
  });

/** The newest answer that a process has made or makes, as it was read last. @returns {Hold | undefined} */
export const heldAnswer = (session) => session.state.get(HOLD) ?? undefined;

/** True while the holder has not ended the answer, and counts as alive. @param {Hold | undefined} hold */
export const isUnderWay = (hold) => hold !== undefined && hold.until > Date.now();

/** Milliseconds for which a mark counts after it was written. */
export const leaseOf = (session) => Session.storeOf(session).leaseMs ?? LEASE_MS;

/** The marks that were seen last, by session, the newest last. @type {WeakMap<object, Map<string, string>>} */
const seen = new WeakMap();
const MOST_SEEN = 10_000;

/** Notes a mark. Returns the one that was seen before. */
function note(session, { holder, branch }) {
  const store = Session.storeOf(session);
  const marks = seen.get(store) ?? new Map();
  seen.set(store, marks);
  const last = marks.get(session.id);
  marks.delete(session.id);
  marks.set(session.id, `${holder} ${branch}`);
  if (marks.size > MOST_SEEN) marks.delete(marks.keys().next().value);
  return last;
}

/** The answer that this process makes: its mark is renewed until `release`. */
export class AnswerHold {
  #session;
  #holder = newId();
  #stop = new AbortController();
  /** The mark as it was set last. @type {Hold} */
  #own;
  #renewAt = 0;
  #isReleased = false;

  /** @param {any} session @param {string} id That of the message. */
  constructor(session, id) {
    this.#session = session;
    this.#own = this.#set(id);
  }

  /** Is aborted when another process asks to stop, or answers instead. */
  get signal() {
    return this.#stop.signal;
  }

  #set(id, isOver = false) {
    const lease = leaseOf(this.#session);
    const until = isOver ? 0 : Date.now() + lease;
    this.#renewAt = Date.now() + lease / 3;
    this.#own = { holder: this.#holder, id, branch: this.#session.branch, until };
    this.#session.state.set(HOLD, this.#own);
    note(this.#session, this.#own);
    return this.#own;
  }

  /** Stores the mark, and keeps it from now on. */
  async begin() {
    await this.#session.save();
    void this.#keep();
  }

  /** Notes the message's id, and the branch that it has begun. */
  update(id) {
    const isSame = id === this.#own.id && this.#session.branch === this.#own.branch;
    if (isSame || this.#isReleased || !this.#isOwn) return;
    this.#set(id);
    this.#renewAt = 0;
  }

  async #keep() {
    while (!this.#isReleased) {
      await pause(Math.min(POLL_MS, leaseOf(this.#session) / 3), { isIdle: true });
      // While the store fails nobody can follow the answer, which goes on; its own writes report the error.
      await this.#look().catch(() => {});
    }
  }

  async #look() {
    const session = this.#session;
    if (this.#isReleased) return;
    await session.refresh();
    if (this.#isReleased) return;
    this.check();
    if (!this.#isOwn || Date.now() < this.#renewAt) return;
    this.#set(this.#own.id);
    await session.save();
  }

  /** Aborts the signal if the session, as it was read last, has a stop or the mark of another process: of two that
   *  began at once, the one that was stored last. */
  check() {
    if (this.#isReleased) return;
    if (!this.#isOwn || this.#session.state.get(STOP) === this.#holder) this.#stop.abort();
  }

  get #isOwn() {
    return heldAnswer(this.#session)?.holder === this.#holder;
  }

  /** Stores that the answer has ended. */
  async release() {
    if (this.#isReleased) return;
    this.#isReleased = true;
    try {
      // Another process may have begun an answer since the last look.
      await this.#session.refresh();
      if (!this.#isOwn) return;
      this.#set(this.#own.id, true);
      await this.#session.save();
    } catch {
      // A mark that could not be stored ends by itself.
    }
  }
}

/** Asks the holder in another process to stop its answer, and waits until it has. Resolves to true when the answer has
 *  ended, to false if none is under way, and to "asked" if the holder has not confirmed that: it has died, or finds
 *  later that it was asked to stop or that its answer is replaced. @returns {Promise<boolean | 'asked'>} */
export async function stopElsewhere(session) {
  await session.refresh();
  const hold = heldAnswer(session);
  if (!isUnderWay(hold)) return false;
  const end = Date.now() + STOP_WAIT_MS;
  session.state.set(STOP, hold?.holder);
  await session.save();
  for (;;) {
    await session.refresh();
    const now = heldAnswer(session);
    if (now?.holder !== hold?.holder) return 'asked';
    if (!isUnderWay(now)) return true;
    if (Date.now() > end) return 'asked';
    await pause();
  }
}

/** Shows the branch of an answer that another process has begun since this one looked last: an open session keeps the
 *  branch that it shows. */
export async function followBranch(session) {
  await session.refresh();
  const hold = heldAnswer(session);
  if (!hold) return;
  const last = note(session, hold);
  // A session that was opened just now shows the branch that is stored.
  const isKnown = last === undefined || last === `${hold.holder} ${hold.branch}`;
  if (isKnown || hold.branch === session.branch) return;
  const branches = await session.branches();
  if (branches.some(({ branch }) => branch === hold.branch)) await session.switchTo(hold.branch);
}
