// `SessionView`: a session as a page paints it. Its methods are handed to a UI store as bare functions, so they keep their object.

import * as check from './arguments.js';

export class SessionView {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  getSnapshot = () => this.#handle.call((view) => view.getSnapshot());

  subscribe = (listener) => {
    check.listener(listener);
    return this.#handle.subscribe(listener);
  };

  older = () => this.#handle.promise((view) => view.older());
}
