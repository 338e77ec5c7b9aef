// r18, r28, r29: a run that ended is not resumed, by its id or from a snapshot: its approved tool does not run without
// a new approval.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { keyValueService } from './key-value-service.mjs';

const MODES = ['run', 'call', 'result'];
const ROUND = { calls: [{ name: 'pay', arguments: {} }] };

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const hasCode = (code) => (error) => error.code === code || assert.fail(`${error.code}: ${error.message}`);

/** A run whose tool was approved and has not run, and its snapshot. */
async function approved(name, persistence, store = 'memory') {
  const lane = laneOf(standIn.url, name);
  await lane.script([ROUND, { text: 'Paid.' }, { text: 'Again.' }]);
  const client = await open({ store });
  const session = await client.session('s');
  const world = { lane, client, session, ran: 0 };
  const execute = () => {
    world.ran += 1;
    return 5;
  };
  const pay = { parameters: { type: 'object', properties: {} }, needsApproval: true, execute };
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  world.request = { provider, tools: { pay } };
  world.run = await session.run({ input: 'Pay', persistence, ...world.request });
  await drive(world.run).result;
  await world.run.approve(world.run.approvals()[0].invocationId);
  world.snapshot = world.run.snapshot();
  return world;
}

/** How a run ends, and the session that is asked to resume it then. */
const ENDS = {
  discarded: async ({ run, session }) => {
    run[Symbol.dispose]();
    await session.discard(run.id);
    return session;
  },
  'finished and cleared': async ({ run, session }) => {
    await drive(run).result;
    await session.clear();
    return session;
  },
  'cleared and written again': async ({ run, session }) => {
    await drive(run).result;
    await session.clear();
    await session.append([{ role: 'user', parts: [{ type: 'text', text: 'New' }] }]);
    return session;
  },
  'deleted and opened again': async ({ run, client }) => {
    await drive(run).result;
    await client.deleteSession('s');
    return client.session('s');
  },
  'deleted, created and opened again': async ({ run, client }) => {
    await drive(run).result;
    await client.deleteSession('s');
    await (await client.session('s')).append([{ role: 'user', parts: [{ type: 'text', text: 'New' }] }]);
    return client.session('s');
  },
  cancelled: async ({ run, session }) => {
    await run.cancel();
    return session;
  },
  'cancelled before another run': async ({ run, session, request, lane }) => {
    await run.cancel();
    await lane.script([{ text: 'Else.' }]);
    await drive(await session.run({ input: 'Else', ...request })).result;
    return session;
  },
};

for (const [name, end] of Object.entries(ENDS)) {
  test(`r18 r28 a snapshot of a run that was ${name} is a conflict in its store, in each mode`, {
    timeout: 20_000,
  }, async () => {
    for (const persistence of MODES) {
      const world = await approved(`${name.replaceAll(/\W+/g, '-')}-${persistence}`, persistence);
      const session = await end(world);
      const before = [world.ran, (await world.lane.requests()).length, (await session.messages()).items.length];
      await assert.rejects(session.resume(world.snapshot, world.request), hasCode('conflict'));
      const after = [world.ran, (await world.lane.requests()).length, (await session.messages()).items.length];
      assert.deepEqual(after, before, persistence);
    }
  });
}

test('r28 a run that was resumed elsewhere and discarded there is not resumed there again, cleared or not', {
  timeout: 20_000,
}, async () => {
  const { run, snapshot, request } = await approved('elsewhere', 'run');
  run[Symbol.dispose]();
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const resumed = await session.resume(snapshot, request);
  resumed[Symbol.dispose]();
  await session.discard(run.id);
  await assert.rejects(session.resume(snapshot, request), hasCode('conflict'));
  await session.clear();
  await assert.rejects(session.resume(snapshot, request), hasCode('conflict'));
});

test("r28 a snapshot of an open run is still resumed in its store, by the run's journal", {
  timeout: 20_000,
}, async () => {
  const world = await approved('open', 'run');
  world.run[Symbol.dispose]();
  const result = await drive(await world.session.resume(world.snapshot, world.request)).result;
  assert.deepEqual([result.status, world.ran], ['finished', 1]);
});

test('r28 a snapshot of a deleted session is a conflict in a key-value store', { timeout: 20_000 }, async () => {
  const world = await approved('key-value', 'run', keyValueService());
  const session = await ENDS['deleted and opened again'](world);
  await assert.rejects(session.resume(world.snapshot, world.request), hasCode('conflict'));
  assert.equal(world.ran, 1);
});

test('r18 r29 a cancelled run is ended: neither its id nor its snapshot resumes it, and approvals are withdrawn', {
  timeout: 20_000,
}, async () => {
  const world = await approved('cancelled', 'run');
  await world.run.cancel();
  assert.deepEqual(await world.session.pendingRuns(), []);
  assert.throws(() => world.run.snapshot(), hasCode('wrong_state'));
  await assert.rejects(world.session.resume(world.run.id, world.request), hasCode('conflict'));
  await assert.rejects(world.session.resume(world.snapshot, world.request), hasCode('conflict'));
  assert.equal(world.ran, 0);
  // Its turn can still be kept.
  await world.session.discard(world.run.id, { keep: true });
  assert.equal((await world.session.messages()).items[0].role, 'user');
});
