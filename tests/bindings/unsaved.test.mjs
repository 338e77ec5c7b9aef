// r69: what the view shows of a turn that is not in history, in one process and over the memory store.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { until } from './scenarios/kit.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const textOf = ({ parts }) =>
  parts
    .filter(({ type }) => type === 'text')
    .map(({ text }) => text)
    .join('');

async function chat(name, steps) {
  const lane = laneOf(standIn.url, name);
  await lane.script(steps);
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const view = session.view();
  const shown = () =>
    view.getSnapshot().messages.map((message) => `${message.status} ${message.saved} ${textOf(message)}`);
  return {
    lane,
    client,
    session,
    view,
    shown,
    provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true },
  };
}
const GATED = { text: 'One two three.', gate: 'go', atPiece: 2 };

test('r69 an arriving message is "streaming" until it is complete; unchanged messages stay the same objects', async () => {
  const { lane, session, view, shown, provider } = await chat('streaming', [GATED]);
  const driven = drive(await session.run({ input: 'Count.', provider }));
  await until(() => shown().at(-1) === 'streaming false One two');
  const [question] = view.getSnapshot().messages;
  assert.equal(question.status, 'complete');
  assert.equal(view.getSnapshot(), view.getSnapshot());
  await lane.openGate('go');
  await until(() => shown().at(-1).endsWith('three.'));
  assert.equal((await driven.result).status, 'finished');
  assert.deepEqual(shown(), ['complete true Count.', 'complete true One two three.']);
  assert.equal(view.getSnapshot().run, null);
});

test('r69 a stopped run has no error and is shown until it is discarded; the next run removes its journal', async () => {
  const { client, session, view, shown, provider } = await chat('stopped', [GATED, GATED, { text: 'Whole.' }]);
  for (const end of ['discard', 'next run']) {
    const driven = drive(await session.run({ input: 'Count.', provider }));
    await until(() => shown().at(-1) === 'streaming false One two');
    await view.getSnapshot().run.cancel();
    const { status, error } = await driven.result;
    assert.deepEqual([status, error], ['cancelled', null]);
    const { run } = view.getSnapshot();
    assert.deepEqual(run, { id: run.id, status: 'cancelled' });
    assert.deepEqual(shown(), ['complete false Count.', 'stopped false One two']);
    assert.deepEqual([await session.pendingRuns(), await client.pendingRuns(), session.revision], [[], [], 0]);
    assert.equal((await session.messages()).items.length, 0);
    if (end === 'next run') break;
    await session.discard(run.id);
    assert.deepEqual([view.getSnapshot().run, shown()], [null, []]);
    await assert.rejects(session.discard(run.id), { code: 'not_found' });
  }
  const { id } = view.getSnapshot().run;
  await drive(await session.run({ input: 'Again.', provider })).result;
  assert.deepEqual([view.getSnapshot().run, shown()], [null, ['complete true Again.', 'complete true Whole.']]);
  await assert.rejects(session.resume(id, { provider }), { code: 'not_found' });
  assert.equal(session.revision, 1);
});

test('r69 a stopped run can keep the question and the partial answer', async () => {
  const { session, shown, view, provider } = await chat('kept', [GATED]);
  const run = await session.run({ input: 'Count.', provider });
  const driven = drive(run);
  await until(() => shown().at(-1) === 'streaming false One two');
  await run.cancel();
  await driven.result;
  await session.discard(run.id, { keep: true });
  assert.deepEqual([view.getSnapshot().run, shown()], [null, ['complete true Count.', 'stopped true One two']]);
  assert.equal(session.revision, 1);
});

test('r69 a failed run keeps its text on the screen and in pendingRuns; resumed, it is shown as running', async () => {
  const { session, view, shown, provider } = await chat('failed', [
    { text: 'One two three four', cut: 2, delayMs: 30 },
    { text: 'Whole.' },
  ]);
  const run = await session.run({ input: 'Count.', provider, retry: { attempts: 1 } });
  assert.equal((await drive(run).result).status, 'failed');
  assert.equal(shown()[0], 'complete false Count.');
  assert.match(shown()[1], /^failed false One/);
  assert.equal(view.getSnapshot().run.error.code, 'model_error');
  const [pending] = await session.pendingRuns();
  assert.match(pending.text, /^One/);
  const again = await session.resume(run.id, { provider });
  assert.deepEqual([view.getSnapshot().run.status, shown()], ['running', ['complete false Count.']]);
  assert.equal((await drive(again).result).text, 'Whole.');
  assert.deepEqual(shown(), ['complete true Count.', 'complete true Whole.']);
});

test('r69 a disposed run is shown as interrupted, with one more change', async () => {
  const { session, view, shown, provider } = await chat('disposed', [GATED, { text: 'Whole.' }]);
  const run = await session.run({ input: 'Count.', provider });
  const driven = drive(run);
  await until(() => shown().at(-1) === 'streaming false One two');
  let changes = 0;
  session.subscribe(() => {
    changes += 1;
  });
  run[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
  await driven.result.catch(() => {});
  await until(() => changes > 0);
  assert.deepEqual(
    [view.getSnapshot().run.status, view.getSnapshot().run.cancel, shown()],
    ['interrupted', undefined, ['complete false Count.', 'truncated false One two']],
  );
  assert.equal((await session.pendingRuns())[0].state, 'interrupted');
  assert.equal((await drive(await session.resume(view.getSnapshot().run.id, { provider })).result).status, 'finished');
  assert.deepEqual(shown(), ['complete true Count.', 'complete true Whole.']);
});

test('r69 values that `persist` withholds are not in the journal of a stopped run', async () => {
  const { client, session, provider } = await chat('redacted', [
    { text: 'Calling.', calls: [{ name: 'f', arguments: { pin: 'secret-pin' } }] },
    GATED,
  ]);
  const tools = {
    f: {
      parameters: { type: 'object', properties: { pin: { type: 'string' } } },
      execute: async () => 'secret-result',
      persist: () => null,
    },
  };
  const run = await session.run({ input: 'Count.', provider, tools });
  const driven = drive(run);
  await until(() => session.view().getSnapshot().messages.length === 3);
  await run.cancel();
  await driven.result;
  await session.discard(run.id, { keep: true });
  const stored = JSON.stringify([
    (await session.messages()).items,
    (await client.invocations({ payload: true })).items,
  ]);
  assert.match(stored, /Calling\./);
  assert.doesNotMatch(stored, /secret/);
});

test('r69 a waiting approval and each interrupted run stay in the view while another run begins and ends', {
  timeout: 20_000,
}, async () => {
  const ROUND = { calls: [{ name: 'pay', arguments: {} }] };
  const { session, view, provider, client } = await chat('several', [ROUND, { text: 'Else.' }, { text: 'Last.' }]);
  const tools = { pay: { parameters: { type: 'object', properties: {} }, needsApproval: true, execute: () => 5 } };
  const questions = () =>
    view
      .getSnapshot()
      .messages.filter(({ role }) => role === 'user')
      .map((message) => `${message.saved} ${textOf(message)}`);
  const waits = () =>
    view
      .getSnapshot()
      .messages.flatMap(({ parts }) => parts)
      .some(({ awaitingApproval }) => awaitingApproval);
  const waiting = await session.run({ input: 'Pay', provider, tools });
  await drive(waiting).result;
  const first = await session.run({ input: 'One', provider });
  assert.deepEqual([questions(), waits()], [['false Pay', 'false One'], true]);
  first[Symbol.dispose]();
  await until(() => view.getSnapshot().run?.status === 'interrupted');
  const second = await session.run({ input: 'Two', provider });
  assert.deepEqual([questions(), waits()], [['false Pay', 'false One', 'false Two'], true]);
  await drive(second).result;
  assert.deepEqual([questions().sort(), waits()], [['false One', 'false Pay', 'true Two'], true]);
  // Also to a page that opens the session now.
  const again = (await client.session('s')).view();
  assert.equal(again.getSnapshot().messages.filter(({ saved }) => !saved).length, 3);
  // A decision works from there, and the rest goes when it is discarded.
  await waiting.reject(waiting.approvals()[0].invocationId);
  await drive(waiting).result;
  await session.discard(first.id);
  assert.deepEqual([questions().filter((question) => question.startsWith('false')), waits()], [[], false]);
});

test('r58 r69 the view shows why a run failed whose turn is kept, until the next run begins', {
  timeout: 20_000,
}, async () => {
  const lane = laneOf(standIn.url, 'kept-failure');
  await lane.script([{ status: 400 }, { text: 'Here.' }]);
  const session = await (await open({ store: 'memory' })).session('s', { onStop: 'keep' });
  const view = session.view();
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' } };
  const failed = await drive(await session.run({ input: 'Go', provider, retry: { attempts: 1 } })).result;
  assert.deepEqual([failed.status, failed.saved], ['failed', true]);
  const { run, messages } = view.getSnapshot();
  assert.deepEqual(
    [run.status, run.error.code, run.error.message],
    ['failed', failed.error.code, failed.error.message],
  );
  assert.deepEqual(
    messages.map(({ saved, role }) => [saved, role]),
    [[true, 'user']],
  );
  const next = await session.run({ input: 'Again', provider });
  assert.equal(view.getSnapshot().run.status, 'running');
  await drive(next).result;
  assert.equal(view.getSnapshot().run, null);
  assert.deepEqual(await session.pendingRuns(), []);
});
