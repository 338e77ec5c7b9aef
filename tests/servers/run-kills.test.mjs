// r16, r17, r18: a process that drives a run is killed with SIGKILL at each operation of its store, in each mode; another one goes on.
// With `npm test -- --long`: every operation, before and after it, on every store.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open, validate } from 'rethread';
import { drive } from 'rethread/host';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { fetchFor, runRequest } from './run-kill-model.mjs';

const LONG = Boolean(process.env.RETHREAD_LONG);
const program = fileURLToPath(new URL('run-kill-writer.mjs', import.meta.url));
const MODES = ['run', 'call', 'result'];
const STORES = {
  'node:sqlite': async (folder) => ({ place: path.join(folder, 'chats.sqlite'), stop: () => {} }),
  ...(LONG && {
    'pg Pool': async () => {
      const server = await startPostgres();
      return { ...server, place: JSON.stringify(server.place) };
    },
    ioredis: () => startRedis(),
  }),
};

/** Runs a turn in another process, killed at an operation. Returns false if it ended before. */
async function isKilled(args) {
  const child = spawn(process.execPath, ['--no-warnings', program, ...args], { stdio: ['ignore', 'ignore', 'inherit'] });
  const [code, signal] = await once(child, 'exit');
  assert.ok(signal === 'SIGKILL' || code === 0, `the run ended with ${code}`);
  return signal === 'SIGKILL';
}

const linesOf = (file, what) =>
  (existsSync(file) ? readFileSync(file, 'utf8').split('\n') : []).filter((line) => line.startsWith(what));

/** Goes on with what the killed process left, and checks that nothing is lost, doubled, stuck or invalid. */
async function goOn(client, id, file, persistence) {
  const session = await client.session(id);
  const { body } = await session.render({ dialect: 'openai-chat', input: 'And?' });
  assert.deepEqual(validate(body, 'openai-chat').filter(({ severity }) => severity === 'error'), []);
  const stored = (await session.messages()).items;
  if (persistence === 'run') assert.ok([0, 4].includes(stored.length), 'half a turn');
  let [pending] = await session.pendingRuns();
  for (; pending?.state === 'live'; [pending] = await session.pendingRuns()) await setTimeout(20);
  const began = linesOf(file, 'model').length;
  if (!pending && stored.length === 0) await drive(await session.run({ input: 'Go', ...runRequest(file, persistence) }), { fetch: fetchFor(file) }).result;
  if (pending) {
    const { status, error } = await drive(await session.resume(pending.id, runRequest(file)), { fetch: fetchFor(file) }).result;
    assert.equal(status, 'finished', JSON.stringify(error));
  }
  const messages = (await session.messages()).items;
  assert.deepEqual(messages.slice(0, stored.length).map((message) => message.id), stored.map((message) => message.id));
  assert.deepEqual(messages.map(({ role }) => role), ['user', 'assistant', 'assistant', 'assistant']);
  const calls = (await session.invocations({ payload: true })).items;
  assert.deepEqual(calls.map(({ callId }) => callId).sort(), ['a', 'b', 'c']);
  assert.ok(calls.every(({ status, result }) => ['ok', 'interrupted'].includes(status) && result), JSON.stringify(calls));
  const ran = linesOf(file, 'tool');
  assert.equal(new Set(ran).size, ran.length, 'a tool ran twice');
  const asked = linesOf(file, 'model');
  assert.ok(asked.length <= 4, `the model was asked ${asked.length} times; ${began} before the kill`);
  assert.deepEqual(await session.pendingRuns(), []);
}

for (const [store, start] of Object.entries(STORES)) {
  for (const persistence of MODES) {
    test(`r16_r17_r18 SIGKILL in a run: ${store}, mode ${persistence}: another process goes on`, { timeout: LONG ? 900_000 : 120_000 }, async () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'rethread-run-kills-'));
      const { place, stop } = await start(folder);
      const { driver, end } = await openDriver(store, place);
      const client = await open({ store: driver, leaseMs: 100 });
      let kills = 0;
      try {
        for (let operation = 1, isRunning = true; isRunning; operation += LONG ? 1 : 3) {
          for (const when of LONG ? ['before', 'after'] : [operation % 2 ? 'before' : 'after']) {
            const id = `${operation}-${when}`;
            const file = path.join(folder, `${persistence}-${id}`);
            isRunning = await isKilled([store, place, id, persistence, String(operation), when, file]);
            if (!isRunning) break;
            kills += 1;
            await goOn(client, id, file, persistence);
          }
        }
      } finally {
        await end();
        await stop();
        rmSync(folder, { recursive: true, force: true });
      }
      assert.ok(kills >= 3, `${kills} kills`);
      console.log(`${store}, mode ${persistence}: ${kills} kills, each gone on with`);
    });
  }
}
