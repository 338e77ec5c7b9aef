// `ExternalLoop`: a loop that the application drives and checkpoints here.

import * as check from './arguments.js';

/** @typedef {import('./types.js').ExternalLoop} PublicExternalLoop */

/** @implements {PublicExternalLoop} */
export class ExternalLoop {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  /** @type {PublicExternalLoop['checkpoint']} */
  checkpoint(body, dialect) {
    return this.#handle.promise(
      (loop) => loop.checkpoint(body, dialect),
      () => check.dialect(dialect),
    );
  }

  /** @type {PublicExternalLoop['end']} */
  end() {
    return this.#handle.promise((loop) => loop.end());
  }
}
