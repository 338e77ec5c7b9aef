// Asks the application about tool calls that wait for an approval.

import { RethreadError } from '../error.js';
import { memberOf } from '../untrusted-value.js';
import { redactedError } from './redacted-error.js';

/** The questions to `onApproval` of a run. */
export class Approvals {
  #run;
  #options;
  /** The invocation ids of the calls that `onApproval` was called for. */
  #asked = new Set();
  #openQuestions = 0;
  /** Why a decision could not be made or passed on, by invocation id. */
  #failures = new Map();
  #isStopped = false;
  #resolveAnswered = () => {};

  constructor(run, options) {
    this.#run = run;
    this.#options = options;
  }

  /** True while somebody may decide: `onApproval` has not returned for every call, or the page decides. */
  get isAsking() {
    return this.#openQuestions > 0 || this.#options.onApproval === 'wait';
  }

  /** Calls `onApproval`, if there is one, for the calls that wait and were not asked about. */
  ask() {
    if (typeof this.#options.onApproval !== 'function' || this.#options.signal?.aborted) return;
    for (const call of this.#run.approvals()) {
      const { invocationId } = call;
      if (this.#asked.has(invocationId)) continue;
      this.#asked.add(invocationId);
      this.#openQuestions += 1;
      this.#decide(invocationId, call)
        .catch((error) => {
          this.#failures.set(invocationId, error);
        })
        .finally(() => {
          this.#openQuestions -= 1;
          this.wake();
        });
    }
  }

  /** Resolves the promise of `answered`. */
  wake() {
    this.#resolveAnswered();
  }

  /** Ignores answers from now on: nobody would run the tools. */
  stop() {
    this.#isStopped = true;
  }

  /** Resolves when the next question has its answer, or at `wake`. */
  answered() {
    return new Promise((resolve) => {
      this.#resolveAnswered = () => resolve(undefined);
    });
  }

  /** Throws the reason why a call still waits although `onApproval` was called for it. */
  throwFailure() {
    const failed = this.#run.approvals().find(({ invocationId }) => this.#failures.has(invocationId));
    if (failed) throw this.#failures.get(failed.invocationId);
  }

  async #decide(invocationId, call) {
    const answer = await this.#answer(call);
    if (this.#isStopped) return;
    try {
      if (answer.approves) await this.#run.approve(invocationId);
      else await this.#run.reject(invocationId, answer.reason);
    } catch (error) {
      // The call was decided otherwise, or the run is over.
      if (!['wrong_state', 'not_found', 'closed'].includes(memberOf(error, 'code'))) throw error;
    }
  }

  /** Only `true` approves; whatever is no answer leaves the call waiting. */
  async #answer(call) {
    let answer;
    try {
      // Not as a method: the options hold the credentials.
      const { onApproval } = this.#options;
      answer = await onApproval(call);
    } catch (error) {
      throw new RethreadError(
        'callback_failed',
        `\`onApproval\` threw, so the call still waits: ${redactedError(error, this.#options).message}`,
      );
    }
    if (typeof answer === 'boolean') return { approves: answer };
    const reason = memberOf(answer, 'reject');
    if (typeof reason === 'string') return { approves: false, reason };
    throw new RethreadError(
      'callback_failed',
      '`onApproval` must return true, false or { reject: "the reason" }, so the call still waits',
    );
  }
}
