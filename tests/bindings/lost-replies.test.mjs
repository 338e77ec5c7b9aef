// r18: a write of which the reply was lost gave this client a lease that it does not know of. It goes on at once;
// everybody else waits.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } };
const parameters = { type: 'object', properties: {} };
const answer = (message) =>
  new Response(
    JSON.stringify({
      id: 'r',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
    }),
    { headers: { 'content-type': 'application/json' } },
  );
const CALL = {
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
};
const LEASE_MS = 60_000;

/** A store that loses the replies of the next `world.lose` appends, and the world: its clock, what happens after a
 *  journal was read. */
function unreliable() {
  const store = new MemoryLogStore();
  const world = { now: 1_000_000, lose: 0, afterJournal: () => {} };
  const guarded = { capabilities: () => ({ ...store.capabilities(), durable: true }) };
  for (const method of ['head', 'sessions', 'invocations', 'deleteSession'])
    guarded[method] = (...args) => store[method](...args);
  guarded.read = async (id, query) => {
    const records = store.read(id, query);
    if (query.table === 'runs') world.afterJournal();
    return records;
  };
  guarded.append = async (...args) => {
    const silent = world.silence?.(args);
    if (silent) return silent;
    const outcome = store.append(...args);
    if (world.lose > 0 && (world.lose -= 1) >= 0) throw new Error('the connection broke');
    return outcome;
  };
  world.deliver = (args) => store.append(...args);
  return { world, client: (more) => open({ store: guarded, leaseMs: LEASE_MS, now: () => world.now, ...more }) };
}

const done = async () => answer({ content: 'Done.' });

/** A run that a process began and did not end, whose lease has run out. */
async function cutOff() {
  const { world, client } = unreliable();
  const run = await (await (await client()).session('s')).run({ input: 'Go', provider });
  world.now += LEASE_MS + 1;
  return { world, client, id: run.id };
}

test('r18 a resume whose reply was lost is repeated at once by the same client, and by no other', async () => {
  const { world, client, id } = await cutOff();
  const here = await client();
  const session = await here.session('s');
  world.lose = 1;
  await assert.rejects(session.resume(id, { provider }), { code: 'store_error', message: /the connection broke/ });
  const elsewhere = await client();
  assert.deepEqual(
    (await elsewhere.pendingRuns()).map(({ state }) => state),
    ['live'],
  );
  await assert.rejects((await elsewhere.session('s')).resume(id, { provider }), { code: 'busy' });
  assert.deepEqual(
    (await here.pendingRuns()).map(({ state }) => state),
    ['interrupted'],
  );
  const { status } = await drive(await session.resume(id, { provider }), { fetch: done }).result;
  assert.equal(status, 'finished');
  assert.equal((await session.messages()).items.length, 2);
});

test('r18 a client that has lost its lease to another one waits as before', async () => {
  const { world, client, id } = await cutOff();
  const session = await (await client()).session('s');
  world.lose = 1;
  await assert.rejects(session.resume(id, { provider }));
  world.now += LEASE_MS + 1;
  await (await (await client()).session('s')).resume(id, { provider });
  await assert.rejects(session.resume(id, { provider }), { code: 'busy' });
});

test('r18 a discard follows a resume whose reply was lost', async () => {
  const { world, client, id } = await cutOff();
  const session = await (await client()).session('s');
  world.lose = 1;
  await assert.rejects(session.resume(id, { provider }));
  await session.discard(id);
  assert.deepEqual(await session.pendingRuns(), []);
});

test('r18 a run whose begin was stored without a reply is resumed at once', async () => {
  const { world, client } = unreliable();
  const session = await (await client()).session('s');
  world.lose = 1;
  const run = await session.run({ input: 'Go', provider });
  assert.equal(run.status, 'failed');
  const [pending] = await session.pendingRuns();
  assert.equal(pending.state, 'interrupted');
  const { status } = await drive(await session.resume(pending.id, { provider }), { fetch: done }).result;
  assert.equal(status, 'finished');
});

test('r18 r28 a snapshot whose first write has no reply is resumed at once', async () => {
  const first = unreliable();
  const run = await (await (await first.client()).session('s')).run({ input: 'Go', provider });
  const snapshot = run.snapshot();
  const { world, client } = unreliable();
  const session = await (await client()).session('s');
  world.lose = 1;
  await assert.rejects(session.resume(snapshot, { provider }), { code: 'store_error' });
  const { status } = await drive(await session.resume(snapshot, { provider }), { fetch: done }).result;
  assert.equal(status, 'finished');
  assert.equal((await session.messages()).items.length, 2);
});

test('r18 r29 an approval whose lease has no reply is given again at once', async () => {
  const { world, client } = unreliable();
  const session = await (await client()).session('s');
  let ran = 0;
  const execute = () => {
    ran += 1;
    return 5;
  };
  const fetch = async (_, { body }) =>
    answer(JSON.parse(new TextDecoder().decode(body)).messages.length > 1 ? { content: 'Done.' } : CALL);
  const run = await session.run({ input: 'Go', provider, tools: { f: { parameters, execute, needsApproval: true } } });
  assert.equal((await drive(run, { fetch }).result).status, 'waiting_approval');
  const [{ invocationId }] = run.approvals();
  world.lose = 1;
  await assert.rejects(run.approve(invocationId), { code: 'store_error' });
  await run.approve(invocationId);
  assert.equal((await drive(run, { fetch }).result).status, 'finished');
  assert.equal(ran, 1);
});

test('r18 a run whose saves failed is resumed at once by its own session', { timeout: 20_000 }, async () => {
  const { world, client } = unreliable();
  const session = await (await client()).session('s');
  const run = await session.run({ input: 'Go', provider });
  const breaks = async () => {
    world.silence = () => {
      throw new Error('the service is away');
    };
    return done();
  };
  const failed = await drive(run, { fetch: breaks, saveTimeoutMs: 100 }).result;
  assert.equal(failed.status, 'failed');
  const snapshot = run.snapshot();
  world.silence = undefined;
  const { status } = await drive(await session.resume(snapshot, { provider }), {
    fetch: () => assert.fail('the answer is paid for'),
  }).result;
  assert.equal(status, 'finished');
});

test('r18 a write of the former holder that arrives while its run is resumed is not overlooked', {
  timeout: 20_000,
}, async () => {
  const { world, client } = unreliable();
  const session = await (await client({ storeTimeoutMs: 100 })).session('s');
  let ran = 0;
  const request = {
    provider,
    tools: {
      f: {
        parameters,
        execute: () => {
          ran += 1;
          return 5;
        },
      },
    },
  };
  const fetch = async (_, { body }) =>
    answer(JSON.parse(new TextDecoder().decode(body)).messages.length > 1 ? { content: 'Done.' } : CALL);
  const run = await session.run({ input: 'Go', ...request });
  const kept = [];
  const hangs = async (...args) => {
    world.silence = (call) => {
      kept.push(call);
      return new Promise(() => {});
    };
    return fetch(...args);
  };
  assert.equal((await drive(run, { fetch: hangs, saveTimeoutMs: 50 }).result).status, 'failed');
  assert.ok(kept.length > 0);
  world.silence = undefined;
  // They arrive after the journal was read.
  world.afterJournal = () => kept.splice(0).forEach(world.deliver);
  await assert.rejects(session.resume(run.id, request), { code: 'busy', message: /went on/ });
  const resumed = await session.resume(run.id, request);
  assert.equal((await drive(resumed, { fetch }).result).status, 'finished');
  assert.equal(ran, 1);
  assert.deepEqual(
    (await session.invocations()).items.map(({ status }) => status),
    ['ok'],
  );
});
