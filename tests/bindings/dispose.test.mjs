// Runs that are given up by disposing of them.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { keyValueService } from './key-value-service.mjs';
import { sleep, until } from './scenarios/kit.mjs';

const dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' }, stream: true };
const chunk = (delta, finish_reason = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
const streamed = (...texts) => new Response(texts.join(''), { headers: { 'content-type': 'text/event-stream' } });
const done = async () =>
  streamed(chunk({ role: 'assistant', content: 'Done.' }), chunk({}, 'stop'), 'data: [DONE]\n\n');

/** A model that says something and then nothing more, until the request is aborted. */
function silent() {
  const state = { asked: 0, aborted: 0, cancelled: 0 };
  const fetch = async (_, { signal }) => {
    state.asked += 1;
    signal.addEventListener('abort', () => {
      state.aborted += 1;
    });
    return new Response(
      new ReadableStream({
        start: (controller) =>
          controller.enqueue(new TextEncoder().encode(chunk({ role: 'assistant', content: 'One ' }))),
        cancel() {
          state.cancelled += 1;
        },
      }),
      { headers: { 'content-type': 'text/event-stream' } },
    );
  };
  return { state, fetch };
}

async function start() {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  return { client, session };
}

for (const persistence of ['run', 'call', 'result']) {
  test(`r18 of an answer that was streaming when its process ended nothing is stored, mode ${persistence}`, async () => {
    const store = keyValueService();
    const client = await open({ store });
    const { state, fetch } = silent();
    const driven = drive(await (await client.session('s')).run({ input: 'first', provider, persistence }), { fetch });
    for await (const { type } of driven) if (type === 'text_delta') break;
    // What the store has if the process is killed now, read when the lease has expired.
    const left = store.entries();
    await client.close();
    await assert.rejects(driven.result, { code: 'closed' });
    const has = (words) => left.some(([, { value }]) => Buffer.from(value).includes(words));
    assert.deepEqual([state.asked, has('first'), has('One ')], [1, true, false]);
    const session = await (await open({ store: keyValueService(left), now: () => Date.now() + 60_000 })).session('s');
    const [run] = await session.pendingRuns();
    assert.deepEqual([run.state, run.text], ['interrupted', '']);
    await session.discard(run.id, { keep: true });
    const { items } = await session.messages();
    assert.deepEqual(
      items.map(({ role, status }) => [role, status]),
      [['user', 'stopped']],
    );
  });
}

describe('r62 a disposed run ends and can be resumed', { timeout: 30_000 }, () => {
  const unhandled = [];
  const note = (error) => unhandled.push(error);
  process.on('unhandledRejection', note);

  test('r62 drive ends, the run can be resumed, and the queued run starts', async () => {
    const { client, session } = await start();
    const { state, fetch } = silent();
    const run = await session.run({ input: 'first', provider });
    const stop = new AbortController();
    const driven = drive(run, { fetch, signal: stop.signal });
    const types = [];
    const watching = (async () => {
      for await (const { type } of driven) types.push(type);
    })();
    const queued = session.run({ input: 'second', provider, whenBusy: 'queue' });
    await until(async () => types.includes('text_delta'));
    let changes = 0;
    session.subscribe(() => {
      changes += 1;
    });
    run[dispose]();
    await assert.rejects(driven.result, { code: 'closed' });
    await watching;
    assert.ok(!types.includes('finished'));
    await until(async () => state.aborted === 1 && state.cancelled === 1);
    stop.abort();
    await sleep(5);
    await assert.rejects(run.cancel(), { code: 'closed' });
    assert.ok(changes > 0, 'who watches hears of it');
    assert.equal((await drive(await queued, { fetch: done }).result).status, 'finished');
    const [pending, ...others] = await session.pendingRuns();
    assert.deepEqual([pending.id, pending.state, others.length], [run.id, 'interrupted', 0]);
    assert.deepEqual(
      (await client.pendingRuns()).map(({ id }) => id),
      [run.id],
    );
    const resumed = await session.resume(run.id, { provider });
    assert.equal((await drive(resumed, { fetch: done }).result).status, 'finished');
    assert.deepEqual(
      (await session.messages()).items.map(({ parts }) => parts[0].text),
      ['second', 'Done.', 'first', 'Done.'],
    );
    assert.deepEqual(await session.pendingRuns(), []);
    await client.close();
  });

  test('r62 before the first effect, during a tool, during a wait, and after the end', async () => {
    const calls = async () =>
      streamed(
        chunk({
          role: 'assistant',
          tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }],
        }),
        chunk({}, 'tool_calls'),
        'data: [DONE]\n\n',
      );
    const busy = async () => new Response('{}', { status: 503 });
    let release;
    const tools = {
      f: {
        parameters: { type: 'object', properties: {} },
        execute: () =>
          new Promise((resolve) => {
            release = resolve;
          }),
      },
    };
    const moments = {
      start: [null, async () => {}],
      tool: [{ fetch: calls }, () => until(async () => release)],
      wait: [{ fetch: busy }, (run) => until(async () => run.effects()[0]?.type === 'wait')],
    };
    for (const [name, [options, moment]] of Object.entries(moments)) {
      const { client, session } = await start();
      const run = await session.run({ input: 'x', provider, tools });
      const driven = options && drive(run, options);
      await moment(run);
      run[dispose]();
      run[dispose]();
      if (driven) await assert.rejects(driven.result, { code: 'closed' }, name);
      release?.('late');
      const [pending] = await session.pendingRuns();
      assert.deepEqual([pending?.id, pending?.state], [run.id, 'interrupted'], name);
      assert.equal(session.view().getSnapshot().run?.status, 'interrupted', name);
      // The tool had started: it is reported as interrupted and does not run again.
      assert.equal(
        (await drive(await session.resume(run.id, { provider, tools }), { fetch: done }).result).status,
        'finished',
        name,
      );
      await client.close();
    }
    const { client, session } = await start();
    let kept;
    {
      const run = await session.run({ input: 'x', provider });
      kept = await drive(run, { fetch: done }).result;
      run[dispose]();
      assert.equal(run.status, 'finished');
    }
    assert.equal(kept.status, 'finished');
    assert.deepEqual(await session.pendingRuns(), []);
    await client.close();
  });

  test('r62 no rejection of a disposed run is left unhandled', async () => {
    await sleep(20);
    process.off('unhandledRejection', note);
    assert.deepEqual(unhandled, []);
  });
});

test('r62 a run can be driven once at a time', async () => {
  const { client, session } = await start();
  const run = await session.run({ input: 'x', provider });
  const first = drive(run, { fetch: done });
  assert.throws(() => drive(run, { fetch: done }), { code: 'wrong_state' });
  assert.equal((await first.result).status, 'finished');
  // One that is over is driven to its end at once.
  assert.equal((await drive(run).result).status, 'finished');
  await client.close();
});

test('r62 drive rejects unknown options instead of ignoring them', async () => {
  const { client, session } = await start();
  const run = await session.run({ input: 'x', provider });
  for (const options of [
    { abortSignal: new AbortController().signal },
    { fetch: 1 },
    { idleTimeoutMs: '1' },
    { toolConcurrency: -1 },
    { signal: true },
  ]) {
    assert.throws(() => drive(run, options), { code: 'config_invalid' }, JSON.stringify(options));
  }
  assert.equal((await drive(run, { fetch: done, signal: undefined, headers: undefined }).result).status, 'finished');
  await client.close();
});
