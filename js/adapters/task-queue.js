// A queue of tasks that must not overlap, because each decides by what a session has and then changes it.

export class TaskQueue {
  #last = Promise.resolve();

  /** Runs a task when earlier ones have ended, whether or not they failed.
   *  @template T @param {() => Promise<T>} task @returns {Promise<T>} */
  queued(task) {
    const done = this.#last.then(task);
    this.#last = done.then(
      () => {},
      () => {},
    );
    return done;
  }
}
