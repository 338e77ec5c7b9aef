// Runs a script in workerd, through miniflare.

import assert from 'node:assert/strict';
import { Miniflare } from 'miniflare';

const MODULES = [
  { type: 'ESModule', include: ['**/*.js', '**/*.mjs'] },
  { type: 'CompiledWasm', include: ['**/*.wasm'] },
];

/** Starts workerd with a script of `root`, below which it can import modules. `options` are miniflare's, such as
 *  bindings. */
export const startWorkerd = (root, scriptPath, options = {}) =>
  new Miniflare({
    cf: false,
    compatibilityDate: '2026-04-01',
    modules: true,
    modulesRoot: root,
    scriptPath,
    modulesRules: MODULES,
    ...options,
  });

/** Sends a request to a path of the worker, and returns the JSON of the response, whose status must be 200. */
export async function askWorkerd(worker, address, init = {}) {
  const response = await worker.dispatchFetch(`http://worker/${address}`, init);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
}
