// r18: the owner of a run over processes. A run on a store for servers has a lease; the platform's locks tell nothing
// about other processes, so they are not asked.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, mock, test } from 'node:test';
import { setImmediate } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { endsWithThisProcess } from './child-processes.mjs';
import { openDriver } from './drivers.mjs';
import { startRedis } from './redis-server.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-lease-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const place = (name) => path.join(folder, `${name}.sqlite`);

const provider = { dialect: 'openai-chat', params: { model: 'm' }, url: 'http://localhost/v1/chat/completions' };
const states = async (store) => (await store.pendingRuns()).map(({ id, state }) => [id, state]);
const resume = async (store, id) => (await store.session('s')).resume(id, { provider });

/** A run that waits for the model's answer. */
async function start(store) {
  const run = await (await store.session('s')).run({ input: 'q', provider });
  return { run, effect: run.effects().find(({ type }) => type === 'call_model') };
}

const answered = (text) => ({
  type: 'response',
  status: 200,
  body: JSON.stringify({
    id: 'r',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', content: text }, finish_reason: 'stop' }],
  }),
});

async function answer(run, text = 'a') {
  const effect = run.effects().find(({ type }) => type === 'call_model');
  await run.answer(effect.id, answered(text));
  return run.result();
}

async function turns(count) {
  for (let turn = 0; turn < count; turn += 1) await setImmediate();
}

const texts = async (store) => {
  const { items } = await (await store.session('s')).messages();
  return items.map(({ parts }) => parts.map(({ text }) => text).join(''));
};

test('r18 a run of another process is live until its lease expires', async () => {
  // As in a Node that has Web Locks: nobody holds one, and nothing may be concluded from that.
  const asked = [];
  const locks = {
    request: async (name) => {
      asked.push(name);
    },
    query: async () => {
      asked.push('query');
      return { held: [], pending: [] };
    },
  };
  Object.defineProperty(globalThis.navigator, 'locks', { value: locks, configurable: true });
  try {
    const file = place('injected');
    const first = await open({ store: sqlite(file), now: () => 1_000_000 });
    const { run } = await start(first);

    const soon = await open({ store: sqlite(file), now: () => 1_020_000 });
    assert.deepEqual(await states(soon), [[run.id, 'live']]);
    await assert.rejects(
      resume(soon, run.id),
      (error) => error.code === 'busy' && error.details.leaseUntil === 1_030_000,
    );
    await assert.rejects((await soon.session('s')).discard(run.id), { code: 'busy' });
    const later = await open({ store: sqlite(file), now: () => 1_031_000 });
    assert.deepEqual(await states(later), [[run.id, 'interrupted']]);
    const resumed = await resume(later, run.id);
    assert.equal(resumed.id, run.id);
    // The new owner has a lease from its first write on.
    assert.deepEqual(await states(soon), [[run.id, 'live']]);
    await assert.rejects(resume(soon, run.id), { code: 'busy' });
    assert.deepEqual(asked, []);
    await Promise.all([first, soon, later].map((store) => store.close()));
  } finally {
    delete globalThis.navigator.locks;
  }
});

describe('with a simulated clock and timers', () => {
  let now;
  const clocked = async (file, more) => open({ store: sqlite(file), now: () => now, ...more });
  /** Lets time pass in steps of a second, and the work that it causes. */
  const pass = async (milliseconds) => {
    for (let left = milliseconds; left > 0; left -= 1000) {
      now += 1000;
      mock.timers.tick(1000);
      for (let turn = 0; turn < 8; turn += 1) await setImmediate();
    }
  };
  const withTimers = (name, body) =>
    test(name, async () => {
      now = 1_000_000;
      mock.timers.enable({ apis: ['setTimeout'] });
      try {
        await body();
      } finally {
        mock.timers.reset();
      }
    });

  withTimers('r18 a stream of two minutes keeps its run, and a renewal is one small batch', async () => {
    const file = place('stream');
    let writes = 0;
    const driver = sqlite(file);
    const counted = {
      ...driver,
      transaction: (statements) => {
        if (statements.some(({ sql }) => /^(INSERT|UPDATE|DELETE)/.test(sql))) writes += 1;
        return driver.transaction(statements);
      },
    };
    const owner = await clocked(file, { store: counted });
    const { run, effect } = await start(owner);
    await run.answer(effect.id, {
      type: 'response_started',
      status: 200,
      headers: { 'content-type': 'text/event-stream' },
    });
    const other = await clocked(file);
    let notified = 0;
    const watched = await other.session('s');
    watched.subscribe(() => {
      notified += 1;
    });
    const { updatedAt } = (await other.sessions()).items[0];
    const before = writes;
    for (let second = 0; second < 120; second += 10) {
      await pass(10_000);
      await watched.refresh();
      assert.deepEqual(await states(other), [[run.id, 'live']], `after ${second + 10} seconds`);
    }
    assert.ok(writes - before >= 8 && writes - before <= 13, `${writes - before} renewals in two minutes`);
    assert.equal((await other.sessions()).items[0].updatedAt, updatedAt, 'a renewal is no change of the session');
    assert.equal(notified, 0, 'a renewal is nothing to hear of');
    await assert.rejects(resume(other, run.id), { code: 'busy' });
    const encode = (text) => new TextEncoder().encode(text);
    await run.feed(
      effect.id,
      encode(
        'data: {"id":"r","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":"late"},"finish_reason":null}]}\n\n',
      ),
    );
    await run.feed(
      effect.id,
      encode(
        'data: {"id":"r","object":"chat.completion.chunk","model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      ),
    );
    await run.answer(effect.id, { type: 'response_end' });
    assert.equal(run.result().status, 'finished');
    const ended = writes;
    await pass(60_000);
    assert.equal(writes, ended, 'nothing is renewed after the end');
    await owner.close();
    await other.close();
  });

  withTimers('r18 an owner that was asleep and overtaken ends with conflict and writes nothing', async () => {
    const file = place('asleep');
    const owner = await clocked(file);
    const { run } = await start(owner);
    now += 31_000; // its timers do not run
    const other = await clocked(file);
    assert.deepEqual(await states(other), [[run.id, 'interrupted']]);
    const resumed = await resume(other, run.id);
    await pass(11_000); // it wakes up
    assert.deepEqual([run.status, run.result().error?.code], ['failed', 'conflict']);
    assert.equal((await answer(resumed, 'b')).status, 'finished');
    assert.deepEqual(await texts(other), ['q', 'b']);
    await (await owner.session('s')).refresh();
    assert.deepEqual(await texts(owner), ['q', 'b']);
    assert.deepEqual(await states(owner), []);
    await owner.close();
    await other.close();
  });

  withTimers('r18 an owner that was asleep and not overtaken goes on', async () => {
    const file = place('nap');
    const owner = await clocked(file);
    const { run } = await start(owner);
    now += 90_000;
    const other = await clocked(file);
    assert.deepEqual(await states(other), [[run.id, 'interrupted']]);
    await pass(11_000);
    assert.deepEqual(await states(other), [[run.id, 'live']]);
    assert.equal((await answer(run)).status, 'finished');
    await owner.close();
    await other.close();
  });

  withTimers('r18 a store that cannot be written to for a while costs a run nothing', async () => {
    const file = place('outage');
    const driver = sqlite(file);
    let isDown = false;
    const owner = await clocked(file, {
      store: {
        ...driver,
        transaction: (statements) => {
          if (isDown) throw Object.assign(new Error('the server is away'), { code: 'busy' });
          return driver.transaction(statements);
        },
      },
    });
    const { run } = await start(owner);
    isDown = true;
    await pass(25_000);
    isDown = false;
    await pass(5_000);
    const other = await clocked(file);
    await pass(10_000);
    assert.deepEqual(await states(other), [[run.id, 'live']]);
    assert.equal((await answer(run)).status, 'finished');
    await owner.close();
    await other.close();
  });

  withTimers(
    'r18 clocks: one that is ahead by half a lease takes no live run over, one that is set back harms nothing',
    async () => {
      const file = place('clocks');
      const owner = await clocked(file);
      const { run } = await start(owner);
      const ahead = await open({ store: sqlite(file), now: () => now + 15_000 });
      for (let second = 0; second < 60; second += 5) {
        await pass(5_000);
        assert.deepEqual(await states(ahead), [[run.id, 'live']]);
      }
      now -= 3_600_000;
      await pass(60_000);
      assert.deepEqual(await states(ahead), [[run.id, 'live']]);
      assert.equal((await answer(run)).status, 'finished');
      await owner.close();
      await ahead.close();
    },
  );

  withTimers('r18 closing the store and giving a run up end its lease', async () => {
    const file = place('closed');
    const owner = await clocked(file);
    const { run } = await start(owner);
    await owner.close();
    const other = await clocked(file);
    assert.deepEqual(await states(other), [[run.id, 'interrupted']]);
    const resumed = await resume(other, run.id);
    const third = await clocked(file);
    assert.deepEqual(await states(third), [[run.id, 'live']]);
    resumed[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
    for (let turn = 0; turn < 8; turn += 1) await setImmediate();
    assert.deepEqual(await states(third), [[run.id, 'interrupted']]);
    await other.close();
    await third.close();
  });

  withTimers('r69 of calls that open a session at once, each sees its interrupted run in its first view', async () => {
    const file = place('two-views');
    const owner = await clocked(file);
    const { run } = await start(owner);
    await owner.close();
    // Slow, so that the second call comes while the first one reads the run's journal.
    const driver = sqlite(file);
    const transaction = async (statements) => {
      await turns(8);
      return driver.transaction(statements);
    };
    const other = await clocked(file, { store: { ...driver, transaction } });
    const shown = async (_, delay) => {
      await turns(4 * delay);
      const session = await other.session('s');
      return session.view().getSnapshot().run;
    };
    const runs = await Promise.all(Array.from({ length: 12 }, shown));
    assert.deepEqual(runs, Array(12).fill({ id: run.id, status: 'interrupted' }));
    await other.close();
  });

  withTimers('r18 only one of two that resume at once owns the run', async () => {
    const file = place('race');
    const owner = await clocked(file);
    const { run } = await start(owner);
    await owner.close();
    const both = await Promise.all([clocked(file), clocked(file)]);
    const outcomes = await Promise.allSettled(both.map((store) => resume(store, run.id)));
    assert.deepEqual(outcomes.map(({ status, reason }) => reason?.code ?? status).sort(), ['busy', 'fulfilled']);
    await Promise.all(both.map((store) => store.close()));
  });
});

let redisServer;
before(async () => {
  redisServer = await startRedis();
});
after(() => redisServer?.stop());

for (const name of ['node:sqlite', 'ioredis', 'redis'])
  describe(`with real processes on ${name}`, () => {
    const program = fileURLToPath(new URL('lease-owner.mjs', import.meta.url));
    const LEASE_MS = 500;
    const placeOf = (test) => (name === 'node:sqlite' ? place(test) : `${redisServer.place} ${name}-${test}:`);
    /** Opens the store here; `end` closes it and its client. */
    const openHere = async (file) => {
      const { driver, end } = await openDriver(name, file);
      const store = await open({ store: driver, leaseMs: LEASE_MS });
      return {
        store,
        end: async () => {
          await store.close();
          await end();
        },
      };
    };
    /** A process that has begun a run. */
    const owner = async (file) => {
      const child = endsWithThisProcess(fork(program, [name, file, String(LEASE_MS)], { execArgv: ['--no-warnings'] }));
      const [id] = await once(child, 'message');
      return { child, id };
    };
    /** Tries until the run can be resumed; returns the run and how often it was busy. */
    const resumeWhenFree = async (store, id) => {
      for (let busy = 0; ; busy += 1) {
        const run = await resume(store, id).catch((error) => {
          assert.equal(error.code, 'busy');
          return null;
        });
        if (run) return { run, busy };
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
    };

    test('r18 a living process keeps its run; a frozen one loses it and notices when it wakes up', async () => {
      const file = placeOf('frozen');
      const { child, id } = await owner(file);
      const { store, end } = await openHere(file);
      const ends = new Set();
      while (ends.size < 8) {
        await assert.rejects(resume(store, id), (error) => {
          ends.add(error.details.leaseUntil);
          return error.code === 'busy';
        });
        await new Promise((resolve) => {
          setTimeout(resolve, 20);
        });
      }
      child.kill('SIGSTOP');
      const { run } = await resumeWhenFree(store, id);
      const asleep = once(child, 'message');
      child.kill('SIGCONT');
      child.send('answer');
      const [ended] = await asleep;
      assert.deepEqual(ended, { status: 'failed', code: 'conflict', saved: false });
      assert.equal((await answer(run, 'of the new owner')).status, 'finished');
      assert.deepEqual(await texts(store), ['q', 'of the new owner']);
      child.kill();
      await end();
    });

    test('r18 a killed process loses its run when the lease expires', async () => {
      const file = placeOf('killed');
      const { child, id } = await owner(file);
      child.kill('SIGKILL');
      await once(child, 'exit');
      const { store, end } = await openHere(file);
      const { run } = await resumeWhenFree(store, id);
      assert.equal((await answer(run, 'after the kill')).status, 'finished');
      assert.deepEqual(await texts(store), ['q', 'after the kill']);
      await end();
    });

    test('r18 a process that closes its store during a run can exit at once', async () => {
      const { child } = await owner(placeOf('exit'));
      child.send('close');
      child.disconnect();
      const [code] = await once(child, 'exit');
      assert.equal(code, 0);
    });
  });

describe('r18 a database that only one process can have open', () => {
  const exclusive = (database, ownedRuns) => ({ ...sqlite(database), ownedRuns });

  test('a run that is not active here is resumed at once; an active one is busy', async () => {
    const database = new DatabaseSync(':memory:');
    const now = () => 1_000_000;
    const former = new Set();
    const first = await open({ store: exclusive(database, former), now });
    const { run } = await start(first);
    assert.equal(former.size, 1);
    const beside = await open({ store: exclusive(database, former), now, name: 'another name' });
    assert.deepEqual(await states(beside), [[run.id, 'live']]);
    await assert.rejects(resume(beside, run.id), { code: 'busy' });
    // The next instance of the object: a set of its own, the same time.
    const next = await open({ store: exclusive(database, new Set()), now });
    assert.deepEqual(await states(next), [[run.id, 'interrupted']]);
    assert.equal((await answer(await resume(next, run.id), 'b')).status, 'finished');
    const late = await answer(run, 'late');
    assert.deepEqual([late.status, late.error?.code], ['failed', 'conflict']);
    assert.equal(former.size, 0);
    assert.deepEqual(await texts(next), ['q', 'b']);
    await Promise.all([first, beside, next].map((store) => store.close()));
  });

  test('an `ownedRuns` that is not a set is an error, and one that throws is not a trap', async () => {
    const database = new DatabaseSync(':memory:');
    for (const wrong of [7, 'x', {}, [], { has: 1 }]) {
      await assert.rejects(
        open({ store: exclusive(database, wrong) }),
        (error) => error.code === 'config_invalid' && /ownedRuns/.test(error.message),
      );
    }
    const fails = () => {
      throw new Error('no');
    };
    const store = await open({ store: exclusive(database, { has: fails, add: fails, delete: fails }) });
    await assert.rejects((await store.session('s')).run({ input: 'q', provider }), { code: 'store_error' });
    await store.close();
  });
});

test('r18 a wrong leaseMs is rejected', async () => {
  for (const leaseMs of [0, 99, -1, 1.5, Number.NaN, Number.POSITIVE_INFINITY, 86_400_001, '30000', {}, true]) {
    await assert.rejects(
      open({ store: 'memory', leaseMs }),
      (error) => error.code === 'config_invalid' && /leaseMs/.test(error.message),
      String(leaseMs),
    );
  }
  for (const leaseMs of [100, 86_400_000, undefined]) await (await open({ store: 'memory', leaseMs })).close();
});
