// Repeats the saves of a run that its store did not take.

import { memberOf } from '../untrusted-value.js';
import { sleep } from './async.js';

export const FIRST_PAUSE_MS = 250;
export const LONGEST_PAUSE_MS = 5000;
const SHORTEST_ATTEMPT_MS = 50;
export const SAVE_TIMEOUT_MS = 60_000;

/** The saves of a run, repeated after growing pauses; the run ends "failed" when `saveTimeoutMs` have passed since the
 *  first failure. */
export class SaveRetries {
  #run;
  #timeoutMs;
  #signal;
  #isRepeating = false;

  constructor(run, { saveTimeoutMs = SAVE_TIMEOUT_MS }, signal) {
    this.#run = run;
    this.#timeoutMs = saveTimeoutMs;
    this.#signal = signal;
  }

  /** Called when a save has failed. */
  begin() {
    if (this.#isRepeating) return;
    this.#isRepeating = true;
    this.#repeat()
      .catch(() => {})
      .finally(() => {
        this.#isRepeating = false;
      });
  }

  async #repeat() {
    const end = performance.now() + this.#timeoutMs;
    const rest = () => Math.max(0, end - performance.now());
    for (let pause = FIRST_PAUSE_MS; rest() > 0; pause = Math.min(2 * pause, LONGEST_PAUSE_MS)) {
      await sleep(Math.min(pause, rest()), this.#signal);
      if (this.#signal.aborted) return;
      // An attempt that is cut off may still be written, so none is made at the very end.
      if (rest() > SHORTEST_ATTEMPT_MS && (await this.#save(rest()))) return;
    }
    if (!this.#signal.aborted) await this.#run.abandonSaves();
  }

  /** Saves again; returns true if nothing is left to save. A store may not answer at all. */
  async #save(ms) {
    const timer = new AbortController();
    const expired = sleep(ms, AbortSignal.any([this.#signal, timer.signal])).then(() => false);
    const saved = this.#run.save().then(
      () => true,
      (error) => memberOf(error, 'code') === 'wrong_state',
    );
    try {
      return await Promise.race([saved, expired]);
    } finally {
      timer.abort();
    }
  }
}
