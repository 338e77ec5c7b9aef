// What each wasm program contains, and what it does not.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';

const read = (name) => readFileSync(new URL(`../../dist/${name}_bg.wasm`, import.meta.url));
const programs = Object.fromEntries(['rethread', 'stores', 'formats', 'testing'].map((name) => [name, read(name)]));
/** The names of the programs that contain a text. */
const having = (text) => Object.keys(programs).filter((name) => programs[name].includes(text));
/** The names of the programs whose glue has an import. */
const importing = (pattern) =>
  Object.keys(programs).filter((name) =>
    WebAssembly.Module.imports(new WebAssembly.Module(programs[name])).some((entry) => pattern.test(entry.name)),
  );

test('r50 SQL and key-value stores are in the second program alone, and in the one that tests stores', () => {
  for (const text of ['CREATE TABLE ', 'pg_notify', 'OOM command not allowed', 'its driver has no `commit`'])
    assert.deepEqual(having(text), ['stores', 'testing'], text);
});

test('r50 the second program has no sessions, dialects and IndexedDB', () => {
  for (const text of ['dangling_call', 'anthropic', 'maxTurns'])
    assert.ok(!having(text).includes('stores') && having(text).includes('rethread'), text);
  assert.deepEqual(importing(/Idb|objectStore/i), ['rethread']);
});

test('r50 the first program has the other stores: IndexedDB, and those of applications', () => {
  assert.deepEqual(having('the custom store was closed'), ['rethread', 'testing']);
});

test('r50 the second program is small', () => {
  const share = programs.stores.length / programs.rethread.length;
  assert.ok(share < 0.3, `it has ${Math.round(100 * share)} % of the first one`);
});
