// What a page needs after a reload: resuming everything once, and a view that notifies once a frame.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { sleep } from './scenarios/kit.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

/** A store with a run in each session, all given up before anything was sent. */
async function interrupted(name, sessions) {
  const lane = laneOf(standIn.url, name);
  await lane.script(sessions.flatMap(() => [{ calls: [{ name: 'look', arguments: {} }] }, { text: 'Seen.' }]));
  const client = await open({ store: 'memory' });
  const ran = [];
  const look = { parameters: { type: 'object', properties: {} }, execute: () => ran.push('look') && 'seen' };
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  const request = { provider, tools: { look } };
  for (const id of sessions) {
    const run = await (await client.session(id)).run({ ...request, input: 'x' });
    run[Symbol.dispose]();
  }
  await sleep(0);
  return { client, lane, request, ran };
}
const statuses = (runs) => Promise.all(runs.map(async (run) => (await drive(run).result).status));

test('r17 r29 a run that this page has is resumed as the same object, and its tool runs once', async () => {
  const { client, request, ran } = await interrupted('twice', ['s']);
  const [first, again] = [await client.session('s'), await client.session('s')];
  const [{ id }] = await first.pendingRuns();
  const [one, two] = await Promise.all([first.resume(id, request), again.resume(id, { ...request, tools: {} })]);
  assert.equal(one, two);
  assert.equal(await again.resume(id, request), one);
  assert.throws(() => [drive(one), drive(two)], { code: 'wrong_state' });
  while (one.status === 'running') await one.changed();
  assert.deepEqual([one.status, ran], ['finished', ['look']]);
  await assert.rejects(first.resume(id, request), { code: 'not_found' });
});

test('r17 a run that was given up is resumed anew, as another object', async () => {
  const { client, request } = await interrupted('anew', ['s']);
  const session = await client.session('s');
  const [{ id }] = await session.pendingRuns();
  const one = await session.resume(id, request);
  one[Symbol.dispose]();
  const two = await session.resume(id, request);
  assert.notEqual(one, two);
  assert.deepEqual(await statuses([two]), ['finished']);
});

test('r17 a resumption that fails is tried again by the next call', async () => {
  const { client, request } = await interrupted('again', ['s']);
  const session = await client.session('s');
  const [{ id }] = await session.pendingRuns();
  await assert.rejects(session.resume(id, { ...request, unknown: 1 }), { code: 'config_invalid' });
  assert.deepEqual(await statuses([await session.resume(id, request)]), ['finished']);
});

test('r17 r18 two calls of resumeAll resume each run once', async () => {
  const sessions = ['a', 'b', 'c', 'd'];
  const { client, request, ran } = await interrupted('all', sessions);
  const asked = [];
  const slowly = async (pending) => {
    asked.push(pending.session);
    await sleep(1);
    return request;
  };
  const [one, two] = await Promise.all([client.resumeAll(request), client.resumeAll(slowly)]);
  const runs = [...one.runs, ...two.runs];
  assert.equal(runs.length, 4);
  assert.equal(new Set(runs.map(({ id }) => id)).size, 4);
  assert.deepEqual([one.failed, two.failed], [[], []]);
  assert.deepEqual(await statuses(runs), ['finished', 'finished', 'finished', 'finished']);
  assert.deepEqual(ran, ['look', 'look', 'look', 'look']);
  assert.deepEqual(await client.resumeAll(request), { runs: [], queued: [], failed: [] });
});

test('r17 resumeAll leaves what it is told to leave, and names what it could not resume', async () => {
  const { client, request } = await interrupted('some', ['a', 'b', 'c']);
  const requests = { a: () => null, b: () => ({ ...request, unknown: 1 }), c: () => request };
  const { runs, failed } = await client.resumeAll(({ session }) => requests[session]());
  assert.deepEqual(await statuses(runs), ['finished']);
  assert.deepEqual(
    failed.map(({ session, run, error }) => [session, typeof run, error.code]),
    [['b', 'string', 'config_invalid']],
  );
  assert.deepEqual((await client.pendingRuns()).map(({ session, state }) => `${session} ${state}`).sort(), [
    'a interrupted',
    'b interrupted',
  ]);
  const ofOne = await client.resumeAll(request, { session: 'b' });
  assert.equal(ofOne.runs.length, 1);
  assert.deepEqual(await statuses(ofOne.runs), ['finished']);
  for (const wrong of [undefined, null, 'x', []])
    await assert.rejects(client.resumeAll(wrong), { code: 'invalid_input' });
});

test('r17 of two runs of one session resumeAll resumes one, and names the other', async () => {
  const { client, request } = await interrupted('both', ['s', 's']);
  const first = await client.resumeAll(request);
  assert.deepEqual([first.runs.length, first.failed.map(({ error }) => error.code)], [1, ['busy']]);
  assert.deepEqual(await statuses(first.runs), ['finished']);
  const second = await client.resumeAll(request);
  assert.deepEqual([second.runs.length, second.failed], [1, []]);
  assert.deepEqual(await statuses(second.runs), ['finished']);
  const busy = Object.assign(new Error('mine'), { code: 'busy' });
  const run = await (await client.session('s')).run({ ...request, input: 'y' });
  run[Symbol.dispose]();
  const thrown = await client.resumeAll(() => Promise.reject(busy));
  assert.deepEqual(
    thrown.failed.map(({ error }) => error),
    [busy],
  );
});

test('r56 a view with `notify: "frame"` notifies once a frame, and not after the end', async (context) => {
  const frames = new Map();
  let next = 1;
  context.after(() => {
    delete globalThis.requestAnimationFrame;
    delete globalThis.cancelAnimationFrame;
  });
  globalThis.requestAnimationFrame = (call) => {
    frames.set(next, call);
    return next++;
  };
  globalThis.cancelAnimationFrame = (id) => frames.delete(id);
  const draw = () => {
    const calls = [...frames.values()];
    frames.clear();
    calls.forEach((call) => call());
  };
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const say = (text) => session.append({ messages: [{ role: 'user', content: text }] }, 'openai-chat');
  const [view, eager] = [session.view({ notify: 'frame' }), session.view()];
  assert.notEqual(view, eager);
  assert.equal(session.view({ notify: 'frame' }), view);
  assert.equal(session.view({ notify: 'change' }), eager);
  let notified = 0;
  let changes = 0;
  const end = view.subscribe(() => (notified += 1));
  eager.subscribe(() => (changes += 1));
  for (const text of ['one', 'two', 'three']) await say(text);
  assert.deepEqual([notified, frames.size, changes >= 3], [0, 1, true]);
  draw();
  assert.deepEqual([notified, view.getSnapshot().messages.length], [1, 3]);
  // A hidden tab draws no frame.
  await say('four');
  await sleep(150);
  assert.deepEqual([notified, frames.size], [2, 0]);
  await say('five');
  end();
  draw();
  await sleep(150);
  assert.equal(notified, 2);
  assert.throws(() => session.view({ notify: 'never' }), { code: 'config_invalid' });
  assert.throws(() => session.view({ frame: true }), { code: 'config_invalid' });
});
