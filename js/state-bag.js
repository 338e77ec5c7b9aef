// `StateBag`: provider-scoped state of a session.

import * as check from './arguments.js';

/** @typedef {import('./types.js').StateBag} PublicStateBag */

/** @implements {PublicStateBag} */
export class StateBag {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  /** @type {PublicStateBag['get']} */
  get(key) {
    check.stateKey(key);
    return this.#handle.call((bag) => bag.get(key));
  }

  /** @type {PublicStateBag['set']} */
  set(key, value) {
    check.stateKey(key);
    this.#handle.call((bag) => bag.set(key, value));
  }

  /** @type {PublicStateBag['keys']} */
  keys() {
    return this.#handle.call((bag) => bag.keys());
  }
}
