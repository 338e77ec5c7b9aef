// The pauses of `drive`: a `wait`, and a `call_model` with `notBefore`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dispose } from '../../js/wasm-handle.js';
import { drive } from '../../js/host.js';

/** A run with one effect, which ends when that is answered, or cancelled. */
function runOf(effect) {
  let change;
  const run = {
    status: 'running',
    answers: [],
    isDisposed: false,
    effects: () => [effect],
    takeEffects: () => ({ opened: [], closed: [] }),
    events: () => [],
    changed: () => new Promise((resolve) => { change = resolve; }),
    result: () => ({ status: run.status }),
    end(status) {
      run.status = status;
      change();
    },
    cancel: async () => run.end('cancelled'),
    async answer(_id, answer) {
      run.answers.push(answer);
      run.end('finished');
    },
    [dispose]() {
      run.isDisposed = true;
    },
  };
  return run;
}
const wait = (ms) => ({ type: 'wait', id: 'e1', ms });

test('r60 `longestPauseMs` releases a run whose pause is longer; null is no limit, as undefined is', async () => {
  for (const longestPauseMs of [null, undefined, 1]) {
    const run = runOf(wait(1));
    assert.deepEqual(await drive(run, { longestPauseMs }).result, { status: 'finished' });
    assert.deepEqual([run.answers, run.isDisposed], [[{ type: 'waited' }], false], String(longestPauseMs));
  }
  const run = runOf(wait(1));
  await assert.rejects(drive(run, { longestPauseMs: 0 }).result, { code: 'closed' });
  assert.deepEqual([run.answers, run.isDisposed], [[], true]);
});

test('r60 a run that is cancelled before `notBefore` asks for no headers and sends nothing', async () => {
  const request = { method: 'POST', url: 'http://name.invalid/', headers: {}, body: new Uint8Array() };
  const run = runOf({ type: 'call_model', id: 'e1', dialect: 'openai-chat', request, stream: false, repeatable: true, notBefore: Date.now() + 3_600_000 });
  const calls = [];
  const stop = new AbortController();
  const { result } = drive(run, { signal: stop.signal, headers: () => calls.push('headers'), fetch: () => calls.push('fetch') });
  stop.abort();
  assert.deepEqual(await result, { status: 'cancelled' });
  await new Promise(setImmediate);
  assert.deepEqual([calls, run.answers], [[], []]);
});
