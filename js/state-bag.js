// `StateBag`: provider-scoped state of a session.

import * as check from './arguments.js';

export class StateBag {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  get(key) {
    check.stateKey(key);
    return this.#handle.call((bag) => bag.get(key));
  }

  set(key, value) {
    check.stateKey(key);
    this.#handle.call((bag) => bag.set(key, value));
  }

  keys() {
    return this.#handle.call((bag) => bag.keys());
  }
}
