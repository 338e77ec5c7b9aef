// r21: writes are coalesced where that is asked for, with a bound on what can be lost, and none lost by default.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';

const provider = { dialect: 'openai-chat', params: { model: 'm' }, url: 'http://localhost/v1/chat/completions' };
const tools = { look: { execute: () => 'seen' } };
const ids = ['a', 'b', 'c', 'd'];
const completion = (message, finish_reason) => ({
  type: 'response',
  status: 200,
  body: JSON.stringify({
    id: 'r',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message, finish_reason }],
  }),
});
const asksFor = completion(
  {
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
  },
  'tool_calls',
);
const says = completion({ role: 'assistant', content: 'done' }, 'stop');

/** A store in memory whose writes are counted, and which can be away. */
async function counted() {
  const database = new DatabaseSync(':memory:');
  const driver = sqlite(database);
  const count = { writes: 0, isAway: false };
  const transaction = (statements) => {
    if (count.isAway) throw Object.assign(new Error('away'), { code: 'busy' });
    if (statements.some(({ sql }) => /^(INSERT|UPDATE|DELETE)/.test(sql))) count.writes += 1;
    return driver.transaction(statements);
  };
  const store = await open({ store: { ...driver, transaction } });
  return {
    store,
    count,
    again: () => open({ store: sqlite(database), leaseMs: 100, now: () => Date.now() + 1_000_000 }),
  };
}

const effect = (run, type) => run.effects().find((open) => open.type === type);

/** Goes on until the tools have run, and the model is called again. */
async function untilSecondCall(run) {
  await run.answer(effect(run, 'call_model').id, asksFor);
  for (const _ of ids) {
    const { id } = effect(run, 'run_tool');
    await run.answer(id, { type: 'started' });
    await run.answer(id, { type: 'tool_result', content: 'seen' });
  }
}

async function turn(session) {
  const run = await session.run({ input: 'q', provider, tools });
  await untilSecondCall(run);
  await run.answer(effect(run, 'call_model').id, says);
  return run.result();
}

test('r21 a turn with four calls is two batches with flushMs, and the same history', async () => {
  const written = {};
  for (const flushMs of [0, 1000]) {
    const { store, count, again } = await counted();
    const session = await store.session('s', { flushMs });
    count.writes = 0;
    const result = await turn(session);
    assert.deepEqual([result.status, result.saved, result.revision], ['finished', true, 1]);
    written[flushMs] = count.writes;
    // What the end of the run acknowledged is stored.
    const reader = await again();
    const { items } = await (await reader.session('s')).messages();
    assert.deepEqual(
      items.map(({ role }) => role),
      ['user', 'assistant', 'assistant'],
    );
    assert.deepEqual(await reader.pendingRuns(), []);
    assert.equal((await reader.invocations({ status: 'ok' })).items.length, 4);
    await reader.close();
    await store.close();
  }
  assert.deepEqual(written, { 0: 11, 1000: 2 });
});

test('r21 r70 runs that let the service drop reasoning are written in as few batches', async () => {
  const claude = {
    dialect: 'anthropic',
    params: { model: 'claude-opus-5-5', max_tokens: 9 },
    url: 'http://localhost/v1/messages',
  };
  const message = (content, stop_reason) => ({
    type: 'response',
    status: 200,
    body: JSON.stringify({ id: 'm', type: 'message', role: 'assistant', model: 'm', stop_reason, content }),
  });
  const { store, count } = await counted();
  const session = await store.session('s', { flushMs: 60_000 });
  for (const [number, unboundReasoning] of ['drop_block', 'drop_block', undefined].entries()) {
    count.writes = 0;
    const run = await session.run({ input: 'q', provider: claude, tools, replay: { unboundReasoning } });
    const { body } = effect(run, 'call_model').request;
    assert.equal(
      JSON.parse(new TextDecoder().decode(body)).thinking.block_binding.prefix_mismatch_behavior,
      'drop_block',
    );
    await run.answer(
      effect(run, 'call_model').id,
      message(
        ids.map((id) => ({ type: 'tool_use', id: `${id}${number}`, name: 'look', input: {} })),
        'tool_use',
      ),
    );
    for (const _ of ids) {
      const { id } = effect(run, 'run_tool');
      await run.answer(id, { type: 'started' });
      await run.answer(id, { type: 'tool_result', content: 'seen' });
    }
    assert.equal(count.writes, 0, `run ${number}`);
    await run.answer(effect(run, 'call_model').id, message([{ type: 'text', text: 'done' }], 'end_turn'));
    assert.equal((await run.result()).status, 'finished');
    assert.equal(count.writes, 2, `run ${number}`);
  }
  await store.close();
});

test('r21 without flushMs everything acknowledged is in the journal; with it, at most the last flushMs are lost', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    for (const [flushMs, passed, expected] of [
      [undefined, 0, 'answered'],
      [500, 0, null],
      [500, 499, null],
      [500, 500, 'answered'],
    ]) {
      const { store, again } = await counted();
      const run = await (await store.session('s', { flushMs })).run({ input: 'q', provider, tools });
      await untilSecondCall(run);
      mock.timers.tick(passed);
      for (let pass = 0; pass < 8; pass += 1) await setImmediate();
      // A kill: nothing more comes of this process.
      const reader = await again();
      const pending = await reader.pendingRuns();
      if (expected === null) assert.deepEqual(pending, [], `after ${passed} ms`);
      else
        assert.deepEqual(
          pending[0].openCalls.map(({ callId, state }) => [callId, state]),
          ids.map((id) => [id, expected]),
          `after ${passed} ms`,
        );
      await reader.close();
      await store.close();
    }
  } finally {
    mock.timers.reset();
  }
});

test('r21 closing the store and disposing the run write the deferred entries', async () => {
  for (const end of ['close', 'dispose']) {
    const { store, again } = await counted();
    const run = await (await store.session('s', { flushMs: 60_000 })).run({ input: 'q', provider, tools });
    await untilSecondCall(run);
    if (end === 'close') await store.close();
    else run[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
    for (let pass = 0; pass < 8; pass += 1) await setImmediate();
    const reader = await again();
    assert.deepEqual(
      (await reader.pendingRuns()).map(({ id, state }) => [id, state]),
      [[run.id, 'interrupted']],
      end,
    );
    await reader.close();
    await store.close();
  }
});

test('r21 a store that is unavailable when deferred writes are due loses none of them', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { store, count, again } = await counted();
    const run = await (await store.session('s', { flushMs: 500 })).run({ input: 'q', provider, tools });
    count.isAway = true;
    mock.timers.tick(500);
    await setImmediate();
    await untilSecondCall(run);
    count.isAway = false;
    mock.timers.tick(500);
    for (let pass = 0; pass < 8; pass += 1) await setImmediate();
    const reader = await again();
    assert.equal((await reader.pendingRuns()).length, 1);
    const resumed = await (await reader.session('s')).resume(run.id, { provider, tools });
    assert.deepEqual(
      resumed.effects().map(({ type }) => type),
      ['call_model'],
      'no tool runs again',
    );
    await reader.close();
    await store.close();
  } finally {
    mock.timers.reset();
  }
});

test('r21 a wrong flushMs is rejected', async () => {
  const store = await open({ store: 'memory' });
  for (const flushMs of [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, '100', 60_001, {}, true]) {
    await assert.rejects(
      store.session('s', { flushMs }),
      (error) => error.code === 'config_invalid' && /flushMs/.test(error.message),
      String(flushMs),
    );
  }
  await store.close();
});

const asking = { look: { ...tools.look, needsApproval: true } };

test('r21 r29 an approval is stored before its tool is offered', async () => {
  const { store, count } = await counted();
  const session = await store.session('s', { flushMs: 60_000 });
  const run = await session.run({ input: 'Go', provider, tools: asking });
  await run.answer(effect(run, 'call_model').id, asksFor);
  assert.equal(run.status, 'waiting_approval');
  for (const { invocationId } of run.approvals()) {
    const before = count.writes;
    await run.approve(invocationId);
    assert.ok(count.writes > before && run.effects().some((open) => open.invocationId === invocationId));
  }
  await store.close();
});

test('r21 r29 a decision that was acknowledged survives a kill, with flushMs too', async () => {
  for (const decision of ['approve', 'reject']) {
    const { store, again } = await counted();
    const session = await store.session('s', { flushMs: 60_000 });
    const run = await session.run({ input: 'Go', provider, tools: asking });
    await run.answer(effect(run, 'call_model').id, asksFor);
    for (const { invocationId } of run.approvals()) await run[decision](invocationId, 'no');
    // The process that decided writes nothing any more.
    const reader = await again();
    const resumed = await (await reader.session('s')).resume(run.id, { provider, tools: asking });
    assert.deepEqual(resumed.approvals(), [], decision);
    assert.deepEqual(
      resumed.effects().map(({ type }) => type),
      decision === 'approve' ? ids.map(() => 'run_tool') : ['call_model'],
    );
    await reader.close();
    await store.close();
  }
});

test('r21 a writer that was faster is found when the deferred writes are due: nothing of the run is lost or doubled', async () => {
  mock.timers.enable({ apis: ['setTimeout'] });
  try {
    const { store, again } = await counted();
    const session = await store.session('s', { flushMs: 500 });
    const run = await session.run({ input: 'q', provider, tools });
    const other = await again();
    await (await other.session('s')).append([{ role: 'user', content: 'Meanwhile' }], 'openai-chat');
    await untilSecondCall(run);
    mock.timers.tick(500);
    for (let pass = 0; pass < 8; pass += 1) await setImmediate();
    await (await other.session('s')).append([{ role: 'user', content: 'And again' }], 'openai-chat');
    await run.answer(effect(run, 'call_model').id, says);
    assert.deepEqual([run.result().status, run.result().saved], ['finished', true]);
    const { items } = await (await (await again()).session('s')).messages();
    assert.deepEqual(
      items.map(({ role, parts }) => parts.find(({ type }) => type === 'text')?.text ?? role),
      ['Meanwhile', 'And again', 'q', 'assistant', 'done'],
    );
    assert.deepEqual(await other.pendingRuns(), []);
    await other.close();
    await store.close();
  } finally {
    mock.timers.reset();
  }
});

test('r21 r29 a run that waits and could not be written stays with its owner, who writes it later', {
  timeout: 20_000,
}, async () => {
  const { store, count, again } = await counted();
  const session = await store.session('s', { flushMs: 5 });
  const run = await session.run({ input: 'Go', provider, tools: asking });
  count.isAway = true;
  await run.answer(effect(run, 'call_model').id, asksFor);
  assert.ok(run.events().some(({ type, error }) => type === 'save_failed' && error.message.includes('away')));
  count.isAway = false;
  const other = await (await again()).session('s');
  let state;
  while (state !== 'waiting_approval') {
    await new Promise((resolve) => {
      setTimeout(resolve, 5);
    });
    state = (await other.pendingRuns())[0]?.state;
  }
  for (const { invocationId } of run.approvals()) await run.reject(invocationId);
  assert.equal(run.status, 'running');
  await store.close();
});
