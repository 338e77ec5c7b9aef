// The wasm and its glue know each other by short names that every build gives anew.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { initSync } from '../../dist/rethread.js';

const bytes = readFileSync(new URL('../../dist/rethread_bg.wasm', import.meta.url));

test('a wasm of another build does not link, out of whatever cache it came', () => {
  const [{ module }] = WebAssembly.Module.imports(new WebAssembly.Module(bytes));
  assert.equal(module.length, 8);
  const other = Buffer.from(bytes.toString('latin1').replaceAll(module, [...module].reverse().join('')), 'latin1');
  assert.notDeepEqual(other, bytes);
  assert.throws(() => initSync({ module: new WebAssembly.Module(other) }), /Import #0/);
  initSync({ module: new WebAssembly.Module(bytes) });
});
