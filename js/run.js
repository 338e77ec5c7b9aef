// `Run`: the machine of one run. It does no I/O: `drive` does what it asks for.

import * as check from './arguments.js';
import { dispose } from './handle.js';

export class Run {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  get id() {
    return this.#handle.read((run) => run.id);
  }

  get status() {
    return this.#handle.read((run) => run.status);
  }

  get tools() {
    return this.#handle.read((run) => run.tools);
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
