// The runs that an open store has under way in this page, so that components which resume the same run twice, as
// React's StrictMode makes them do, get one object.

/** @typedef {import('./run.js').Run} Run */

/** Number of sessions at which ended runs are removed. */
const SWEEP_SIZE = 8;

export class OwnRuns {
  /** The runs of each session that have not ended. @type {Map<string, Run[]>} */
  #runs = new Map();
  /** The runs that are being resumed, by session and run. @type {Map<string, Promise<Run>>} */
  #resuming = new Map();
  #sweepAt = SWEEP_SIZE;

  /** @param {number} [leaseMs] `OpenOptions.leaseMs`, for adapters whose loops have holders, too. */
  constructor(leaseMs) {
    this.leaseMs = leaseMs;
  }

  add(session, run) {
    this.#runs.set(session, [...this.of(session), run]);
    if (this.#runs.size >= this.#sweepAt) this.#sweep();
  }

  /** The runs of a session that are under way in this page, or were when they began to wait for an approval. */
  of(session) {
    return (this.#runs.get(session) ?? []).filter((run) => run.isUnfinished);
  }

  /** True if the run is under way in this page, or is being resumed. */
  has(session, id) {
    return Boolean(this.#running(session, id)) || this.#resuming.has(keyOf(session, id));
  }

  #running(session, id) {
    return this.of(session).find((run) => run.id === id && run.status === 'running');
  }

  /** The run, if this page drives it or resumes it already; otherwise what `resume` resolves to. One that waits for an
   *  approval has no holder, so it is resumed anew. */
  resume(session, id, resume) {
    const own = this.#running(session, id);
    if (own) return Promise.resolve(own);
    const key = keyOf(session, id);
    const begun = this.#resuming.get(key);
    if (begun) return begun;
    const resuming = resume().finally(() => this.#resuming.delete(key));
    this.#resuming.set(key, resuming);
    return resuming;
  }

  /** Removes the ended runs of a session, which would keep it in memory. */
  prune(session) {
    const runs = this.of(session);
    if (runs.length > 0) this.#runs.set(session, runs);
    else this.#runs.delete(session);
  }

  /** Removes ended runs. The next time is when there are twice as many sessions as remain. */
  #sweep() {
    for (const session of this.#runs.keys()) this.prune(session);
    this.#sweepAt = Math.max(SWEEP_SIZE, 2 * this.#runs.size);
  }
}

const keyOf = (session, run) => JSON.stringify([session, run]);
