// r28: the process that drives a run is killed; another process goes on from its snapshot, with its store and without.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { endsWithThisProcess } from './child-processes.mjs';

const THREE_DAYS = 3 * 24 * 60 * 60 * 1000;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-snapshots-'));
let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(async () => {
  await standIn.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The snapshot of a run of another process, which is killed. */
async function snapshotOfKilled(place, lane, needsApproval) {
  const program = fileURLToPath(new URL('snapshot-writer.mjs', import.meta.url));
  const child = endsWithThisProcess(fork(program, [place, lane.chat, String(needsApproval)]));
  const [bytes] = await once(child, 'message');
  child.kill('SIGKILL');
  await once(child, 'exit');
  return Uint8Array.from(bytes);
}

const ROUND = { calls: [{ name: 'pay', arguments: {} }] };
const rolesOf = async (session) => (await session.messages()).items.map(({ role }) => role);
function request(lane, needsApproval) {
  const ran = [];
  const parameters = { type: 'object', properties: {} };
  const execute = (_, { invocationId }) => {
    ran.push(invocationId);
    return 'paid';
  };
  const provider = { dialect: 'openai-chat', params: { model: 'm' }, url: lane.chat, stream: true };
  return { ran, request: { provider, tools: { pay: { parameters, needsApproval, execute } } } };
}

for (const target of ['its store', 'an empty store']) {
  test(`r28 a run of a killed process goes on from its snapshot on ${target}`, { timeout: 60_000 }, async () => {
    const lane = laneOf(standIn.url, `killed-${target.length}`);
    await lane.script([{ text: 'Hi.' }, ROUND, { text: 'Paid, I think.', gate: 'go', atPiece: 1 }]);
    const file = path.join(folder, `${target.length}.sqlite`);
    const snapshot = await snapshotOfKilled(file, lane, false);
    await lane.openGate('go');
    await lane.script([{ text: 'Paid.' }]);
    const place = target === 'its store' ? file : path.join(folder, 'empty.sqlite');
    const store = await open({ store: sqlite(place), leaseMs: 100 });
    const session = await store.session('s');
    // The lease of the killed process ends.
    while ((await session.pendingRuns()).some(({ state }) => state === 'live')) await setTimeout(20);
    const { ran, request: resumed } = request(lane, false);
    const { status, text, turns, error } = await drive(await session.resume(snapshot, resumed)).result;
    assert.deepEqual([status, text, turns], ['finished', 'Paid.', 2], JSON.stringify(error));
    assert.deepEqual(ran, [], 'the tool has returned in the other process');
    assert.deepEqual(await rolesOf(session), ['user', 'assistant', 'user', 'assistant', 'assistant']);
    const bodies = (await lane.requests()).map(({ bodyText }) => JSON.parse(bodyText).messages);
    assert.deepEqual(bodies.at(-1), bodies.at(-2), 'the request that was not answered is sent again');
    assert.equal(bodies.length, 4);
    assert.deepEqual(await session.pendingRuns(), []);
    await store.close();
  });
}

test('r28_r29 an approval is given three days later, in another process, on another store', {
  timeout: 60_000,
}, async () => {
  const lane = laneOf(standIn.url, 'approval');
  await lane.script([{ text: 'Hi.' }, ROUND, { text: 'Paid.' }]);
  const snapshot = await snapshotOfKilled(path.join(folder, 'asked.sqlite'), lane, true);
  const store = await open({ store: sqlite(path.join(folder, 'approved.sqlite')), now: () => Date.now() + THREE_DAYS });
  const session = await store.session('s');
  const { ran, request: resumed } = request(lane, true);
  const run = await session.resume(snapshot, resumed);
  assert.equal((await drive(run).result).status, 'waiting_approval');
  assert.deepEqual(ran, []);
  await run.approve(run.approvals()[0].callId);
  const { status, text, error } = await drive(run).result;
  assert.deepEqual([status, text, ran.length], ['finished', 'Paid.', 1], JSON.stringify(error));
  assert.deepEqual(await rolesOf(session), ['user', 'assistant', 'user', 'assistant', 'assistant']);
  await store.close();
});
