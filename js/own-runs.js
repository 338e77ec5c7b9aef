// The runs that an open store has under way in this page, so that components which resume the same run twice, as
// React's StrictMode makes them do, get one object.

/** @typedef {import('./run.js').Run} Run */

/** Number of sessions with runs from which on those whose runs have ended are dropped. */
const FEW = 64;

export class OwnRuns {
  /** The runs of each session that are under way here or wait for an approval. @type {Map<string, Run[]>} */
  #runs = new Map();
  /** The runs that are being resumed, by session and run. @type {Map<string, Promise<Run>>} */
  #resuming = new Map();
  #sweepAt = FEW;

  add(session, run) {
    this.#runs.set(session, [...this.of(session), run]);
    if (this.#runs.size >= this.#sweepAt) this.#sweep();
  }

  /** The runs of a session that are under way here or wait for an approval. */
  of(session) {
    return (this.#runs.get(session) ?? []).filter((run) => run.isUnderWay);
  }

  /** True if the run is under way here, waits for an approval, or is being resumed. */
  has(session, id) {
    return this.of(session).some((run) => run.id === id) || this.#resuming.has(keyOf(session, id));
  }

  /** The run, if this page drives it or resumes it already; otherwise what `resume` resolves to. One that waits for an
   *  approval has no owner, so it is resumed anew. */
  resume(session, id, resume) {
    const own = this.of(session).find((run) => run.id === id && run.status === 'running');
    if (own) return Promise.resolve(own);
    const key = keyOf(session, id);
    const begun = this.#resuming.get(key);
    if (begun) return begun;
    const resuming = resume().finally(() => this.#resuming.delete(key));
    this.#resuming.set(key, resuming);
    return resuming;
  }

  /** Drops sessions whose runs have ended. The next time is when there are twice as many as remain. */
  #sweep() {
    for (const session of this.#runs.keys()) if (this.of(session).length === 0) this.#runs.delete(session);
    this.#sweepAt = Math.max(FEW, 2 * this.#runs.size);
  }
}

const keyOf = (session, run) => JSON.stringify([session, run]);
