// r16, r17, r18, r29: a process that drives a run is killed with SIGKILL at each operation of its store, in each mode;
// another one goes on. With `npm test -- --long`: six kills before, during and after each operation, on every store.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open, validate } from 'rethread';
import { drive } from 'rethread/host';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { checkRun } from './run-kill-check.mjs';
import { APPROVALS, MODES, goOn } from './run-kill-model.mjs';

const LONG = Boolean(process.env.RETHREAD_LONG);
const program = fileURLToPath(new URL('run-kill-writer.mjs', import.meta.url));
/** Each mode, and each with calls that wait for a person. */
const PLANS = [...MODES, ...MODES.map((mode) => `${mode}${APPROVALS}`)];
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
  const child = spawn(process.execPath, ['--no-warnings', program, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code, signal] = await once(child, 'exit');
  assert.ok(signal === 'SIGKILL' || code === 0, `the run ended with ${code}`);
  return signal === 'SIGKILL';
}

const linesOf = (file) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []);

/** The moments of an operation at which a run is killed: in the long form six kills of each operation. */
const momentsOf = (operation) =>
  LONG
    ? ['before', 'after', ...Array(4).fill('during')].map((when, at) => ({ when, name: `${operation}-${when}-${at}` }))
    : [operation % 2 ? 'before' : 'after'].map((when) => ({ when, name: `${operation}-${when}` }));

for (const [store, start] of Object.entries(STORES)) {
  for (const plan of PLANS) {
    test(`r16_r17_r18_r29 SIGKILL in a run: ${store}, mode ${plan}: another process continues`, {
      timeout: LONG ? 900_000 : 120_000,
    }, async () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'rethread-run-kills-'));
      const { place, stop } = await start(folder);
      const { driver, end } = await openDriver(store, place);
      const client = await open({ store: driver, leaseMs: 100 });
      let kills = 0;
      let operation = 1;
      try {
        for (let isRunning = true; isRunning; operation += LONG ? 1 : 3) {
          for (const { when, name } of momentsOf(operation)) {
            const file = path.join(folder, `${plan}-${name}`);
            const isKill = await isKilled([store, place, name, plan, String(operation), when, file]);
            // A timer that is set during the last operation may find the run ended.
            if (!isKill && when !== 'during') isRunning = false;
            if (!isRunning) break;
            kills += Number(isKill);
            const facts = await goOn(
              { validate, drive },
              client,
              name,
              (line) => appendFileSync(file, `${line}\n`),
              plan,
            );
            checkRun(facts, linesOf(file), plan);
          }
        }
      } finally {
        await end();
        await stop();
        rmSync(folder, { recursive: true, force: true });
      }
      assert.ok(kills >= (LONG ? 100 : 3), `${kills} kills`);
      console.log(`${store}, mode ${plan}: ${kills} kills at ${operation - 1} operations, each gone on with`);
    });
  }
}
