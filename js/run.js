// `Run`: the state machine of one run. It does no I/O; `drive` executes its effects.

import * as check from './arguments.js';
import { memberOf } from './untrusted-value.js';
import { withJsonSchemas } from './tool.js';
import { dispose } from './wasm-handle.js';

/** @typedef {import('./types.js').Run} PublicRun */

const UNFINISHED = new Set(['running', 'waiting_approval']);

/** @implements {PublicRun} */
export class Run {
  #handle;
  /** A copy that remains readable after the instance has stopped, for reopening the store. */
  #id;
  /** The tools of the agent that it began with, and of each that it was handed off to. */
  #toolsOfAgents;

  constructor(handle, toolsOfAgents) {
    this.#handle = handle;
    this.#id = handle.read((run) => run.id);
    this.#toolsOfAgents = toolsOfAgents;
  }

  get id() {
    return this.#id;
  }

  get status() {
    return this.#handle.instance.stopped ? 'failed' : this.#handle.read((run) => run.status);
  }

  /** True while the run goes on or waits for an approval, and was not disposed. */
  get isUnfinished() {
    return !this.#handle.isDisposed && UNFINISHED.has(this.status);
  }

  /** The tools of the present agent as passed by the application, for the host that executes them. */
  get tools() {
    const agent = this.#handle.instance.stopped ? 0 : this.#handle.read((run) => run.handoffCount);
    return this.#toolsOfAgents[agent];
  }

  /** Maximum size of one response in bytes. */
  get maxResponseBytes() {
    return this.#handle.read((run) => run.maxResponseBytes);
  }

  /** @type {PublicRun['effects']} */
  effects() {
    return this.#handle.step((run) => run.effects());
  }

  /**
   * The effects opened and the ids of the effects closed since the last call.
   *
   * @type {PublicRun['takeEffects']}
   */
  takeEffects() {
    return this.#handle.call((run) => run.takeEffects());
  }

  /** @type {PublicRun['events']} */
  events() {
    return this.#handle.step((run) => run.events());
  }

  /** @type {PublicRun['changed']} */
  changed() {
    const changed = this.#handle.promise((run) => run.changed());
    // Callers take the promise before they know whether they will await it, so a rejection must not be unhandled.
    changed.catch(() => {});
    return changed;
  }

  /** @type {PublicRun['answer']} */
  answer(effect, answer) {
    let plain;
    const checks = () => {
      check.effectId(effect);
      plain = check.plainAnswer(answer);
    };
    return this.#handle.promise((run) => run.answer(effect, plain), checks);
  }

  /** @type {PublicRun['feed']} */
  feed(effect, bytes) {
    const checks = () => {
      check.effectId(effect);
      check.responseBytes(bytes);
    };
    return this.#handle.promise((run) => run.feed(effect, bytes), checks);
  }

  /** @type {PublicRun['isErrorResponse']} */
  isErrorResponse(bytes) {
    check.responseBytes(bytes);
    return this.#handle.step((run) => run.isErrorResponse(bytes));
  }

  /** @type {PublicRun['approvals']} */
  approvals() {
    return this.#handle.step((run) => run.approvals());
  }

  /** @type {PublicRun['approve']} */
  approve(id) {
    return this.#handle.promise(
      (run) => run.approve(id),
      () => check.callId(id),
    );
  }

  /** @type {PublicRun['reject']} */
  reject(id, reason) {
    const checks = () => {
      check.callId(id);
      check.rejectionReason(reason);
    };
    return this.#handle.promise((run) => run.reject(id, reason ?? undefined), checks);
  }

  /** @type {PublicRun['handoff']} */
  handoff(to) {
    return new Promise((resolve, reject) => {
      check.handoff(to);
      const stored = this.#handle.call((run) => run.handOff(withJsonSchemas(to)));
      // At once: a run whose tools have all returned calls its next agent as soon as this is stored.
      this.#toolsOfAgents.push(memberOf(to, 'tools'));
      stored.then(resolve, reject);
    });
  }

  /** @type {PublicRun['snapshot']} */
  snapshot() {
    return this.#handle.call((run) => run.snapshot());
  }

  /** @type {PublicRun['cancel']} */
  cancel() {
    return this.#handle.promise((run) => run.cancel());
  }

  /** @type {PublicRun['save']} */
  save() {
    return this.#handle.promise((run) => run.save());
  }

  /** @type {PublicRun['abandonSaves']} */
  abandonSaves() {
    return this.#handle.promise((run) => run.abandonSaves());
  }

  /** @type {PublicRun['result']} */
  result() {
    return this.#handle.call((run) => run.result());
  }

  /** Releases a running run, so that it can be resumed. Never throws, because `using` calls it. */
  [dispose]() {
    if (this.#handle.isDisposed) return;
    try {
      this.#handle.step((run) => run.giveUp());
    } catch {
      // a stopped instance has already released the run
    }
    this.#handle.dispose();
  }
}
