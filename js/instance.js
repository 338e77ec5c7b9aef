// One WebAssembly instance, and what happens when it stops.
//
// An exception that leaves the wasm (a trap, an exhausted stack, memory that is not there) has skipped frames which hold borrows and
// half-done changes. Such an instance is not called again: it has stopped, and who waits for it is told.

import { RethreadError } from './error.js';
import { reasonOf } from './foreign.js';

/** Exports that free something: of an instance that has stopped there is nothing to free. */
const RELEASES = /^__wbg_\w+_free$|^__wbindgen_(?:free|destroy_closure)$/;
/** Exports that the platform calls (promise reactions, events, timers): nobody there takes an exception. */
const CALLBACKS = /^wasm_bindgen__convert__closures/;

/** As many arguments as a call of the wasm may need of the stack, 128 KB: passed first, so that an exhausted stack is found before
 *  the wasm is entered. */
const STACK_ROOM = Array.from({ length: 16_384 }, () => 0);
const takeArguments = () => {};
/** The error of an instance that stopped where the stack had no room for a better one. */
const NO_ROOM = new RethreadError('internal', 'the WebAssembly instance has stopped: the stack was exhausted');

/** An unused instance with more memory than this is given up: wasm memory never shrinks. */
const KEPT_BYTES = 64 * 1024 * 1024;

export class Instance {
  /** The classes and functions of the wasm. */
  exports;
  /** @type {WebAssembly.Memory} */
  memory;
  /** Functions that release what the platform holds for this instance: locks, channels, connections. */
  releases = new Set();
  #stopped = null;
  #depth = 0;
  #pending = new Set();
  #cause;
  /** Starts `#announce`, where the stack is empty. */
  #announceSoon;
  #listeners = new Set();
  #advice;

  /** Without `start` it cannot be used yet. `advice` tells what to do when it has stopped. */
  constructor(program, advice) {
    this.#advice = advice;
    this.glue = program.createGlue((exports) => this.#guard(exports));
    new Promise((resolve) => {
      this.#announceSoon = resolve;
    }).then(() => this.#announce());
  }

  /** Starts an instance at once. */
  static now(program, advice) {
    const own = new Instance(program, advice);
    own.#start(new WebAssembly.Instance(program.module, own.glue.imports));
    return own;
  }

  /** Starts an instance. */
  static async start(program, advice) {
    const own = new Instance(program, advice);
    own.#start(await WebAssembly.instantiate(program.module, own.glue.imports));
    return own;
  }

  #start(instance) {
    this.memory = instance.exports.memory;
    this.exports = this.glue.start(instance);
    this.exports.setErrorClass(RethreadError);
    this.exports.setReleases?.(this.releases);
  }

  /** Whether its memory is better given back than used again. */
  get isLarge() {
    return this.memory.buffer.byteLength > KEPT_BYTES;
  }

  /** The error with which it stopped, or null while it works. */
  get stopped() {
    return this.#stopped;
  }

  /** Calls the listener after it stopped; gives the function that forgets the listener. */
  onStop(listener) {
    const entry = { listener }; // the same function may be given twice
    this.#listeners.add(entry);
    return () => this.#listeners.delete(entry);
  }

  /** Calls the wasm, from a stack that may be nearly exhausted: a page paints deep down. Then it throws a RangeError, and lives on. */
  callWithRoom(work) {
    Reflect.apply(takeArguments, undefined, STACK_ROOM);
    return this.call(work);
  }

  /** Calls the wasm. */
  call(work) {
    if (this.#stopped) throw this.#stopped;
    return work();
  }

  /** Starts work of the wasm; rejects when that does, or when the instance stops before. */
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
          const given = plain(...args);
          // It may have stopped in a call from inside this one.
          if (!this.#stopped) return given;
        } catch (error) {
          this.#stop(error);
        } finally {
          this.#depth -= 1;
        }
      }
      if (!isQuiet) throw this.#stopped;
      // What the glue reads from the answer of a callback: no value, no error.
      return isCallback ? [0, 0] : undefined;
    };
  }

  /** Notes that it stopped. There may be hardly any stack left, so all that can wait is left to `#announce`. */
  #stop(cause) {
    if (this.#stopped) return;
    this.#stopped = NO_ROOM;
    this.#cause = cause;
    this.#announceSoon();
    attempt(() => this.#describe());
  }

  #describe() {
    this.#stopped = new RethreadError('internal', `the WebAssembly instance has stopped (${reasonOf(this.#cause)}); ${this.#advice}`, {}, { cause: this.#cause });
  }

  /** Rejects what waits, releases what the platform holds, tells who listens. */
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

/** Calls a function whose failure is not ours to carry on: what is closed already needs no release, a listener's failure is its own. */
function attempt(work) {
  try {
    work();
  } catch {
    // nothing to do
  }
}
