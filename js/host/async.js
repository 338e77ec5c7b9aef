// Timeouts, queues and limits of asynchronous work.

/** The longest delay of a timer in milliseconds, 24.8 days: one with a larger delay fires immediately. */
const LONGEST_DELAY = 2 ** 31 - 1;

/** Resolves after `ms` milliseconds, or when the signal aborts. */
export async function sleep(ms, signal) {
  for (let rest = ms; rest > 0 && !signal.aborted; rest -= LONGEST_DELAY)
    await pause(Math.min(rest, LONGEST_DELAY), signal);
}

function pause(ms, signal) {
  return /** @type {Promise<void>} */ (
    new Promise((resolve) => {
      const end = () => {
        clearTimeout(timer);
        // The signal may live as long as the page.
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = setTimeout(end, ms);
      signal.addEventListener('abort', end);
    })
  );
}

/** Aborts work of which a single step takes longer than `ms`; without a positive, finite `ms`, only when `outerSignal`
 *  aborts. */
export class IdleTimeout {
  /** Aborts with `outerSignal` and after a timeout; the reason is then a `TimeoutError`. */
  signal;
  outerSignal;
  #ms;
  #controller = new AbortController();

  constructor(ms, outerSignal) {
    this.#ms = ms;
    this.outerSignal = outerSignal;
    this.signal = AbortSignal.any([outerSignal, this.#controller.signal]);
  }

  /** Returns the outcome of the step, or rejects with the reason of `signal` if that aborts first. */
  limit(step) {
    const { signal } = this;
    return new Promise((resolve, reject) => {
      let timer;
      const fail = () => {
        clearTimeout(timer);
        reject(signal.reason ?? new DOMException('aborted', 'AbortError'));
      };
      if (signal.aborted) {
        Promise.resolve(step).catch(() => {}); // it fails as well, and nothing awaits it
        return fail();
      }
      signal.addEventListener('abort', fail, { once: true });
      if (this.#ms > 0 && this.#ms !== Infinity)
        timer = setTimeout(() => this.#expire(), Math.min(this.#ms, LONGEST_DELAY));
      Promise.resolve(step)
        .then(resolve, reject)
        .finally(() => {
          clearTimeout(timer);
          signal.removeEventListener('abort', fail);
        });
    });
  }

  /** True if a step took too long. A step of the application may fail with a `TimeoutError` of its own. */
  get hasExpired() {
    return this.#controller.signal.aborted;
  }

  #expire() {
    this.#controller.abort(new DOMException(`nothing was received for ${this.#ms} ms`, 'TimeoutError'));
  }
}

/** A FIFO queue. `Array.prototype.shift` moves all remaining elements. */
export function queue() {
  let items = [];
  let next = 0;
  return {
    push: (item) => items.push(item),
    /** The newest item, or undefined. */
    last: () => (next < items.length ? items.at(-1) : undefined),
    take() {
      if (next === items.length) return undefined;
      const item = items[next];
      items[next] = undefined;
      next += 1;
      if (next * 2 > items.length) {
        items = items.slice(next);
        next = 0;
      }
      return item;
    },
  };
}

/** Returns a function that calls functions, at most `limit` of them at the same time. */
export function concurrencyLimit(limit) {
  let free = limit;
  const waiting = queue();
  return async (start) => {
    // A free place is passed to the first in the queue; otherwise a later call could take it as well.
    if (free > 0) free -= 1;
    else await new Promise((resolve) => waiting.push(resolve));
    try {
      return await start();
    } finally {
      const next = waiting.take();
      if (next) next();
      else free += 1;
    }
  };
}
