// One conversation of the page: its session, and the run that lives here. What is shown of it is the view's alone.

import { drive } from 'rethread/host';
import { clip } from './dom.js';
import { toolsFor } from './tools.js';

export class Chat {
  /** What went wrong: `{ text, again? }`. */
  trouble = null;
  #db;
  #session;
  #settings;
  #changed;
  #live = null;
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
    this.#ends();
  }

  /** Asks. Gives how it ended: a status of `RunResult`, or "refused" when it did not begin. */
  send(question) {
    return this.#drive(async (request) => {
      // The chat is called by its first question.
      if (!this.title) await this.#db.session(this.id, { title: clip(question.replace(/\s+/g, ' '), 60) });
      const left = this.view.getSnapshot().run;
      const run = await this.#session.run({ ...request, input: question });
      // A run that was left behind gives way to the new question, which the view shows in its place.
      if (left && left.status !== 'running') await this.discard(left.id);
      return run;
    });
  }

  resume(runId) {
    if (this.running) return 'refused';
    return this.#drive((request) => this.#session.resume(runId, request));
  }

  async discard(runId) {
    try {
      await this.#session.discard(runId);
    } catch (error) {
      // It went with the run that took its place.
      if (error?.code !== 'not_found') this.#fail(error);
    }
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
      this.#changed();
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
}
