// One WebAssembly instance and its failure handling.
//
// An exception that leaves the wasm (a trap, an exhausted stack, failed allocation) skips frames with active borrows
// and unfinished changes. Such an instance counts as stopped: it is never called again, and pending promises reject.

import { RethreadError } from './error.js';
import { reasonOf } from './untrusted-value.js';

/** Exports that free memory: no-ops after the instance has stopped. */
const RELEASES = /^__wbg_\w+_free$|^__wbindgen_(?:free|destroy_closure)$/;
/** Exports that the platform calls (promise reactions, events, timers), where nothing catches an exception. */
const CALLBACKS = /^wasm_bindgen__convert__closures/;

/** Arguments that take 128 KB, the stack that a wasm call may need. Passing them first detects an exhausted stack
 *  before the wasm is entered. */
const STACK_ROOM = Array.from({ length: 16_384 }, () => 0);
const takeArguments = () => {};
/** The error if the stack has no room to create a more precise one. */
const NO_ROOM = new RethreadError('internal', 'the WebAssembly instance has stopped: the stack was exhausted');

/** An unused instance with more memory is dropped: wasm memory never shrinks. */
const KEPT_BYTES = 64 * 1024 * 1024;

export class Instance {
  /** The classes and functions of the wasm. */
  exports;
  /** @type {any} */
  memory;
  /** Functions that release platform resources of this instance: locks, channels, connections. */
  releases = new Set();
  /** @type {RethreadError | null} */
  #stopped = null;
  #depth = 0;
  #pending = new Set();
  #cause;
  /** Schedules `#announce` on an empty stack. */
  #announceSoon;
  #listeners = new Set();
  #advice;

  /** Creates an instance that must be started. `advice` is the part of the error message that says what to do after a
   *  stop. */
  constructor(program, advice) {
    this.#advice = advice;
    this.glue = program.createGlue((exports) => this.#guard(exports));
    new Promise((resolve) => {
      this.#announceSoon = resolve;
    }).then(() => this.#announce());
  }

  /** Creates and starts an instance synchronously. */
  static now(program, advice) {
    const created = new Instance(program, advice);
    created.#start(new WebAssembly.Instance(program.module, created.glue.imports));
    return created;
  }

  /** Creates and starts an instance. */
  static async start(program, advice) {
    const created = new Instance(program, advice);
    created.#start(await WebAssembly.instantiate(program.module, created.glue.imports));
    return created;
  }

  #start(instance) {
    this.memory = instance.exports.memory;
    this.exports = this.glue.start(instance);
    this.exports.setErrorClass(RethreadError);
    this.exports.setReleases?.(this.releases);
  }

  /** True if its memory should be freed instead of used again. */
  get isLarge() {
    return this.memory.buffer.byteLength > KEPT_BYTES;
  }

  /** The error that stopped the instance, or null. */
  get stopped() {
    return this.#stopped;
  }

  /** Calls the listener after the instance has stopped; returns the unsubscribe function. */
  onStop(listener) {
    const entry = { listener }; // the same function may be passed twice
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Calls the wasm if the stack has room; otherwise throws a RangeError and the instance survives. Pages may render in
   *  deep recursion. */
  callWithRoom(work) {
    Reflect.apply(takeArguments, undefined, STACK_ROOM);
    return this.call(work);
  }

  /** Calls the wasm. */
  call(work) {
    if (this.#stopped) throw this.#stopped;
    return work();
  }

  /** Starts asynchronous work of the wasm; rejects if it rejects or if the instance stops first. */
  promise(work) {
    return new Promise((resolve, reject) => {
      const settle = (done) => (value) => {
        this.#pending.delete(reject);
        done(value);
      };
      const started = this.call(work);
      this.#pending.add(reject);
      if (this.#stopped) reject(this.#stopped);
      started.then(settle(resolve), settle(reject));
    });
  }

  #guard(exports) {
    const guarded = {};
    for (const [name, value] of Object.entries(exports)) {
      guarded[name] = typeof value === 'function' ? this.#guarded(name, value) : value;
    }
    return guarded;
  }

  #guarded(name, plain) {
    const isRelease = RELEASES.test(name);
    const isCallback = CALLBACKS.test(name);
    return (...args) => {
      const isQuiet = isRelease || (isCallback && this.#depth === 0);
      if (!this.#stopped) {
        this.#depth += 1;
        try {
          const returned = plain(...args);
          // A nested call may have stopped the instance.
          if (!this.#stopped) return returned;
        } catch (error) {
          this.#stop(error);
        } finally {
          this.#depth -= 1;
        }
      }
      if (!isQuiet) throw this.#stopped;
      // The glue reads two words from the return value of a callback: no value, no error.
      return isCallback ? [0, 0] : undefined;
    };
  }

  /** Marks the instance as stopped. The stack may be nearly exhausted, so everything else is left to `#announce`. */
  #stop(cause) {
    if (this.#stopped) return;
    this.#stopped = NO_ROOM;
    this.#cause = cause;
    this.#announceSoon();
    attempt(() => this.#describe());
  }

  #describe() {
    this.#stopped = new RethreadError(
      'internal',
      `the WebAssembly instance has stopped (${reasonOf(this.#cause)}); ${this.#advice}`,
      {},
      { cause: this.#cause },
    );
  }

  /** Rejects pending promises, releases platform resources, and calls the listeners. */
  #announce() {
    if (this.#stopped === NO_ROOM) this.#describe();
    for (const reject of this.#pending) reject(this.#stopped);
    for (const release of this.releases) attempt(release);
    for (const { listener } of this.#listeners) attempt(listener);
    this.#pending.clear();
    this.releases.clear();
    this.#listeners.clear();
  }
}

/** Calls a release or a listener and ignores its failure, so that the others still run. */
function attempt(work) {
  try {
    work();
  } catch {
    // nothing to do
  }
}
