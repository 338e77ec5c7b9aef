// The base of all facade classes: calls to a wasm object, and disposal.

import { RethreadError } from './error.js';

/** A wasm object with its instance. After `dispose`, calls throw `closed`. */
export class WasmHandle {
  /** The instance that the object lives in. */
  instance;
  #object;
  #isDisposed = false;

  constructor(instance, object) {
    this.instance = instance;
    this.#object = object;
  }

  /** Calls the object from application code, after checking that the stack has room. */
  call(work) {
    this.#check();
    return this.instance.callWithRoom(() => work(this.#object));
  }

  /** Calls the object without the stack check: for hosts, which call often and from a nearly empty stack. */
  step(work) {
    this.#check();
    return this.instance.call(() => work(this.#object));
  }

  /** Starts asynchronous work. `checks` run first; if they throw, the promise rejects. */
  promise(work, checks) {
    return new Promise((resolve, reject) => {
      this.#check();
      checks?.();
      this.instance.promise(() => work(this.#object)).then(resolve, reject);
    });
  }

  /** Reads a property; works after `dispose`. */
  read(work) {
    return this.instance.call(() => work(this.#object));
  }

  /** Subscribes to the object and returns the unsubscribe function. `whenStopped` is called when the instance stops. */
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

  /** Makes later calls throw `closed`. The object itself is freed by garbage collection, after pending work. */
  dispose() {
    this.#isDisposed = true;
  }

  /** Disposes of the object, and frees it as soon as no call of it is on the stack. */
  free() {
    if (this.#isDisposed) return;
    this.dispose();
    queueMicrotask(() => {
      if (!this.instance.stopped) this.instance.call(() => this.#object.free());
    });
  }

  #check() {
    if (this.#isDisposed) throw new RethreadError('closed', 'this object was disposed; get a new one');
  }
}

/** @type {typeof Symbol.dispose} */
export const dispose = Symbol.dispose ?? /** @type {any} */ (Symbol.for('Symbol.dispose'));
/** @type {typeof Symbol.asyncDispose} */
export const asyncDispose = Symbol.asyncDispose ?? /** @type {any} */ (Symbol.for('Symbol.asyncDispose'));
