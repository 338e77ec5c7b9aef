// Asks the application about tool calls that wait for an approval.

import { RethreadError } from '../error.js';
import { memberOf } from '../foreign.js';
import { redactedError } from './redacted-error.js';

/** The questions to `onApproval` of a run. */
export class Approvals {
  #run;
  #options;
  /** The ids of the calls that `onApproval` was called for. */
  #asked = new Set();
  #openQuestions = 0;
  /** Why a decision could not be made or passed on. */
  #failure = null;
  #wake = () => {};

  constructor(run, options) {
    this.#run = run;
    this.#options = options;
  }

  /** True while `onApproval` has not returned for every call. */
  get isAsking() {
    return this.#openQuestions > 0;
  }

  /** Calls `onApproval`, if there is one, for the calls that wait and were not asked about. */
  ask() {
    if (!this.#options.onApproval) return;
    for (const call of this.#run.approvals()) {
      if (this.#asked.has(call.callId)) continue;
      this.#asked.add(call.callId);
      this.#openQuestions += 1;
      this.#decide(call).catch((error) => { this.#failure ??= error; }).finally(() => {
        this.#openQuestions -= 1;
        this.#wake();
      });
    }
  }

  /** Resolves when the next question has its answer. */
  answered() {
    return new Promise((resolve) => { this.#wake = () => resolve(undefined); });
  }

  /** Throws the reason why a call still waits although `onApproval` was called for it. */
  throwFailure() {
    if (this.#failure) throw this.#failure;
  }

  async #decide(call) {
    const { callId } = call;
    const answer = await this.#answer(call);
    try {
      if (answer.approves) await this.#run.approve(callId);
      else await this.#run.reject(callId, answer.reason);
    } catch (error) {
      // The call was decided otherwise, or the run is over.
      if (!['wrong_state', 'not_found', 'closed'].includes(memberOf(error, 'code'))) throw error;
    }
  }

  /** Only `true` approves; whatever is no answer leaves the call waiting. */
  async #answer(call) {
    let answer;
    try {
      answer = await this.#options.onApproval(call);
    } catch (error) {
      throw new RethreadError('callback_failed', `\`onApproval\` threw, so the call still waits: ${redactedError(error, this.#options).message}`);
    }
    if (typeof answer === 'boolean') return { approves: answer };
    const reason = memberOf(answer, 'reject');
    if (typeof reason === 'string') return { approves: false, reason };
    throw new RethreadError('callback_failed', '`onApproval` must return true, false or { reject: "the reason" }, so the call still waits');
  }
}
