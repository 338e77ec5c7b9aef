// `SessionView`: a session as a page paints it. Its methods are handed to a UI store as bare functions, so they keep their object.

import * as check from './arguments.js';

export class SessionView {
  #handle;
  #last = null;
  #lastOfAll = null;
  /** The function that a snapshot's `run.cancel` becomes, by the one of the wasm. */
  #cancels = new WeakMap();

  constructor(handle) {
    this.#handle = handle;
  }

  getSnapshot = () => {
    // A page goes on painting what it has; every other call says why nothing new comes.
    if (this.#last && this.#handle.instance.stopped) return this.#whenStopped();
    this.#last = this.#handle.call((view) => view.getSnapshot());
    if (this.#last.run?.cancel) this.#guardCancel(this.#last.run);
    return this.#last;
  };

  /** A snapshot is one object until something changes, so its run may be guarded already. */
  #guardCancel(run) {
    const cancel = run.cancel;
    if (this.#cancels.get(cancel) === cancel) return;
    if (!this.#cancels.has(cancel)) {
      const guarded = () => this.#handle.promise(() => cancel());
      this.#cancels.set(cancel, guarded).set(guarded, guarded);
    }
    run.cancel = this.#cancels.get(cancel);
  }

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
