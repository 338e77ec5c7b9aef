// `SessionView`: a session for rendering. Its methods are bound, because UI stores call them as plain functions.

import * as check from './arguments.js';

/** @typedef {import('./types.js').SessionView} PublicView */

/** @implements {PublicView} */
export class SessionView {
  #handle;
  /** @type {any} */
  #last = null;
  /** @type {any} */
  #lastWhenStopped = null;
  /** The wrapped `run.cancel` by the wasm's own; a wrapped one maps to itself. */
  #cancels = new WeakMap();

  constructor(handle) {
    this.#handle = handle;
  }

  /** @type {PublicView['getSnapshot']} */
  getSnapshot = () => {
    // A page keeps rendering the last snapshot; every other call throws the reason.
    if (this.#last && this.#handle.instance.stopped) return this.#whenStopped();
    this.#last = this.#handle.call((view) => view.getSnapshot());
    if (this.#last.run?.cancel) this.#guardCancel(this.#last.run);
    return this.#last;
  };

  /** Replaces `run.cancel` by one that rejects if the instance stops. An unchanged snapshot is the same object, so its
   *  `run.cancel` may already be wrapped. */
  #guardCancel(run) {
    const cancel = run.cancel;
    if (this.#cancels.get(cancel) === cancel) return;
    if (!this.#cancels.has(cancel)) {
      const guarded = () => this.#handle.promise(() => cancel());
      this.#cancels.set(cancel, guarded).set(guarded, guarded);
    }
    run.cancel = this.#cancels.get(cancel);
  }

  /** @type {PublicView['subscribe']} */
  subscribe = (listener) => {
    check.listener(listener);
    return this.#handle.subscribe(listener, listener);
  };

  /** @type {PublicView['older']} */
  older = () => this.#handle.promise((view) => view.older());

  /** The last snapshot, with a running run shown as failed. */
  #whenStopped() {
    const { code, message } = this.#handle.instance.stopped;
    const { run } = this.#last;
    this.#lastWhenStopped ??=
      run?.status === 'running'
        ? { ...this.#last, run: { id: run.id, status: 'failed', error: { code, message } } }
        : this.#last;
    return this.#lastWhenStopped;
  }
}
