// A host of the world `engine` in JavaScript: it owns the clock, the randomness, the store, the network and the tools. The
// component owns everything else, and is the same in any language.

import { setTimeout as after } from 'node:timers/promises';

const MAX_PAUSE = 60_000;

/** What a call of the component threw: `{code, message}`. */
export const errorOf = (thrown) => thrown?.payload ?? thrown;

/** One open engine. `store.perform(operation)` returns replies, or promises of them; `tools` are functions by name, and
 *  so are `functions`, which the options of commands name. */
export class EngineHost {
  #engine;
  #store;
  #tools;
  #functions;
  #waiting = new Map();
  #toolsToRun = new Map();
  #aborts = new Map();
  #timer;
  /** Hears every event of a run. */
  onEvent = () => {};

  constructor(Engine, settings, { store, tools, functions = {} }) {
    this.#engine = Engine.open(settings, this.#moment());
    this.#store = store;
    this.#tools = tools;
    this.#functions = functions;
  }

  #moment() {
    return { now: BigInt(Date.now()), random: crypto.getRandomValues(new Uint8Array(32)) };
  }

  /** Performs a command: resolves to its outcome, or rejects with its error. */
  command(tag, val) {
    const operation = this.#engine.begin({ tag, val });
    return new Promise((resolve, reject) => {
      this.#waiting.set(operation, { resolve, reject });
      this.#step();
    });
  }

  /** Resolves to the state of a run when it is over, or waits for a person. */
  async finished(run) {
    for (;;) {
      const state = this.#engine.runState(run);
      if (state.status !== 'running') return state;
      await new Promise((resolve) => {
        this.onStep = resolve;
      });
    }
  }

  /** Lets the engine do what it can, and does what it asks for. */
  #step() {
    clearTimeout(this.#timer);
    const progress = this.#engine.step(this.#moment());
    for (const { operation, outcome } of progress.ended) {
      const { resolve, reject } = this.#waiting.get(operation);
      this.#waiting.delete(operation);
      if (outcome.tag === 'ok') resolve(outcome.val.val);
      else reject(Object.assign(new Error(outcome.val.message), { code: outcome.val.code }));
    }
    for (const { run, event } of progress.events) this.onEvent(run, JSON.parse(event));
    for (const id of progress.closed) this.#aborts.get(id)?.abort();
    for (const id of progress.mayRun) this.#runTool(id);
    for (const effect of progress.opened) this.#perform(effect);
    this.onStep?.();
    if (progress.wakeAt !== undefined) {
      const pause = Math.min(Math.max(Number(progress.wakeAt) - Date.now(), 0), MAX_PAUSE);
      this.#timer = setTimeout(() => this.#step(), pause).unref();
    }
  }

  /** Answers an effect, and goes on. */
  #answer(id, tag, val) {
    try {
      this.#engine.answer(id, { tag, val });
    } catch (thrown) {
      // The run was cancelled meanwhile.
      if (errorOf(thrown).code !== 'wrong_state') throw thrown;
    }
    this.#step();
  }

  async #perform({ id, kind: { tag, val } }) {
    switch (tag) {
      case 'store':
        return this.#answer(id, 'store', await this.#store.perform(val));
      case 'ask':
        return this.#callFunction(id, val);
      case 'wait':
        await after(Number(val.ms));
        return this.#answer(id, 'waited');
      case 'run-tool':
        this.#toolsToRun.set(id, val);
        return this.#answer(id, 'started');
      case 'call-model':
        return this.#callModel(id, val);
    }
  }

  /** Calls a function of the application with what is asked: a list, a text of JSON, or the request for a summary. */
  async #callFunction(id, { function: name, question: { val } }) {
    try {
      const returned = await this.#functions[name](val);
      this.#answer(id, 'returned', JSON.stringify(returned ?? null));
    } catch (error) {
      this.#answer(id, 'failed', { code: undefined, message: error.message, sent: undefined });
    }
  }

  /** Sends a request, and passes the response on as it arrives. Credentials would be added here. */
  async #callModel(id, { method, url, headers, body }) {
    const abort = new AbortController();
    this.#aborts.set(id, abort);
    let sent = false;
    try {
      const own = { method: method.toUpperCase(), redirect: 'manual', signal: abort.signal };
      // A `get` has no body.
      const posted = method === 'post' ? { body } : {};
      const response = await fetch(url, { ...own, ...posted, headers: Object.fromEntries(headers) });
      sent = true;
      this.#answer(id, 'response-started', { status: response.status, headers: [...response.headers] });
      for await (const bytes of response.body) {
        this.#engine.feed(id, bytes);
        this.#step();
      }
      this.#answer(id, 'response-end');
    } catch (thrown) {
      const { code, message } = errorOf(thrown);
      this.#answer(id, 'failed', { code, message, sent: sent || undefined });
    } finally {
      this.#aborts.delete(id);
    }
  }

  /** Executes a tool whose start is stored: whatever happens now, it is not started again by accident. */
  async #runTool(id) {
    const { name, arguments: text, ...call } = this.#toolsToRun.get(id);
    this.#toolsToRun.delete(id);
    try {
      const content = await this.#tools[name](JSON.parse(text), call);
      this.#answer(id, 'tool-result', { content: JSON.stringify(content), isError: false });
    } catch (error) {
      this.#answer(id, 'tool-result', { content: JSON.stringify(error.message), isError: true });
    }
  }
}
