// The tools that run in this process: a call that is made twice at once runs its tool once.

/** By session and stored call: the ids of calls come again. @type {Map<string, ToolRun>} */
const running = new Map();

/** One execution of a tool. */
export class ToolRun {
  #key = '';

  constructor() {
    this.outcome = new Promise((resolve, reject) => {
      this.succeed = resolve;
      this.fail = reject;
    });
    // Nobody may wait for it.
    this.outcome.catch(() => {});
  }

  /** The execution of a call that is under way. */
  static under(key) {
    return running.get(key);
  }

  claim(key) {
    this.#key = key;
    running.set(key, this);
  }

  release() {
    if (running.get(this.#key) === this) running.delete(this.#key);
  }

  /** Performs the work, whose outcome is that of the execution; the claim ends with it.
   *  @template T @param {(own: ToolRun) => Promise<T>} work @returns {Promise<T>} */
  async perform(work) {
    try {
      const output = await work(this);
      this.succeed(output);
      return output;
    } catch (error) {
      this.fail(error);
      throw error;
    } finally {
      this.release();
    }
  }
}
