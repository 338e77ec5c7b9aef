// The pauses of `drive`: a `wait`, and a `call_model` with `notBefore`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { dispose } from '../../js/wasm-handle.js';
import { drive } from '../../js/host.js';
import { open } from 'rethread';

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
    changed: () =>
      new Promise((resolve) => {
        change = resolve;
      }),
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
  const run = runOf({
    type: 'call_model',
    id: 'e1',
    dialect: 'openai-chat',
    request,
    stream: false,
    repeatable: true,
    notBefore: Date.now() + 3_600_000,
  });
  const calls = [];
  const stop = new AbortController();
  const { result } = drive(run, {
    signal: stop.signal,
    headers: () => calls.push('headers'),
    fetch: () => calls.push('fetch'),
  });
  stop.abort();
  assert.deepEqual(await result, { status: 'cancelled' });
  await new Promise(setImmediate);
  assert.deepEqual([calls, run.answers], [[], []]);
});

const request = { provider: { dialect: 'openai-chat', url: 'http://model.example/v1', params: { model: 'm' } } };
const only = (run) => run.effects()[0];

test('r60 the view shows the end of a pause, of a resumed run too', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const view = session.view();
  const run = await session.run({ input: 'Go', ...request });
  await run.answer(only(run).id, { type: 'response', status: 503, headers: { 'retry-after': '60' }, body: '{}' });
  assert.equal(only(run).type, 'wait');
  const { retryAt } = view.getSnapshot().run;
  assert.ok(retryAt > Date.now());
  assert.equal(run.result().status, 'running');
  run[dispose]();
  const resumed = await session.resume(run.id, request);
  assert.equal(only(resumed).type, 'wait');
  assert.equal(view.getSnapshot().run.retryAt, retryAt);
  await resumed.answer(only(resumed).id, { type: 'waited' });
  assert.equal(view.getSnapshot().run.retryAt, undefined);
  await client.close();
});

test('r18 a repeated answer is ignored, one to an effect that was never offered is refused, and the run is unchanged', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const run = await session.run({ input: 'Go', ...request });
  const { id } = only(run);
  const answer = {
    type: 'response',
    status: 200,
    body: JSON.stringify({
      id: 'r',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', content: 'Done.' }, finish_reason: 'stop' }],
    }),
  };
  await assert.rejects(run.answer('e999', answer), { code: 'unknown_effect' });
  assert.deepEqual(
    run.effects().map((effect) => effect.id),
    [id],
  );
  await run.answer(id, answer);
  const result = run.result();
  for (const late of [answer, { type: 'failed', error: { message: 'late' } }]) await run.answer(id, late);
  assert.deepEqual(run.result(), result);
  assert.equal((await session.messages()).items.length, 2);
  await client.close();
});
