// `SessionView`: a session as a page paints it. Its methods are handed to a UI store as bare functions, so they keep their object.

import * as check from './arguments.js';

export class SessionView {
  #handle;
  #last = null;
  #lastOfAll = null;

  constructor(handle) {
    this.#handle = handle;
  }

  getSnapshot = () => {
    // A page goes on painting what it has; every other call says why nothing new comes.
    if (this.#last && this.#handle.instance.stopped) return this.#whenStopped();
    this.#last = this.#handle.call((view) => view.getSnapshot());
    return this.#last;
  };

  subscribe = (listener) => {
    check.listener(listener);
    return this.#handle.subscribe(listener, listener);
  };

  older = () => this.#handle.promise((view) => view.older());

  /** The last snapshot; a run in it has failed with the instance. */
  #whenStopped() {
    const { code, message } = this.#handle.instance.stopped;
    const { run } = this.#last;
    this.#lastOfAll ??= run?.status === 'running' ? { ...this.#last, run: { id: run.id, status: 'failed', error: { code, message } } } : this.#last;
    return this.#lastOfAll;
  }
}
