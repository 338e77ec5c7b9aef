// `SessionView`: a session for rendering. Its methods are bound, because UI stores call them as plain functions.

import * as check from './arguments.js';
import { RethreadError } from './error.js';
import { onceAFrame } from './frame.js';
import { memberOf } from './untrusted-value.js';

/** @typedef {import('./types.js').SessionView} PublicView */

/** @implements {PublicView} */
export class SessionView {
  #handle;
  /** @type {any} */
  #last = null;
  /** @type {any} */
  #lastWhenStopped = null;
  /** The wrapped `run.cancel` by the wasm's own; a wrapped one maps to itself. */
  #cancels = new WeakMap();

  #session;
  #runs;
  #isPerFrame;

  /**
   * @param {import('./session.js').Session} session
   * @param {{ runs: import('./own-runs.js').OwnRuns, isPerFrame: boolean }} options
   */
  constructor(handle, session, options) {
    this.#handle = handle;
    this.#session = session;
    this.#runs = options.runs;
    this.#isPerFrame = options.isPerFrame;
  }

  /** @type {PublicView['getSnapshot']} */
  getSnapshot = () => {
    // A page keeps rendering the last snapshot; every other call throws the reason.
    if (this.#last && this.#handle.instance.stopped) return this.#whenStopped();
    this.#last = this.#handle.call((view) => view.getSnapshot());
    if (this.#last.run?.cancel) this.#guardCancel(this.#last.run);
    return this.#last;
  };

  /** Replaces `run.cancel` by one that rejects if the instance stops. An unchanged snapshot is the same object, so its
   *  `run.cancel` may already be wrapped. */
  #guardCancel(run) {
    const cancel = run.cancel;
    if (this.#cancels.get(cancel) === cancel) return;
    if (!this.#cancels.has(cancel)) {
      const guarded = () => this.#handle.promise(() => cancel());
      this.#cancels.set(cancel, guarded).set(guarded, guarded);
    }
    run.cancel = this.#cancels.get(cancel);
  }

  /** @type {PublicView['subscribe']} */
  subscribe = (listener) => {
    check.listener(listener);
    if (!this.#isPerFrame) return this.#handle.subscribe(listener, listener);
    const frames = onceAFrame(listener);
    const end = this.#handle.subscribe(frames.notify, frames.notify);
    return () => {
      frames.stop();
      end();
    };
  };

  /** @type {PublicView['older']} */
  older = () => this.#handle.promise((view) => view.older());

  /** @type {PublicView['approve']} */
  approve = (id, request) => this.#decide(id, request, (run) => run.approve(id));

  /** @type {PublicView['reject']} */
  reject = async (id, reason, request) => {
    check.rejectionReason(reason);
    return this.#decide(id, request, (run) => run.reject(id, reason));
  };

  /** @type {PublicView['resume']} */
  resume = async (request) => {
    check.request(request);
    const pending = await this.#session.pendingRuns();
    const shown = this.getSnapshot().run?.id;
    // A question that waits has none of its turn yet, so a run of another branch comes first.
    const newest = pending.findLast(({ state }) => state !== 'queued') ?? pending.at(-1);
    const found = pending.find(({ id }) => id === shown) ?? newest;
    if (!found) throw new RethreadError('not_found', 'this session has no unfinished run: nothing is to be resumed');
    return this.#session.resume(found.id, request);
  };

  /** Decides about a call that waits, in its run of this page; else in that run as `request` continues it. */
  async #decide(call, request, decide) {
    check.callId(call);
    if (request !== undefined) check.request(request);
    const waits = ({ callId, invocationId }) => callId === call || invocationId === call;
    // If several have a call of this id, the newest one decides.
    const own = this.#runs.of(this.#session.id).findLast((run) => run.approvals().some(waits));
    try {
      if (own) {
        await decide(own);
        return own;
      }
    } catch (error) {
      // Another tab has taken the run over since, and it waits again.
      if (request === undefined || memberOf(error, 'code') !== 'conflict') throw error;
    }
    const run = await this.#continued(waits, request);
    await decide(run);
    return run;
  }

  /** Resumes the run in which a call waits. */
  async #continued(waits, request) {
    const pending = await this.#session.pendingRuns();
    const found = pending.findLast(({ openCalls }) =>
      openCalls.some((open) => open.state === 'awaiting_approval' && waits(open)),
    );
    if (!found) throw new RethreadError('not_found', 'no call of that id waits for an approval in this session');
    if (found.state === 'live')
      throw new RethreadError('busy', 'the run of this call is under way in another tab or process: decide there');
    if (request === undefined)
      throw new RethreadError(
        'wrong_state',
        'the run of this call is not under way in this page: pass the request that resumes it, too',
      );
    return this.#session.resume(found.id, request);
  }

  /** The last snapshot, with a running run shown as failed. */
  #whenStopped() {
    const { code, message } = this.#handle.instance.stopped;
    const { run } = this.#last;
    this.#lastWhenStopped ??=
      run?.status === 'running'
        ? { ...this.#last, run: { id: run.id, status: 'failed', error: { code, message } } }
        : this.#last;
    return this.#lastWhenStopped;
  }
}
