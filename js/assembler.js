// `StreamAssembler`. All assemblers share one wasm instance, separate from that of other calls.

import * as check from './arguments.js';
import { RethreadError } from './error.js';
import { dispose } from './wasm-handle.js';
import { Instance } from './instance.js';

/** @returns {typeof import('./types.js').StreamAssembler} */
export function assemblerClass(program) {
  let shared = null;

  return class StreamAssembler {
    #instance;
    #handle;

    constructor(dialect) {
      check.text('the dialect')(dialect);
      if (!shared || shared.stopped)
        shared = Instance.now(program, 'make a new assembler and read the response from its start');
      this.#instance = shared;
      this.#handle = shared.call(() => new shared.exports.StreamAssembler(dialect));
    }

    push(chunk) {
      check.bytes('the pushed value')(chunk);
      return this.#call((handle) => handle.push(chunk));
    }

    finish() {
      return this.#call((handle) => handle.finish());
    }

    #call(work) {
      if (!this.#handle) throw new RethreadError('closed', 'this assembler was disposed; make a new one');
      return this.#instance.call(() => work(this.#handle));
    }

    [dispose]() {
      this.#handle?.free();
      this.#handle = null;
    }
  };
}
