// `Run`: the machine of one run. It does no I/O: `drive` does what it asks for.

import * as check from './arguments.js';
import { dispose } from './handle.js';

export class Run {
  #handle;
  #tools;

  constructor(handle, tools) {
    this.#handle = handle;
    this.#tools = tools;
  }

  get id() {
    return this.#handle.read((run) => run.id);
  }

  get status() {
    return this.#handle.read((run) => run.status);
  }

  /** As they were given, for the host that executes them. */
  get tools() {
    return this.#tools;
  }

  effects() {
    return this.#handle.call((run) => run.effects());
  }

  events() {
    return this.#handle.call((run) => run.events());
  }

  changed() {
    return this.#handle.promise((run) => run.changed());
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
    return this.#handle.call((run) => run.isErrorResponse(bytes));
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

  [dispose]() {
    this.#handle.dispose();
  }
}
