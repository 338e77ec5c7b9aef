// `Run`: the machine of one run. It does no I/O: `drive` does what it asks for.

import * as check from './arguments.js';
import { dispose } from './handle.js';

export class Run {
  #handle;
  /** Kept: whoever opens the store again asks for it. */
  #id;
  #tools;

  constructor(handle, tools) {
    this.#handle = handle;
    this.#id = handle.read((run) => run.id);
    this.#tools = tools;
  }

  get id() {
    return this.#id;
  }

  get status() {
    return this.#handle.instance.stopped ? 'failed' : this.#handle.read((run) => run.status);
  }

  /** As they were given, for the host that executes them. */
  get tools() {
    return this.#tools;
  }

  /** The most bytes that one response may have. */
  get maxResponseBytes() {
    return this.#handle.read((run) => run.maxResponseBytes);
  }

  effects() {
    return this.#handle.step((run) => run.effects());
  }

  /** The effects that were opened, and the ids of those that were closed, since the last call: what `drive` reads. */
  takeEffects() {
    return this.#handle.call((run) => run.takeEffects());
  }

  events() {
    return this.#handle.step((run) => run.events());
  }

  changed() {
    const changed = this.#handle.promise((run) => run.changed());
    // It is taken before the caller looks, who may then see that there is nothing to wait for.
    changed.catch(() => {});
    return changed;
  }

  answer(effect, answer) {
    const checks = () => {
      check.effectId(effect);
      check.effectAnswer(answer);
    };
    return this.#handle.promise((run) => run.answer(effect, answer), checks);
  }

  feed(effect, bytes) {
    const checks = () => {
      check.effectId(effect);
      check.pieceOfAnswer(bytes);
    };
    return this.#handle.promise((run) => run.feed(effect, bytes), checks);
  }

  isErrorResponse(bytes) {
    check.pieceOfAnswer(bytes);
    return this.#handle.step((run) => run.isErrorResponse(bytes));
  }

  cancel() {
    return this.#handle.promise((run) => run.cancel());
  }

  save() {
    return this.#handle.promise((run) => run.save());
  }

  result() {
    return this.#handle.call((run) => run.result());
  }

  /** Gives up a run that is under way, so that it can be resumed. Never throws: `using` calls it. */
  [dispose]() {
    if (this.#handle.isDisposed) return;
    try {
      this.#handle.step((run) => run.giveUp());
    } catch {
      // an instance that has stopped holds no run any more
    }
    this.#handle.dispose();
  }
}
