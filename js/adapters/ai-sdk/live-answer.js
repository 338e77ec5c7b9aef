// An answer that is made here and sent to any number of pages, which come and go.

import { RethreadError } from '../../error.js';
import { callsSince, messageChunks } from './message-chunks.js';

/** Milliseconds that a tool waits for its call to come in the stream of the answer. */
const CALL_WAIT_MS = 5000;

/** What a page is told of an error. Others may quote what is not for everybody. */
export const errorText = (error) => (error instanceof RethreadError ? error.message : 'An error occurred.');

/** Cancels what nobody reads any more. @param {Promise<ReadableStreamDefaultReader>} begun */
const cancel = (begun) => begun.then((reader) => reader.cancel()).catch(() => {});

export class LiveAnswer {
  #answer;
  #base;
  #hold;
  /** What was sent so far. @type {any[]} */
  #chunks = [];
  #isOver = false;
  /** @type {Set<() => void>} */
  #listeners = new Set();
  #abort = new AbortController();
  #stop;
  #stopped;
  /** @type {Promise<void>} */
  #done = Promise.resolve();

  /** @param {import('./transport.js').PassingAnswer} answer Stores what passes. @param {any} base The message that it
   *  continues, as it is stored. @param {import('./answer-hold.js').AnswerHold} hold The mark for other processes. */
  constructor(answer, base, hold) {
    this.#answer = answer;
    this.#base = base;
    this.#hold = hold;
    this.#stopped = new Promise((resolve) => {
      this.#stop = () => resolve({ isStopped: true });
    });
  }

  /** Is aborted by `stop`, and by nothing else. */
  get signal() {
    return this.#abort.signal;
  }

  /** Takes the chunks of a stream, whether a page listens or not. @param {Promise<ReadableStream>} stream */
  start(stream) {
    this.#done = this.#pass(stream.then((made) => made.getReader()));
    return this.#done;
  }

  /** Ends the answer: what has come is kept, with the status "stopped". Resolves when that is stored. */
  async stop() {
    this.#stop?.();
    this.#abort.abort();
    await this.#done;
  }

  async #pass(begun) {
    try {
      await this.#passAll(begun);
    } catch (error) {
      void cancel(begun);
      await this.#send({ type: 'error', errorText: errorText(error) });
      await this.#answer.end('failed');
    } finally {
      // Pages wait for the end, also of an answer whose session was closed.
      await this.#hold.release();
      this.#isOver = true;
      this.#notify();
    }
  }

  async #passAll(begun) {
    for (;;) {
      const next = await Promise.race([this.#stopped, begun.then((reader) => reader.read())]);
      if (next.isStopped) {
        // The application may wait for what never ends.
        void cancel(begun);
        // One that is complete has nothing to abort.
        if (!this.#answer.isFinished) await this.#send({ type: 'abort' });
      }
      if (next.isStopped || next.done) break;
      await this.#send(next.value);
    }
    const failure = await this.#answer.end(this.#answer.isFinished ? undefined : 'stopped');
    this.#publish(this.#answer.held());
    if (failure) this.#publish([{ type: 'error', errorText: errorText(failure.error) }]);
  }

  async #send(chunk) {
    this.#publish(await this.#answer.pass(chunk));
    this.#hold.update(this.#answer.id);
  }

  #publish(chunks) {
    this.#chunks.push(...chunks);
    this.#notify();
  }

  #notify() {
    for (const listener of [...this.#listeners]) listener();
  }

  /** Resolves at the next chunk. */
  #next() {
    return new Promise((resolve) => {
      const listener = () => {
        this.#listeners.delete(listener);
        resolve(undefined);
      };
      this.#listeners.add(listener);
    });
  }

  /** Stops the answer if another process has asked for that, as far as the session has been read. */
  checkHold() {
    this.#hold.check();
  }

  /** Stores what has come, with the call. Rejects if that fails. */
  async storeCall(callId) {
    const end = Date.now() + CALL_WAIT_MS;
    while (!this.#answer.hasCall(callId) && !this.#isOver && Date.now() < end) {
      let timer;
      const late = new Promise((resolve) => {
        timer = setTimeout(resolve, CALL_WAIT_MS);
      });
      await Promise.race([this.#next(), late]);
      clearTimeout(timer);
    }
    await this.#answer.storeNow();
  }

  /** A stream for a page. One that connects again gets the whole message: it begins the message anew. `shown`: what the
   *  page that asks has of a message that is continued. @param {{ shown?: any }} [page] @returns {ReadableStream} */
  stream({ shown } = {}) {
    const base = this.#base;
    const known = shown ? callsSince : (_, message) => messageChunks(message);
    const before = base ? known(shown, base) : [];
    let at = 0;
    return new ReadableStream({
      pull: async (controller) => {
        while (at >= this.#chunks.length && !this.#isOver) await this.#next();
        const chunk = this.#chunks[at];
        if (chunk === undefined) {
          controller.close();
          return;
        }
        at += 1;
        controller.enqueue(chunk);
        if (at === 1) for (const stored of before) controller.enqueue(stored);
      },
    });
  }
}
