// R75 through JavaScript: a call is answered from any process at any time, and `persist` is asked what is stored of the
// answer.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open, pending } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { keyValueService } from './key-value-service.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const parameters = { type: 'object', properties: {} };
const exporting = (more = {}) => ({ export_rows: { parameters, async: true, execute: () => pending, ...more } });
const CALLS = { text: 'Starting.', calls: [{ name: 'export_rows', arguments: { secret: 'raw-arguments' } }] };
const result = (content) => ({ type: 'tool_result', content });
const parts = (session) =>
  session
    .view()
    .getSnapshot()
    .messages.flatMap((message) => message.parts)
    .filter(({ type }) => type === 'tool');
const statuses = (session) => parts(session).map(({ call, awaitingResult }) => [call.status, awaitingResult]);

let lanes = 0;
async function start(script, store = keyValueService()) {
  const lane = laneOf(standIn.url, `answers-${(lanes += 1)}`);
  await lane.script(script);
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: false };
  const client = await open({ store });
  return { lane, provider, store, client, session: await client.session('s') };
}
const elsewhere = async (store) => (await open({ store })).session('s');

/** Sends the request that a run offers, and answers it. */
async function callModel(run) {
  const [{ id, request }] = run.effects();
  const response = await fetch(request.url, { ...request, body: request.body });
  await run.answer(id, { type: 'response', status: response.status, body: await response.text() });
}
async function deferCall(run) {
  while (!run.effects().some(({ type }) => type === 'run_tool')) await run.changed();
  const tool = run.effects().find(({ type }) => type === 'run_tool');
  await run.answer(tool.id, { type: 'started' });
  await run.answer(tool.id, { type: 'pending' });
  return tool;
}

for (const where of ['here', 'in another process']) {
  test(`r75 a call of a run that is under way is answered ${where}`, async () => {
    const { lane, provider, store, session } = await start([CALLS, { text: 'Seven.' }, { text: 'Welcome.' }]);
    const run = await session.run({ input: 'Export', provider, tools: exporting() });
    await callModel(run);
    const { invocationId, callId } = await deferCall(run);
    while (!run.effects().some(({ type }) => type === 'call_model')) await run.changed();
    const answerer = where === 'here' ? session : await elsewhere(store);
    assert.deepEqual(statuses(session), [['pending', true]]);
    const revision = session.revision;
    await answerer.answer(callId, result({ rows: 7001 }));
    await assert.rejects(answerer.answer(invocationId, result('again')), { code: 'wrong_state' });
    await assert.rejects(answerer.answer('nobody', result('x')), { code: 'not_found' });
    await session.refresh();
    assert.ok(session.revision > revision);
    assert.deepEqual(statuses(session), [['ok', false]], 'the view shows it');
    assert.equal((await session.messages()).items.length, 0, 'the turn is stored at its end');
    // It came after the request that is offered; the next one has it.
    await callModel(run);
    while (run.status === 'running') await run.changed();
    assert.deepEqual([run.status, run.result().openCalls], ['finished', []]);
    assert.equal((await session.invocations({ payload: true })).items[0].result.content.rows, 7001);
    await drive(await session.run({ input: 'And now?', provider, tools: exporting() })).result;
    const bodies = (await lane.requests()).map(({ body }) => JSON.stringify(body.messages));
    assert.deepEqual(
      bodies.map((body) => body.split('7001').length - 1),
      [0, 0, 1],
    );
  });
}

test('r75 r21 an answer with `expectedRevision` is stored although flushMs had deferred its run', async () => {
  const round = { calls: [...CALLS.calls, { name: 'look', arguments: {} }] };
  const { provider, client, store } = await start([round, { text: 'Seven.' }]);
  const session = await client.session('s', { flushMs: 60_000 });
  const tools = { ...exporting(), look: { parameters, execute: () => 'seen' } };
  const run = await session.run({ input: 'Export', provider, tools });
  await callModel(run);
  const { callId } = await deferCall(run);
  // What comes after the deferred call is not stored yet.
  const look = run.effects().find(({ type, name }) => type === 'run_tool' && name === 'look');
  await run.answer(look.id, { type: 'started' });
  await run.answer(look.id, result('seen'));
  // The calls of the run as another process sees them.
  const seen = async () => {
    const [found] = await (await (await open({ store })).session('s')).pendingRuns();
    return found?.openCalls.map(({ name, state }) => `${name}: ${state}`);
  };
  assert.equal(await seen(), undefined, 'the whole run is deferred');
  await session.answer(callId, result('row-7001'), { expectedRevision: session.revision });
  assert.deepEqual(await seen(), ['export_rows: answered', 'look: answered']);
  await client.close();
});

test('r75 a call of an interrupted run is answered, shown, and sent when the run is resumed', async () => {
  const { lane, provider, store, client, session } = await start([CALLS, { text: 'Seven.' }]);
  const run = await session.run({ input: 'Export', provider, tools: exporting() });
  await callModel(run);
  const { invocationId } = await deferCall(run);
  await client.close();
  const second = await elsewhere(store);
  const [
    {
      id,
      openCalls: [open],
    },
  ] = await second.pendingRuns();
  assert.equal(open.state, 'awaiting_result');
  await second.answer(invocationId, result('row-7001'));
  assert.equal((await second.pendingRuns())[0].openCalls[0].state, 'answered');
  await second.refresh();
  assert.deepEqual(statuses(second), [['ok', false]]);
  assert.equal((await drive(await second.resume(id, { provider, tools: exporting() })).result).text, 'Seven.');
  assert.equal(JSON.stringify((await lane.requests()).at(-1).body).split('row-7001').length, 2);
});

for (const persistence of ['run', 'call', 'result']) {
  test(`r75 a call that waits for an approval, or has its result, takes no other, mode ${persistence}`, async () => {
    const round = {
      calls: [
        { name: 'look', arguments: {} },
        { name: 'pay', arguments: {} },
      ],
    };
    const { provider, session, lane } = await start([round, { text: 'Paid.' }]);
    const tools = {
      look: { parameters, execute: () => 'looked-up' },
      pay: { parameters, needsApproval: true, execute: () => 'receipt-42' },
    };
    const run = await session.run({ input: 'Pay', provider, tools, persistence });
    await drive(run).result;
    const [{ openCalls }] = await session.pendingRuns();
    for (const call of openCalls)
      await assert.rejects(session.answer(call.invocationId, result('other')), { code: 'wrong_state' }, call.name);
    await run.approve(run.approvals()[0].invocationId);
    assert.equal((await drive(run).result).status, 'finished');
    const sent = JSON.stringify((await lane.requests()).at(-1).body);
    assert.ok(sent.includes('receipt-42') && !sent.includes('other'), sent);
    assert.deepEqual(
      parts(session).map(({ call }) => call.result.content),
      ['looked-up', 'receipt-42'],
    );
  });
}

test('r75 a promise is no content of a result: neither of a later answer nor of an effect', async () => {
  const { provider, session } = await start([CALLS, { text: 'Done.' }]);
  const run = await session.run({ input: 'Export', provider, tools: exporting() });
  await callModel(run);
  while (!run.effects().some(({ type }) => type === 'run_tool')) await run.changed();
  const tool = run.effects().find(({ type }) => type === 'run_tool');
  await run.answer(tool.id, { type: 'started' });
  const refused = { code: 'invalid_input', message: /await/ };
  await assert.rejects(async () => run.answer(tool.id, result(Promise.resolve(1))), refused);
  await run.answer(tool.id, { type: 'pending' });
  await assert.rejects(session.answer(tool.invocationId, result(Promise.resolve(1))), refused);
  await session.answer(tool.invocationId, result(1));
});

test('r75 a call that the run itself waits for is answered by its effect', async () => {
  const { provider, session } = await start([CALLS, { text: 'Done.' }]);
  const run = await session.run({ input: 'Export', provider, tools: { export_rows: { parameters } } });
  await callModel(run);
  const tool = run.effects().find(({ type }) => type === 'run_tool');
  await assert.rejects(session.answer(tool.invocationId, result(1)), { code: 'wrong_state' });
  await run.answer(tool.id, { type: 'started' });
  await assert.rejects(session.answer(tool.invocationId, result(1)), { code: 'wrong_state', message: /Run\.answer/ });
});

test('r75 the result of a call that was reported as interrupted takes its place, and a run without input has nothing to answer', async () => {
  const { lane, provider, store, client, session } = await start([
    CALLS,
    { text: 'It was interrupted.' },
    { text: 'Seven.' },
  ]);
  const tools = { export_rows: { parameters } };
  const run = await session.run({ input: 'Export', provider, tools });
  await callModel(run);
  const tool = run.effects().find(({ type }) => type === 'run_tool');
  await run.answer(tool.id, { type: 'started' });
  await client.close();
  const second = await elsewhere(store);
  assert.equal((await drive(await second.resume(run.id, { provider, tools })).result).text, 'It was interrupted.');
  await second.answer(tool.invocationId, result('row-7001'));
  await assert.rejects(second.run({ provider, tools }), { code: 'invalid_input', message: /no message to answer/ });
  await drive(await second.run({ input: 'The result is here.', provider, tools })).result;
  const { messages } = (await lane.requests()).at(-1).body;
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'tool', 'assistant', 'user'],
  );
  assert.equal(messages[2].content, 'row-7001');
});

for (const persistence of ['run', 'call', 'result']) {
  test(`r75 a tool that a run in another process waits for is answered when that is dead, mode ${persistence}`, async () => {
    const { provider, store, client, session } = await start([CALLS, { text: 'Done.' }]);
    const tools = { export_rows: { parameters } };
    const run = await session.run({ input: 'Export', provider, tools, persistence });
    await callModel(run);
    const tool = run.effects().find(({ type }) => type === 'run_tool');
    await run.answer(tool.id, { type: 'started' });
    const second = await elsewhere(store);
    for (const id of [tool.invocationId, tool.callId]) {
      await assert.rejects(second.answer(id, result('outside')), {
        code: 'wrong_state',
        message: /another tab or process/,
      });
    }
    await client.close();
    await second.answer(tool.invocationId, result('outside'));
    const [{ id, openCalls }] = await second.pendingRuns();
    assert.equal(openCalls[0].state, 'answered');
    assert.equal((await drive(await second.resume(id, { provider, tools })).result).text, 'Done.');
    assert.deepEqual(
      (await second.invocations({ payload: true })).items.map((row) => row.result.content),
      ['outside'],
    );
  });
}

test('r75 a call of a run that was cancelled takes no answer: the run has ended', async () => {
  const { provider, store, session } = await start([CALLS, { text: 'Seven.' }]);
  const run = await session.run({ input: 'Export', provider, tools: exporting(), onStop: 'discard' });
  await callModel(run);
  const { invocationId } = await deferCall(run);
  await run.cancel();
  for (const answerer of [session, await elsewhere(store)]) {
    await assert.rejects(answerer.answer(invocationId, result('row-7001')), { code: 'not_found' });
  }
  assert.deepEqual((await session.messages()).items, []);
});

test('r75 a result whose run is discarded is set aside with a warning, and its call takes no other', async () => {
  const { provider, store, client, session } = await start([CALLS, { text: 'Seven.' }]);
  const run = await session.run({ input: 'Export', provider, tools: exporting() });
  await callModel(run);
  const { invocationId } = await deferCall(run);
  await client.close();
  const codes = [];
  const second = await (await open({ store, onWarning: ({ code }) => codes.push(code) })).session('s');
  await second.answer(invocationId, result('row-7001'));
  const [{ id }] = await second.pendingRuns();
  await second.discard(id);
  assert.deepEqual(codes, ['orphan_result']);
  await assert.rejects(second.answer(invocationId, result('again')), { code: 'not_found' });
  assert.deepEqual([(await second.messages()).items, await second.pendingRuns()], [[], []]);
});

test('r12 r75 a copied open call keeps that persist decides about its result', async () => {
  const { provider, session } = await start([CALLS, { text: 'It runs.' }]);
  const tools = exporting({ persist: (invocation, given) => (given === undefined ? {} : { result: 'masked' }) });
  const {
    openCalls: [call],
  } = await drive(await session.run({ input: 'Export', provider, tools })).result;
  const copy = await (await open({ store: 'memory' })).session('copy');
  await copy.append(await session.messages());
  await assert.rejects(copy.answer(call.callId, result('raw-result')), { code: 'config_invalid', message: /persist/ });
  await copy.answer(call.callId, result('raw-result'), { tools });
  const [row] = (await copy.invocations({ payload: true })).items;
  assert.deepEqual([row.result.content, row.redacted], ['masked', true]);
});

const REPLIES = {
  replaced: [
    (invocation, given) => (given === undefined ? { arguments: { secret: '-' } } : { result: `kept ${given.length}` }),
    'kept 10',
  ],
  withheld: [(invocation, given) => (given === undefined ? { arguments: { secret: '-' } } : null), null],
  failed: [
    (invocation, given) => {
      if (given !== undefined) throw new Error('no');
      return { arguments: { secret: '-' } };
    },
    null,
  ],
  'the result alone': [(invocation, given) => (given === undefined ? {} : { result: 'kept it' }), 'kept it'],
  'not the result': [(invocation, given) => (given === undefined ? {} : null), null],
  'the same': [(invocation, given) => (given === undefined ? {} : { result: given }), 'raw-result'],
  unchanged: [() => ({}), 'raw-result'],
};
for (const [name, [persist, expected]] of Object.entries(REPLIES)) {
  test(`r12 r75 persist decides what is stored of a late result: ${name}`, async () => {
    const { lane, provider, store, session } = await start([CALLS, { text: 'It runs.' }, { text: 'Welcome.' }]);
    const tools = exporting({ persist });
    const {
      openCalls: [call],
    } = await drive(await session.run({ input: 'Export', provider, tools })).result;
    const second = await elsewhere(store);
    // Another process does not have the function, and nothing is stored without it.
    await assert.rejects(second.answer(call.invocationId, result('raw-result')), {
      code: 'config_invalid',
      message: /persist/,
    });
    await assert.rejects(
      second.answer(call.invocationId, result('raw-result'), { tools: { export_rows: { persist: 'no' } } }),
      { code: 'config_invalid' },
    );
    await second.answer(call.invocationId, result('raw-result'), { tools });
    await assert.rejects(second.answer(call.invocationId, result('again'), { tools }), { code: 'wrong_state' });
    const [row] = (await second.invocations({ payload: true })).items;
    assert.deepEqual([row.status, row.result?.content ?? null], ['ok', expected]);
    await drive(await second.run({ input: 'And?', provider, tools })).result;
    const sent = JSON.stringify((await lane.requests()).at(-1).body.messages);
    assert.equal(row.redacted, expected !== 'raw-result');
    assert.equal(sent.includes('raw-result'), expected === 'raw-result');
    if (name === 'replaced') assert.equal(sent.split('kept 10').length, 2);
    // The model does not wait for a result of which nothing is stored.
    assert.equal(sent.split('were not kept').length, expected === null ? 2 : 1);
  });
}

test('r12 r57 persist decides what is stored of a late result of a call that was copied, too', async () => {
  const { provider, store, session } = await start([CALLS, { text: 'It runs.' }]);
  const tools = exporting({ persist: REPLIES.withheld[0] });
  await drive(await session.run({ input: 'Export', provider, tools })).result;
  const other = await open({ store });
  for (const [id, messages] of [
    ['copy of messages', await session.messages()],
    ['copy of a view', session.view().getSnapshot().messages],
  ]) {
    const copy = await other.session(id);
    await copy.append(messages);
    const [{ id: call }] = (await copy.invocations({ tool: 'export_rows' })).items;
    await assert.rejects(copy.answer(call, result('raw-result')), { code: 'config_invalid', message: /persist/ });
    await copy.answer(call, result('raw-result'), { tools });
    assert.doesNotMatch(JSON.stringify((await copy.invocations({ payload: true })).items), /raw-result/);
  }
});

test('r12 r75 the session that ran the tool knows its persist, also while the run is under way', async () => {
  const { provider, store, session } = await start([CALLS, { text: 'Done.' }]);
  class Tool {
    parameters = parameters;
    async = true;
    execute() {
      return pending;
    }
    persist(invocation, given) {
      return given === undefined ? {} : { result: this.mask };
    }
    mask = 'masked';
  }
  const run = await session.run({ input: 'Export', provider, tools: { export_rows: new Tool() } });
  await callModel(run);
  const { invocationId } = await deferCall(run);
  await assert.rejects((await elsewhere(store)).answer(invocationId, result('raw-result')), { code: 'config_invalid' });
  await session.answer(invocationId, result('raw-result'));
  await callModel(run);
  while (run.status === 'running') await run.changed();
  assert.equal((await session.invocations({ payload: true })).items[0].result.content, 'masked');
});
