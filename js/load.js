// Where the wasm comes from, and whether it is there yet. The entries choose; everything else asks.

import load, { initSync } from '../dist/rethread.js';

let fallback = null;
let ready = false;
let loading = null;

export const isReady = () => ready;

/** What `init()` fetches when it is given nothing. */
export function setSource(source) {
  fallback = source;
}

/** For platforms that have the wasm at hand while the module is evaluated. */
export function initNow(module) {
  if (ready) return;
  initSync({ module });
  ready = true;
}

/** Safe to call any number of times; the first call decides the source. */
export async function init(source) {
  if (ready) return;
  loading ??= begin(source ?? fallback);
  try {
    await loading;
  } catch (e) {
    loading = null; // a page that was offline may try again
    throw e;
  }
}

async function begin(source) {
  if (!source) {
    throw Object.assign(new Error('rethread/slim brings no wasm: call init(source) first, with the bytes, a WebAssembly.Module or a URL'), { code: 'not_initialized' });
  }
  await load({ module_or_path: source });
  ready = true;
}
