// The functions of bodies: `validate`, `repair`, `convert`, and the stream assembler, in a program of the caller's choice.

import * as check from './arguments.js';
import { assemblerClass } from './assembler.js';
import { Instance } from './instance.js';

export function formatsOf(program) {
  let instance = null;

  /** Each call stands for itself, so an instance that stopped is replaced unseen. */
  function call(work) {
    if (!instance || instance.stopped) instance = Instance.now(program, 'call again with less');
    try {
      return instance.call(() => work(instance.exports));
    } finally {
      if (instance.stopped || instance.isLarge) instance = null;
    }
  }

  return {
    StreamAssembler: assemblerClass(program),

    validate(body, dialect) {
      return call((wasm) => {
        check.text('the dialect')(dialect);
        return wasm.validate(body, dialect);
      });
    },

    repair(body, dialect, options = {}) {
      return call((wasm) => {
        check.text('the dialect')(dialect);
        check.options(options);
        return wasm.repair(body, dialect, options);
      });
    },

    convert(body, from, to, options = {}) {
      return call((wasm) => {
        check.text('the dialect that the body has')(from);
        check.text('the dialect that it gets')(to);
        check.options(options);
        return wasm.convert(body, from, to, options);
      });
    },
  };
}
