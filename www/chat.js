// One conversation of the page: its session, the run that lives here, and runs that were left unfinished.

import { drive } from 'rethread/host';
import { clip } from './dom.js';
import { toolsFor } from './tools.js';

const LOOK_AGAIN_MS = 1500;

export class Chat {
  /** Unfinished runs that do not live here: as `Session.pendingRuns` gives them. */
  pending = [];
  /** What went wrong: `{ text, again? }`. */
  trouble = null;
  #db;
  #session;
  #settings;
  #changed;
  #live = null;
  #taking = null;
  #looking = null;
  #lookAgain = false;
  #timer = 0;
  #misreads = 0;
  #ends;

  static async open(db, id, settings, changed) {
    return new Chat(db, await db.session(id), settings, changed);
  }

  constructor(db, session, settings, changed) {
    this.#db = db;
    this.#session = session;
    this.#settings = settings;
    this.#changed = changed;
    this.view = session.view();
    this.#ends = this.view.subscribe(changed);
  }

  get id() {
    return this.#session.id;
  }

  get title() {
    return this.#session.title;
  }

  /** Whether a run lives in this tab. */
  get running() {
    return this.#live !== null;
  }

  close() {
    clearTimeout(this.#timer);
    this.#ends();
  }

  /** Asks. Gives how it ended: a status of `RunResult`, or "refused" when it did not begin. */
  send(question) {
    return this.#drive(async (request) => {
      // The chat is called by its first question.
      if (!this.title) await this.#db.session(this.id, { title: clip(question.replace(/\s+/g, ' '), 60) });
      return this.#session.run({ ...request, input: question });
    });
  }

  resume(runId) {
    if (this.running) return 'refused';
    // It is no longer left behind, from the moment of the click.
    this.pending = this.pending.filter((run) => run.id !== runId);
    this.#taking = runId;
    return this.#drive((request) => this.#session.resume(runId, request));
  }

  async discard(runId) {
    try {
      await this.#session.discard(runId);
    } catch (error) {
      this.#fail(error);
    }
    await this.look();
  }

  stop() {
    this.#live?.stop.abort();
    return this.#live?.over;
  }

  async #drive(begin) {
    if (this.running) return 'refused';
    const stop = new AbortController();
    const over = this.#follow(begin, stop);
    this.#live = { stop, over };
    this.trouble = null;
    this.#changed();
    try {
      return await over;
    } finally {
      this.#live = null;
      this.#taking = null;
      await this.look();
    }
  }

  async #follow(begin, stop) {
    const { provider, headers, hostile, counter } = this.#settings;
    try {
      const run = await begin({ provider, tools: toolsFor({ hostile, counter }) });
      const driven = drive(run, { headers, signal: stop.signal, idleTimeoutMs: 120_000, toolTimeoutMs: 120_000 });
      for await (const event of driven) {
        if (event.type !== 'save_failed') continue;
        this.trouble = { text: `The answer could not be stored: ${event.error.message}`, again: () => run.save().catch((error) => this.#fail(error)) };
        this.#changed();
      }
      const { status, saved } = await driven.result;
      if (saved) this.trouble = null;
      return status;
    } catch (error) {
      this.#fail(error);
      return 'refused';
    }
  }

  #fail(error) {
    this.trouble = { text: error?.message ?? String(error) };
    this.#changed();
  }

  /** Reads which runs are unfinished, and again for as long as there are any: nobody announces that a tab was closed. */
  async look() {
    if (this.#looking) {
      this.#lookAgain = true;
      return this.#looking;
    }
    this.#looking = this.#read();
    await this.#looking;
    this.#looking = null;
    if (this.#lookAgain) {
      this.#lookAgain = false;
      await this.look();
    }
  }

  async #read() {
    clearTimeout(this.#timer);
    let unread = false;
    try {
      const all = await this.#session.pendingRuns();
      const own = this.running ? [this.#taking, this.view.getSnapshot().run?.id] : [];
      const pending = all.filter((run) => !own.includes(run.id));
      // The same thing read again is no change.
      if (JSON.stringify(pending) !== JSON.stringify(this.pending)) this.pending = pending;
      this.#misreads = 0;
    } catch (error) {
      // A run that ends in another tab while it is read cannot be read; one that never can be is worth a word.
      unread = true;
      this.#misreads += 1;
      if (this.#misreads > 2) this.#fail(error);
    }
    this.#changed();
    if (this.pending.length > 0 || unread) this.#timer = setTimeout(() => this.look(), LOOK_AGAIN_MS);
  }
}
