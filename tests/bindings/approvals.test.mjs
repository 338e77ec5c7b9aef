// Approvals through JavaScript: `needsApproval`, `onApproval`, `approve`, `reject`, and who owns a run that waits.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { sleep, until } from './scenarios/kit.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const parameters = { type: 'object', properties: {} };
const pay = (n) => ({ name: 'pay', arguments: { n } });
const THREE = [{ calls: [{ name: 'look', arguments: {} }, pay(1), pay(2)] }, { text: 'All done.' }];
const ONE = [{ calls: [pay(1)] }, { text: 'All done.' }];

async function chat(name, steps = ONE, { needsApproval = true, ...options } = {}) {
  const lane = laneOf(standIn.url, name);
  await lane.script(steps);
  const warnings = [];
  const client = await open({ store: 'memory', onWarning: ({ code, message }) => warnings.push(`${code} ${message}`) });
  const session = await client.session('s', options);
  const ran = [];
  const tools = {
    look: {
      parameters,
      execute: () => {
        ran.push('look');
        return 'seen';
      },
    },
    pay: {
      parameters,
      needsApproval,
      execute: ({ n }) => {
        ran.push(n);
        return `paid ${n}`;
      },
    },
  };
  const request = { provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true }, tools };
  const start = () => session.run({ ...request, input: 'x' });
  return { lane, client, session, request, start, ran, warnings };
}

const parts = (session) =>
  session
    .view()
    .getSnapshot()
    .messages.flatMap((message) => message.parts)
    .filter(({ type }) => type === 'tool');
const shown = (session) =>
  parts(session).map(({ call, awaitingApproval }) => `${call.name} ${call.status}${awaitingApproval ? ' waits' : ''}`);
const results = async (lane) =>
  JSON.parse((await lane.requests()).at(-1).bodyText)
    .messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => content);

test('r29 without `onApproval` the run waits, is decided, and is driven again; all outputs go out together', {
  timeout: 20_000,
}, async () => {
  const { lane, session, start, ran } = await chat('waits', THREE);
  const run = await start();
  const driven = drive(run);
  const events = [];
  for await (const event of driven) events.push(event);
  const result = await driven.result;
  assert.deepEqual(
    [result.status, result.saved, result.error, run.status],
    ['waiting_approval', false, null, 'waiting_approval'],
  );
  const asked = events.filter(({ type }) => type === 'approval_needed');
  assert.deepEqual(
    asked.map(({ name, arguments: args }) => [name, args]),
    [
      ['pay', { n: 1 }],
      ['pay', { n: 2 }],
    ],
  );
  const calls = run.approvals();
  assert.deepEqual(
    calls,
    asked.map(({ callId, invocationId, name, arguments: args }) => ({ callId, invocationId, name, arguments: args })),
  );
  // Whatever is done to the arguments that are shown, the tool gets those that the model wrote.
  calls[1].arguments.n = 1000;
  assert.deepEqual([ran, (await lane.requests()).length], [['look'], 1]);
  assert.deepEqual(shown(session), ['look ok', 'pay pending waits', 'pay pending waits']);
  assert.equal(session.view().getSnapshot().run.status, 'waiting_approval');
  const [pending] = await session.pendingRuns();
  assert.deepEqual(
    [pending.state, ...pending.openCalls.map(({ state }) => state)],
    ['waiting_approval', 'answered', 'awaiting_approval', 'awaiting_approval'],
  );
  const ids = parts(session).map(({ call }) => call.id);
  assert.deepEqual(
    [pending.openCalls, calls].map((list) => list.map(({ invocationId }) => invocationId)),
    [ids, ids.slice(1)],
  );

  await run.approve(calls[1].callId);
  assert.equal(run.status, 'running');
  assert.deepEqual(shown(session), ['look ok', 'pay pending waits', 'pay pending']);
  assert.equal((await drive(run).result).status, 'waiting_approval');
  assert.deepEqual([ran, (await lane.requests()).length], [['look', 2], 1]);
  await run.reject(calls[0].callId, 'too much');
  const end = await drive(run).result;
  assert.deepEqual([end.status, end.turns, end.text, ran], ['finished', 2, 'All done.', ['look', 2]]);
  assert.deepEqual(shown(session), ['look ok', 'pay rejected', 'pay ok']);
  assert.deepEqual(await results(lane), [
    'seen',
    'Error: the call was rejected, so the tool did not run: too much',
    'paid 2',
  ]);
  const { items } = await session.invocations({ status: 'rejected', payload: true });
  assert.deepEqual(
    items.map(({ name, result: { isError } }) => [name, isError]),
    [['pay', true]],
  );
  assert.deepEqual(await session.pendingRuns(), []);
});

test('r29 `onApproval` decides, once for each call, while other tools run', { timeout: 20_000 }, async () => {
  for (const [name, answer, want] of [
    ['yes', true, 'paid 1'],
    ['no', false, 'Error: the call was rejected, so the tool did not run.'],
    ['reason', { reject: 'no "money"' }, 'Error: the call was rejected, so the tool did not run: no "money"'],
  ]) {
    const { lane, start, ran } = await chat(`decides-${name}`, THREE);
    const asked = [];
    const onApproval = async ({ callId, name: tool, arguments: args }) => {
      asked.push([tool, args.n, typeof callId]);
      await sleep(5);
      return args.n === 1 ? answer : true;
    };
    const result = await drive(await start(), { onApproval }).result;
    assert.deepEqual(
      [result.status, asked],
      [
        'finished',
        [
          ['pay', 1, 'string'],
          ['pay', 2, 'string'],
        ],
      ],
      JSON.stringify(result.error),
    );
    assert.deepEqual(await results(lane), ['seen', want, 'paid 2']);
    assert.equal(ran.includes(1), answer === true);
  }
});

test('r29 an `onApproval` that throws or answers something else approves nothing, and the reason is reported', {
  timeout: 20_000,
}, async () => {
  for (const onApproval of [
    () => {
      throw new Error('dialog closed');
    },
    async () => 'yes',
    () => undefined,
    () => ({ reject: 5 }),
    () => 1,
  ]) {
    const { start, ran, session } = await chat('throws');
    const run = await start();
    await assert.rejects(drive(run, { onApproval }).result, { code: 'callback_failed', message: /onApproval/ });
    assert.deepEqual([run.status, ran, shown(session)], ['waiting_approval', [], ['pay pending waits']]);
    assert.equal((await drive(run, { onApproval: () => true }).result).status, 'finished');
    assert.deepEqual(ran, [1]);
  }
});

test('r29 `needsApproval` by a function, which fails safe', { timeout: 20_000 }, async () => {
  for (const [name, needsApproval, waits, warns] of [
    ['no', () => false, false, false],
    [
      'later',
      async ({ n }) => {
        await sleep(5);
        return n > 0;
      },
      true,
      false,
    ],
    [
      'throws',
      () => {
        throw new Error('no rates');
      },
      true,
      true,
    ],
    [
      'rejects',
      async () => {
        throw new Error('no rates');
      },
      true,
      true,
    ],
    ['nothing', () => undefined, true, true],
    ['text', () => 'no', true, true],
  ]) {
    const { start, ran, warnings } = await chat(`function-${name}`, ONE, { needsApproval });
    const run = await start();
    const { status, report } = await drive(run).result;
    assert.deepEqual([status, ran], waits ? ['waiting_approval', []] : ['finished', [1]], name);
    assert.equal(
      warnings.filter((text) => /callback_failed.*needsApproval/.test(text)).length,
      Number(warns),
      warnings.join('\n'),
    );
    assert.equal(report.filter(({ code }) => code === 'callback_failed').length, Number(warns));
    if (!waits) continue;
    await run.approve(run.approvals()[0].callId);
    assert.equal((await drive(run).result).status, 'finished');
    assert.deepEqual(ran, [1]);
  }
});

test('r29 a decision about a call that does not wait is an error, and changes nothing', {
  timeout: 20_000,
}, async () => {
  const { start, ran } = await chat('misuse');
  const run = await start();
  await assert.rejects(run.approve('call_x'), { code: 'not_found' });
  await drive(run).result;
  const [{ callId }] = run.approvals();
  await assert.rejects(run.approve('call_x'), { code: 'not_found' });
  for (const wrong of [undefined, null, 5, {}, '\ud800'])
    await assert.rejects(run.approve(wrong), { code: 'invalid_input' });
  await assert.rejects(run.reject(callId, 5), { code: 'invalid_input' });
  assert.deepEqual([run.status, run.approvals().length], ['waiting_approval', 1]);
  // Two clicks at once: one decides.
  const outcomes = await Promise.allSettled([run.approve(callId), run.reject(callId)]);
  assert.deepEqual(
    outcomes.map(({ status, reason }) => reason?.code ?? status),
    ['fulfilled', 'wrong_state'],
  );
  await assert.rejects(run.approve(callId), { code: 'wrong_state' });
  assert.equal((await drive(run).result).status, 'finished');
  assert.deepEqual(ran, [1]);
  await assert.rejects(run.approve(callId), { code: 'wrong_state' });
  assert.throws(() => drive(run, { onApproval: true }), { code: 'config_invalid' });
});

test('r29 a waiting run has no owner: it is resumed, discarded or cancelled, and another run may begin', {
  timeout: 20_000,
}, async () => {
  const { start, session, request, ran, lane } = await chat('owner');
  const run = await start();
  await drive(run).result;
  const [{ callId }] = run.approvals();
  const resumed = await session.resume(run.id, request);
  assert.deepEqual([resumed.status, resumed.approvals().map((call) => call.callId)], ['waiting_approval', [callId]]);
  // The resumed run is the owner of what follows.
  await assert.rejects(run.approve(callId), { code: 'conflict' });
  assert.deepEqual([run.status, run.result().error.code], ['failed', 'conflict']);
  await resumed.approve(callId);
  await assert.rejects(start(), { code: 'busy' });
  assert.equal((await drive(resumed).result).status, 'finished');
  assert.deepEqual(ran, [1]);

  await lane.script([...ONE, { text: 'Another turn.' }]);
  const waiting = await start();
  await drive(waiting).result;
  await lane.script([{ text: 'Another turn.' }]);
  assert.equal((await drive(await session.run({ ...request, input: 'And?' })).result).status, 'finished');
  await session.discard(waiting.id);
  await assert.rejects(waiting.approve(waiting.approvals()[0].callId), { code: 'not_found' });
  assert.deepEqual([waiting.status, await session.pendingRuns()], ['failed', []]);

  await lane.script(ONE);
  const cancelled = await start();
  await drive(cancelled).result;
  await cancelled.cancel();
  assert.deepEqual(
    [cancelled.status, await session.pendingRuns(), shown(session).at(-1)],
    ['cancelled', [], 'pay pending'],
  );
});

test('r21 r29 what is gathered before the wait is written before the run is released', {
  timeout: 20_000,
}, async () => {
  const { start, session, request, ran } = await chat('flush', THREE, { flushMs: 60_000 });
  const run = await start();
  await drive(run).result;
  const [pending] = await session.pendingRuns();
  assert.deepEqual(
    [pending.state, ...pending.openCalls.map(({ state }) => state)],
    ['waiting_approval', 'answered', 'awaiting_approval', 'awaiting_approval'],
  );
  const resumed = await session.resume(run.id, request);
  for (const { callId } of resumed.approvals()) await resumed.approve(callId);
  assert.equal((await drive(resumed).result).status, 'finished');
  assert.deepEqual(ran, ['look', 1, 2]);
});

test('r29 a signal ends a run whose approval is being asked for', { timeout: 20_000 }, async () => {
  const { start, ran } = await chat('aborts');
  const stop = new AbortController();
  let answer;
  const driven = drive(await start(), {
    signal: stop.signal,
    onApproval: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  });
  await until(() => answer);
  stop.abort();
  assert.equal((await driven.result).status, 'cancelled');
  answer(true);
  await sleep(20);
  assert.deepEqual(ran, []);
});

test('r29 a disposed run that waits can be resumed; a closed store decides nothing', { timeout: 20_000 }, async () => {
  const { start, session, request, client, ran } = await chat('disposed');
  const run = await start();
  await drive(run).result;
  const [{ callId }] = run.approvals();
  run[Symbol.dispose]();
  await assert.rejects(run.approve(callId), { code: 'closed' });
  const resumed = await session.resume(run.id, request);
  await client.close();
  await assert.rejects(resumed.approve(callId), { code: 'closed' });
  assert.deepEqual(ran, []);
});

test('r16 r17 r29 pp_17 pp_18 what the modes store while a run waits, and after', { timeout: 20_000 }, async () => {
  for (const persistence of ['run', 'call', 'result']) {
    const { start, session, ran } = await chat(`mode-${persistence}`, THREE, { persistence });
    const run = await start();
    await drive(run).result;
    assert.equal(session.revision, { run: 0, call: 1, result: 2 }[persistence]);
    assert.deepEqual(shown(session), ['look ok', 'pay pending waits', 'pay pending waits']);
    for (const { callId } of run.approvals()) await run.approve(callId);
    assert.equal((await drive(run).result).status, 'finished');
    assert.deepEqual([session.revision, ran], [{ run: 1, call: 2, result: 5 }[persistence], ['look', 1, 2]]);
    assert.deepEqual(shown(session), ['look ok', 'pay ok', 'pay ok']);
  }
});

test('r29 a cancellation that fails ends the drive with its reason, though a dialog is open', {
  timeout: 20_000,
}, async () => {
  const { start, ran, lane } = await chat('abort-fails');
  const stop = new AbortController();
  let answer;
  const run = await start();
  const driven = drive(run, {
    signal: stop.signal,
    onApproval: () =>
      new Promise((resolve) => {
        answer = resolve;
      }),
  });
  await until(() => answer && run.status === 'waiting_approval');
  await lane.script([{ text: 'Hi.' }]);
  const other = await start();
  stop.abort();
  await assert.rejects(driven.result, { code: 'busy' });
  assert.equal((await drive(other).result).status, 'finished');
  answer(true);
  await sleep(20);
  assert.deepEqual([ran, run.status], [[], 'waiting_approval']);
  let asked = 0;
  const again = drive(run, {
    signal: AbortSignal.abort(),
    onApproval: () => {
      asked += 1;
      return true;
    },
  });
  assert.deepEqual([(await again.result).status, asked, ran], ['cancelled', 0, []]);
});

test('r29 `onApproval` does not get the options; the failure for a call that is decided meanwhile is not reported', {
  timeout: 20_000,
}, async () => {
  const { start, ran } = await chat('failures', THREE);
  const run = await start();
  const receivers = new Set();
  async function onApproval({ invocationId, arguments: { n } }) {
    receivers.add(this);
    if (n === 1) throw new Error('dialog closed');
    await sleep(5);
    await run.approve(invocationId);
    await run.approve(run.approvals()[0].invocationId);
    return true;
  }
  assert.equal((await drive(run, { onApproval }).result).status, 'finished');
  assert.deepEqual([[...receivers], ran.length], [[undefined], 3]);
});

test('r29 closing the store ends the wait of `changed` of a run that waits', { timeout: 20_000 }, async () => {
  const { start, client } = await chat('closes');
  const run = await start();
  await drive(run).result;
  const changed = run.changed();
  await client.close();
  await changed;
  await assert.rejects(run.changed(), { code: 'closed' });
});

test('r28 r29 a run of a snapshot that waits in memory has no lease', { timeout: 20_000 }, async () => {
  const { start, request } = await chat('lease');
  const run = await start();
  await drive(run).result;
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const resumed = await session.resume(run.snapshot(), request);
  resumed[Symbol.dispose]();
  await session.discard(run.id);
  assert.deepEqual(await session.pendingRuns(), []);
});

test('r29 a page decides by the view while the run is driven, and gets its run', { timeout: 20_000 }, async () => {
  const { start, session, ran } = await chat('page', THREE);
  const run = await start();
  const driven = drive(run, { onApproval: 'wait' });
  await until(() => run.status === 'waiting_approval');
  const view = session.view();
  const [one, two] = run.approvals();
  assert.equal(await view.approve(one.invocationId), run);
  assert.equal(await view.reject(two.callId, 'too much'), run);
  const { status } = await driven.result;
  assert.deepEqual([status, ran], ['finished', ['look', 1]]);
  assert.deepEqual(shown(session), ['look ok', 'pay ok', 'pay rejected']);
  await assert.rejects(view.approve(one.invocationId), { code: 'not_found' });
  await assert.rejects(view.resume({}), { code: 'not_found' });
});

test('r29 a view continues the run that waits, and says so before', { timeout: 20_000 }, async () => {
  const { start, session, request, ran } = await chat('page-resumes');
  const run = await start();
  await drive(run).result;
  const [{ callId }] = run.approvals();
  run[Symbol.dispose]();
  const view = session.view();
  await assert.rejects(view.approve(callId), { code: 'wrong_state', message: /request/ });
  const resumed = await view.resume(request);
  assert.equal(await view.approve(callId), resumed);
  assert.equal((await drive(resumed).result).status, 'finished');
  assert.deepEqual(ran, [1]);
});

test('r29 a view resumes the run that it decides about, also when another tab had it last', {
  timeout: 20_000,
}, async () => {
  for (const takeOver of [false, true]) {
    const { start, session, client, request, ran } = await chat(`page-decides-${takeOver}`);
    const run = await start();
    await drive(run).result;
    const [{ callId }] = run.approvals();
    assert.deepEqual(await client.resumeAll(request), { runs: [], queued: [], failed: [] });
    if (takeOver) (await session.resume(run.snapshot(), request))[Symbol.dispose]();
    else run[Symbol.dispose]();
    if (takeOver) await assert.rejects(session.view().reject(callId, 'no'), { code: 'conflict' });
    const decided = await session.view().approve(callId, request);
    assert.notEqual(decided, run);
    assert.equal((await drive(decided).result).status, 'finished');
    assert.deepEqual(ran, [1]);
  }
});
