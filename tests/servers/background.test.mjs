// R18, R20, R27: a process is killed with SIGKILL while the service works on its answer in the background, at each
// piece of it, over SQLite and HTTP; another process picks the answer up. A stream that breaks off goes on.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { createClient } from '@libsql/client';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';
import { startStandIn } from '../stand-in/server.mjs';
import { endsWithThisProcess } from './child-processes.mjs';

const STORY = 'Once upon a time in the west there was a well.';
const program = fileURLToPath(new URL('background-program.mjs', import.meta.url));

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

/** A lane of the stand-in, with what a test asks of it. */
function laneOf(name) {
  const base = `${standIn.url}/lane/${name}`;
  const post = async (at, body) => (await fetch(`${base}${at}`, { method: 'POST', body: JSON.stringify(body) })).json();
  const get = async (at) => (await fetch(`${base}${at}`)).json();
  const posts = async () => (await get('/control/requests')).filter(({ status }) => status === 200);
  return { url: `${base}/v1/responses`, post, posts, fetched: () => get('/control/fetched') };
}

const providerOf = (url, stream) => ({
  dialect: 'openai-responses',
  url,
  params: { model: 'm', background: true },
  stream,
});

async function isKilled(args) {
  const child = spawn(process.execPath, ['--no-warnings', program, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code, signal] = await once(endsWithThisProcess(child), 'exit');
  assert.ok(signal === 'SIGKILL' || code === 0, `the run ended with ${code}`);
  return signal === 'SIGKILL';
}

/** Waits until the killed process counts as gone. */
async function pendingOf(session) {
  let [pending] = await session.pendingRuns();
  for (; pending?.state === 'live'; [pending] = await session.pendingRuns())
    await new Promise((resolve) => setTimeout(resolve, 20));
  return pending;
}

/** Drives a run, and returns its result with the text of its events. */
async function watched(run, options) {
  const driven = drive(run, options);
  let text = '';
  for await (const event of driven) if (event.type === 'text_delta') text += event.text;
  return { ...(await driven.result), shown: text };
}

const textsOf = async (session) =>
  (await session.messages()).items.map(({ parts }) => parts.map(({ text = '' }) => text).join(''));

for (const form of ['stream', 'whole'])
  test(`r18_r20_SIGKILL_while_the_service_works_in_the_background: the answer is picked up, ${form}`, {
    timeout: 120_000,
  }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'rethread-background-'));
    const file = path.join(folder, 'chats.sqlite');
    const store = createClient({ url: pathToFileURL(file).href, timeout: 10_000 });
    const client = await open({ store: sqlite(store), leaseMs: 100 });
    try {
      for (const owner of ['session', 'response', 'conversation']) {
        for (const pieces of form === 'stream' ? [1, 2, 4, 6] : [1]) {
          const name = `${form}-${owner}-${pieces}`;
          const lane = laneOf(name);
          const state = {
            session: () => ({ kind: 'session' }),
            response: () => ({ kind: 'response', auto: true }),
            conversation: async () => ({
              kind: 'conversation',
              conversationId: (await lane.post('/v1/conversations', {})).id,
            }),
          };
          const kept = await state[owner]();
          const session = await client.session(name, { owner: kept });
          const steps = [
            { text: 'First.', delayMs: 1 },
            { text: STORY, delayMs: 40 },
            { text: 'Third.', delayMs: 1 },
          ];
          await lane.post('/control/script', { steps, then: 'error' });
          const stream = form === 'stream';
          const ask = async (input) => watched(await session.run({ input, provider: providerOf(lane.url, stream) }));
          assert.equal((await ask('One')).status, 'finished', name);
          assert.ok(await isKilled([file, lane.url, name, JSON.stringify(kept), form, String(pieces)]), name);
          await session.refresh();
          const pending = await pendingOf(session);
          assert.ok(pending, name);
          const run = await session.resume(pending.id, { provider: providerOf(lane.url, stream) });
          const result = await watched(run);
          assert.equal(result.status, 'finished', `${name}: ${JSON.stringify(result.error)}`);
          assert.deepEqual([result.text, result.shown], [STORY, STORY], name);
          assert.equal((await ask('Three')).status, 'finished', name);
          const posts = await lane.posts();
          assert.equal(posts.length, 3, `${name}: an answer was asked for twice`);
          assert.deepEqual(await textsOf(session), ['One', 'First.', 'Two', STORY, 'Three', 'Third.'], name);
          // What the service has is not sent again.
          const counts = posts.map(({ body }) => body.input.length);
          assert.deepEqual(counts, owner === 'session' ? [1, 3, 5] : [1, 1, 1], name);
          for (const { method, bodyText, headers } of await lane.fetched()) {
            assert.deepEqual([method, bodyText, headers['content-type']], ['GET', '', undefined]);
          }
        }
      }
    } finally {
      await client.close();
      store.close();
      rmSync(folder, { recursive: true, force: true });
    }
  });

test('r18_r20 a stream that breaks off goes on after its last event', { timeout: 30_000 }, async () => {
  const client = await open({ store: 'memory' });
  for (const cut of [1, 3, 5, 7]) {
    const lane = laneOf(`cut-${cut}`);
    await lane.post('/control/script', { steps: [{ text: STORY, delayMs: 2, cut }], then: 'error' });
    await lane.post('/control/cuts', { cuts: [2, 3] });
    const session = await client.session(`cut-${cut}`);
    const run = await session.run({ input: 'Go', provider: providerOf(lane.url, true), retry: { backoffMs: 5 } });
    const result = await watched(run, { headers: { authorization: 'Bearer secret-of-the-application' } });
    assert.equal(result.status, 'finished', JSON.stringify(result.error));
    assert.deepEqual([result.text, result.shown, (await lane.posts()).length], [STORY, STORY, 1]);
    const fetched = await lane.fetched();
    assert.equal(fetched.length, 3);
    for (const { headers, path: at } of fetched) {
      assert.equal(headers.authorization, 'Bearer secret-of-the-application');
      assert.match(at, /\/v1\/responses\/resp_\w+\?stream=true&starting_after=\d+$/);
    }
  }
  await client.close();
});

test('r18_r27 an answer that is too old to be streamed is polled for, and one that is gone is asked for again', {
  timeout: 30_000,
}, async () => {
  const client = await open({ store: 'memory' });
  for (const [name, passes, posts] of [
    ['old', { minutes: 6 }, 1],
    ['gone', { days: 31 }, 2],
  ]) {
    const lane = laneOf(name);
    const steps = [
      { text: STORY, delayMs: 2, cut: 2 },
      { text: STORY, delayMs: 2 },
    ];
    await lane.post('/control/script', { steps, then: 'error' });
    const session = await client.session(name);
    const run = await session.run({ input: 'Go', provider: providerOf(lane.url, true), retry: { backoffMs: 400 } });
    const driven = watched(run);
    while ((await lane.posts()).every(({ ended }) => ended !== 'cut')) await new Promise((r) => setTimeout(r, 5));
    await new Promise((resolve) => setTimeout(resolve, 100));
    await lane.post('/control/service', passes);
    const result = await driven;
    assert.equal(result.status, 'finished', JSON.stringify(result.error));
    assert.deepEqual([result.text, result.shown, (await lane.posts()).length], [STORY, STORY, posts], name);
    assert.equal(
      result.report.some(({ message }) => message.includes('not have the answer any more')),
      posts === 2,
    );
  }
  await client.close();
});
