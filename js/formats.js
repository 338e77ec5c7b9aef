// `validate`, `repair`, `heal`, `convert` and `StreamAssembler`, for a given wasm program.

import * as check from './arguments.js';
import { assemblerClass } from './assembler.js';
import { Instance } from './instance.js';

/** @typedef {typeof import('./types.js')} Types */

/** @returns {Pick<Types, 'StreamAssembler' | 'validate' | 'repair' | 'heal' | 'convert'>} */
export function formatsOf(program) {
  let instance = null;

  /** Calls are independent, so a stopped instance is replaced without an error. */
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
        check.wireBody(body);
        check.dialect(dialect);
        return wasm.validate(body, dialect);
      });
    },

    repair(body, dialect, options = {}) {
      return call((wasm) => {
        check.wireBody(body);
        check.dialect(dialect);
        return wasm.repair(body, dialect, options);
      });
    },

    heal(body, dialect, answer, options = {}) {
      return call((wasm) => {
        check.wireBody(body);
        check.dialect(dialect);
        return wasm.heal(body, dialect, answer, options);
      });
    },

    convert(body, from, to, options = {}) {
      return call((wasm) => {
        check.wireBody(body);
        check.dialectName('the source dialect')(from);
        check.dialectName('the target dialect')(to);
        return wasm.convert(body, from, to, options);
      });
    },
  };
}
