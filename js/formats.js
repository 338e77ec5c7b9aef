// The functions of bodies: `validate`, `repair`, `convert`. Each call stands for itself, so an instance that stopped is replaced unseen.

import * as check from './arguments.js';
import { Instance } from './instance.js';
import { moduleNow } from './load.js';

/** More memory than this is given back after the call that needed it: wasm memory never shrinks. */
const KEPT_BYTES = 64 * 1024 * 1024;

let instance = null;

function call(work) {
  moduleNow();
  if (!instance || instance.stopped) instance = Instance.now('call again with less');
  try {
    return instance.call(() => work(instance.exports));
  } finally {
    if (instance.stopped || instance.memory.buffer.byteLength > KEPT_BYTES) instance = null;
  }
}

export function validate(body, dialect) {
  return call((wasm) => {
    check.text('the dialect')(dialect);
    return wasm.validate(body, dialect);
  });
}

export function repair(body, dialect, options = {}) {
  return call((wasm) => {
    check.text('the dialect')(dialect);
    check.options(options);
    return wasm.repair(body, dialect, options);
  });
}

export function convert(body, from, to, options = {}) {
  return call((wasm) => {
    check.text('the dialect that the body has')(from);
    check.text('the dialect that it gets')(to);
    check.options(options);
    return wasm.convert(body, from, to, options);
  });
}
