// What all facades share: a handle of the wasm, calls to it, and an end.

import { RethreadError } from './error.js';

/** An object of the wasm. A facade holds one; after `dispose` it answers that it is closed. */
export class Handle {
  /** The instance that the object lives in. */
  instance;
  #object;
  #isDisposed = false;

  constructor(instance, object) {
    this.instance = instance;
    this.#object = object;
  }

  /** Calls the object, from wherever a page may do so. */
  call(work) {
    this.#check();
    return this.instance.callWithRoom(() => work(this.#object));
  }

  /** Calls the object, as a host does: often, and from a stack that is nearly empty. */
  step(work) {
    this.#check();
    return this.instance.call(() => work(this.#object));
  }

  /** Starts work of the object. `checks` run first; what they throw rejects as well. */
  promise(work, checks) {
    return new Promise((resolve, reject) => {
      this.#check();
      checks?.();
      this.instance.promise(() => work(this.#object)).then(resolve, reject);
    });
  }

  /** Reads a property, which a disposed object still has. */
  read(work) {
    return this.instance.call(() => work(this.#object));
  }

  /** Listens by `subscribe` of the object; gives the function that ends it. `whenStopped` is called when the instance stops. */
  subscribe(listener, whenStopped) {
    const end = this.call((object) => object.subscribe(listener));
    const forget = whenStopped && this.instance.onStop(whenStopped);
    return () => {
      forget?.();
      end();
    };
  }

  get isDisposed() {
    return this.#isDisposed;
  }

  /** Ends the use of this facade. What still runs on the object keeps it: the collector frees it. */
  dispose() {
    this.#isDisposed = true;
  }

  #check() {
    if (this.#isDisposed) throw new RethreadError('closed', 'this object was disposed; take a new one');
  }
}

export const dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
export const asyncDispose = Symbol.asyncDispose ?? Symbol.for('Symbol.asyncDispose');
