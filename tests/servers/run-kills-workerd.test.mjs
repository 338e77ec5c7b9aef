// r16, r17, r18, r29: workerd is killed with SIGKILL while runs in Durable Objects and on D1 are before or after an
// operation of their store, in each mode; the next workerd goes on. With `npm test -- --long`: before and after every
// operation, five kills each.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { askWorkerd, startWorkerd } from '../workerd.mjs';
import { checkRun } from './run-kill-check.mjs';
import { APPROVALS, MODES } from './run-kill-model.mjs';
import { workerdProcess } from './workerd-process.mjs';

const LONG = Boolean(process.env.RETHREAD_LONG);
const REPEATS = LONG ? 5 : 1;
/** In the short form, every so many points. */
const STEP = LONG ? 1 : 7;
/** Runs that die of one kill. */
const TOGETHER = 10;
const STORES = ['object', 'd1'];
/** Each mode; and one with calls that wait for a person, with `npm test -- --long` each. */
const PLANS = [...MODES, ...(LONG ? MODES : ['call']).map((mode) => `${mode}${APPROVALS}`)];

/** Keeps what runs note, by session, and holds a run at its point. */
class Recorder {
  #lines = new Map();
  #points = new Map();
  #server = http.createServer((request, response) => {
    this.#take(request, response).catch(() => response.destroy()); // the request of a workerd that was killed
  });

  async #take(request, response) {
    const { pathname, searchParams } = new URL(request.url, 'http://recorder');
    const session = searchParams.get('session');
    let line = '';
    for await (const part of request) line += part;
    if (pathname === '/note') this.linesOf(session).push(line);
    // A run at its point waits until it is killed.
    else if (line === this.#points.get(session)?.line) return this.#points.get(session).reach();
    response.end();
  }

  async start() {
    this.#server.listen(0, '127.0.0.1');
    await once(this.#server, 'listening');
    this.url = `http://127.0.0.1:${this.#server.address().port}`;
  }

  linesOf(session) {
    if (!this.#lines.has(session)) this.#lines.set(session, []);
    return this.#lines.get(session);
  }

  /** Resolves when the run of the session is at the point. */
  hold(session, line) {
    return new Promise((reach) => {
      this.#points.set(session, { line, reach });
    });
  }

  stop() {
    this.#server.closeAllConnections();
    this.#server.close();
  }
}

const recorder = new Recorder();
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-run-kills-'));
const start = () =>
  startWorkerd(
    fileURLToPath(new URL('../..', import.meta.url)),
    fileURLToPath(new URL('run-kill-worker.js', import.meta.url)),
    {
      compatibilityFlags: ['nodejs_compat'],
      d1Databases: { DB: 'chats' },
      d1Persist: path.join(folder, 'd1'),
      durableObjects: { CHATS: { className: 'Chats', useSQLite: true } },
      durableObjectsPersist: path.join(folder, 'objects'),
    },
  );
let worker;
before(async () => {
  await recorder.start();
  worker = start();
});
after(async () => {
  recorder.stop();
  await Promise.race([worker?.dispose().catch(() => {}), setTimeout(10_000, undefined, { ref: false })]);
  rmSync(folder, { recursive: true, force: true });
});

const ask = (action, { store, session, plan }) =>
  askWorkerd(
    worker,
    `${action}?store=${store}&session=${session}&plan=${plan}&recorder=${encodeURIComponent(recorder.url)}`,
    { method: 'POST' },
  );

/** Runs all of them up to their points, kills workerd, starts it again, and goes on with each. Returns how many were
 *  killed. */
async function killTogether(runs) {
  await worker.ready;
  const pid = workerdProcess();
  const ends = await Promise.all(
    runs.map(async (run) => {
      const point = recorder.hold(run.session, run.point).then(() => null);
      const ended = ask('run', run).catch((error) => ({ status: 'failed', error: String(error) }));
      return Promise.race([point, ended]);
    }),
  );
  // Renewals of a lease are operations too, so a run may have fewer than the one that was counted.
  for (const end of ends.filter(Boolean)) assert.equal(end.status, 'finished', JSON.stringify(end.error));
  process.kill(pid, 'SIGKILL');
  await worker.dispose().catch(() => {}); // its process is gone
  worker = start();
  for (const run of runs) checkRun(await ask('goOn', run), recorder.linesOf(run.session), run.plan);
  return ends.filter((end) => !end).length;
}

for (const plan of PLANS) {
  test(`r16_r17_r18_r29 SIGKILL of workerd in a run, mode ${plan}: the next one continues`, {
    timeout: LONG ? 900_000 : 120_000,
  }, async () => {
    const runs = [];
    const counts = [];
    for (const store of STORES) {
      const { status, error, operations } = await ask('run', { store, session: `${store}-${plan}`, plan });
      assert.equal(status, 'finished', JSON.stringify(error));
      counts.push(`${store}: ${operations} operations`);
      const points = Array.from({ length: operations }, (_, at) => [`${at + 1} before`, `${at + 1} after`])
        .flat()
        .filter((_, at) => at % STEP === 0);
      for (let repeat = 0; repeat < REPEATS; repeat += 1) {
        runs.push(
          ...points.map((point) => ({
            store,
            session: `${store}-${plan}-${point.replace(' ', '-')}-${repeat}`,
            plan,
            point,
          })),
        );
      }
    }
    let kills = 0;
    while (runs.length) kills += await killTogether(runs.splice(0, TOGETHER));
    assert.ok(kills >= (LONG ? 200 : 5), `${kills} kills`);
    console.log(`workerd, mode ${plan}: ${kills} runs killed (${counts.join(', ')}), each gone on with`);
  });
}
