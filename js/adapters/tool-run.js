// The tools that run in this process: a call that is made twice at once runs its tool once.

/** Of all stores. */
const PROCESS = {};

/** By scope, then by session and stored call: the ids of calls come again. @type {WeakMap<object, Map<string, ToolRun>>} */
const running = new WeakMap();

/** One execution of a tool. */
export class ToolRun {
  #scope = PROCESS;
  #key = '';

  /** @param {any} [input] What the tool gets, if calls of one key may differ in that. */
  constructor(input) {
    this.input = input;
    this.outcome = new Promise((resolve, reject) => {
      this.succeed = resolve;
      this.fail = reject;
    });
    // Nobody may wait for it.
    this.outcome.catch(() => {});
  }

  /** The execution of a call that is under way. `scope`: an open store, if others may have a call of the same key. */
  static under(key, scope = PROCESS) {
    return running.get(scope)?.get(key);
  }

  claim(key, scope = PROCESS) {
    [this.#key, this.#scope] = [key, scope];
    const runs = running.get(scope) ?? new Map();
    running.set(scope, runs.set(key, this));
  }

  release() {
    const runs = running.get(this.#scope);
    if (runs?.get(this.#key) === this) runs.delete(this.#key);
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
