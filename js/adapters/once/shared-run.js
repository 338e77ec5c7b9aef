// A call that is under way in this process, and all who wait for it: each with its own signal.

import { ToolRun } from '../tool-run.js';

/** The calls of `once` alone: a tool of `once` may be wrapped by an adapter that runs it once, too. */
const SCOPE = {};

const isPlain = (value) => [Object.prototype, null].includes(Object.getPrototypeOf(value));

/** A copy of the context that has `signal` in place of `own`. One of a class stays as it is: its methods may need it. */
function contextWith(context, own, signal) {
  if (typeof context !== 'object' || context === null || !isPlain(context)) return context;
  const names = ['signal', 'abortSignal'].filter((name) => context[name] === own);
  if (!names.length) return context;
  const member = { value: signal, enumerable: true, configurable: true, writable: true };
  const members = Object.fromEntries(names.map((name) => [name, member]));
  const descriptors = { ...Object.getOwnPropertyDescriptors(context), ...members };
  return Object.create(Object.getPrototypeOf(context), descriptors);
}

export class SharedRun extends ToolRun {
  #callers = 0;
  #abort = new AbortController();

  /** @param {string} key @returns {SharedRun | undefined} */
  static under(key) {
    return /** @type {SharedRun | undefined} */ (ToolRun.under(key, SCOPE));
  }

  /** @param {string} key */
  claim(key) {
    super.claim(key, SCOPE);
  }

  /** Is aborted when all callers have given up. It has the reason of the last one. */
  get signal() {
    return this.#abort.signal;
  }

  /** The arguments of the call, whose context has the signal of all callers.
   *  @param {any[]} args @param {AbortSignal | undefined} own */
  argumentsOf(args, own) {
    if (!own) return args;
    return args.map((context, at) => (at === 0 ? context : contextWith(context, own, this.signal)));
  }

  /** Waits for the outcome until `signal` is aborted. The last caller waits for what the abort leads to.
   *  @param {AbortSignal} [signal] */
  wait(signal) {
    const isLate = this.signal.aborted;
    if (!isLate) this.#callers += 1;
    return new Promise((resolve, reject) => {
      const giveUp = () => {
        if (!isLate) this.#callers -= 1;
        if (isLate || this.#callers) reject(signal?.reason);
        else this.#abort.abort(signal?.reason);
      };
      signal?.addEventListener('abort', giveUp, { once: true });
      if (signal?.aborted) giveUp();
      const leave = () => signal?.removeEventListener('abort', giveUp);
      this.outcome.then(resolve, reject).then(leave);
    });
  }
}
