// r62: a store that takes a call and never answers. Nothing waits for it longer than `storeTimeoutMs`, and what it
// writes late is there once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createClient } from '@libsql/client';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { keyValueService } from './key-value-service.mjs';

const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } };
const user = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];
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
const parameters = { type: 'object', properties: {} };
const STORE_TIMEOUT_MS = 150;
/** The reads of a key-value store. */
const READS = new Set(['get', 'list']);
const pause = (ms) =>
  new Promise((resolve) => {
    setTimeout(resolve, ms);
  });

/**
 * The methods of a store behind a connection that can hang. While `line.isSilent`, calls are kept and never answered;
 * `line.deliver()` executes those that were kept, as packets that arrive late, and their callers do not learn of it.
 * `line.isDeaf`: executed at once, not answered. `line.sparesReads`: what a key-value store reads before it writes is
 * answered.
 */
function behindLine(store, methods) {
  const line = {
    isSilent: false,
    isDeaf: false,
    sparesReads: false,
    kept: [],
    deliver: async () => {
      const calls = line.kept.splice(0);
      for (const call of calls) await call();
      return calls.length;
    },
  };
  const guarded = { ...Object.fromEntries(Object.entries(store)) };
  for (const method of methods) {
    const call = (...args) => store[method](...args);
    guarded[method] = async (...args) => {
      if ((!line.isSilent && !line.isDeaf) || (line.sparesReads && READS.has(method))) return call(...args);
      if (line.isSilent) line.kept.push(() => call(...args));
      else await call(...args);
      return new Promise(() => {});
    };
  }
  return { line, guarded };
}

const KINDS = {
  'a LogStore': () => {
    const store = new MemoryLogStore();
    const made = behindLine(store, ['head', 'append', 'read', 'sessions', 'invocations', 'deleteSession']);
    return { ...made, guarded: { ...made.guarded, capabilities: () => ({ ...store.capabilities(), durable: true }) } };
  },
  'a SQL driver': () => behindLine(sqliteDriver(), ['transaction']),
  'a KvStore': () => behindLine(keyValueService(), ['get', 'list', 'put', 'delete', 'commit']),
  'a KvStore without commit': () => {
    const { commit, ...service } = keyValueService();
    return behindLine(service, ['get', 'list', 'put', 'delete']);
  },
};

function sqliteDriver() {
  const driver = sqlite(createClient({ url: ':memory:' }));
  return { dialect: driver.dialect, limits: driver.limits, transaction: (...args) => driver.transaction(...args) };
}

/** Fails if it takes longer than `ms`. */
async function within(ms, promise, what) {
  const late = Symbol('late');
  const timer = new AbortController();
  const first = await Promise.race([Promise.resolve(promise).catch((error) => error), pause(ms).then(() => late)]);
  timer.abort();
  assert.notEqual(first, late, `${what} did not settle within ${ms} ms`);
  return first;
}

const openOn = (store, more) => open({ store, storeTimeoutMs: STORE_TIMEOUT_MS, leaseMs: 60_000, ...more });
const BOUND = 4 * STORE_TIMEOUT_MS + 500;
const textsOf = async (session) =>
  (await session.messages()).items.map(({ parts }) => parts.map(({ text }) => text ?? 'call').join(''));

for (const [kind, make] of Object.entries(KINDS)) {
  describe(`r62 ${kind} that does not answer`, () => {
    test('an append ends with an unknown outcome, and one that arrives late is there once', {
      timeout: 20_000,
    }, async () => {
      const { line, guarded } = make();
      const client = await openOn(guarded);
      const session = await client.session('s');
      await session.append(user('one'));
      Object.assign(line, { isSilent: true, sparesReads: true });
      const error = await within(BOUND, session.append(user('two')), 'append');
      assert.deepEqual([error.code, error.details.outcome], ['store_error', 'unknown'], error.message);
      assert.match(error.message, /did not answer within 150 ms/);
      line.isSilent = false;
      assert.ok((await line.deliver()) > 0);
      await session.refresh();
      const texts = await textsOf(session);
      assert.ok(texts.filter((text) => text === 'two').length <= 1, texts.join());
      if (!texts.includes('two')) await session.append(user('two'));
      await session.append(user('three'));
      assert.deepEqual(await textsOf(session), ['one', 'two', 'three']);
      assert.deepEqual(await textsOf(await (await openOn(guarded)).session('s')), ['one', 'two', 'three']);
      await client.close();
    });

    test('an append that is written and not answered is found by the next one', { timeout: 20_000 }, async () => {
      const { line, guarded } = make();
      const client = await openOn(guarded);
      const session = await client.session('s');
      await session.append(user('one'));
      Object.assign(line, { isDeaf: true, sparesReads: true });
      const error = await within(BOUND, session.append(user('two')), 'append');
      assert.equal(error.details.outcome, 'unknown');
      line.isDeaf = false;
      await session.append(user('three'));
      const texts = await textsOf(session);
      assert.ok(['one,three', 'one,two,three'].includes(texts.join()), texts.join());
      await client.close();
    });

    test('close settles, and so does what was under way', { timeout: 20_000 }, async () => {
      const { line, guarded } = make();
      const client = await openOn(guarded);
      const session = await client.session('s');
      const run = await session.run({ input: 'Go', provider });
      line.isSilent = true;
      const driven = drive(run, { fetch: async () => answer({ content: 'Done.' }) });
      await pause(20);
      const appended = session.append(user('two'));
      const [closed] = await within(BOUND, Promise.allSettled([client.close(), driven.result, appended]), 'close');
      assert.equal(closed.status, 'fulfilled');
    });

    test('a cancel of a run that waits for an approval settles, and cancels it when the store answers', {
      timeout: 20_000,
    }, async () => {
      const { line, guarded } = make();
      const client = await openOn(guarded);
      const session = await client.session('s');
      let ran = 0;
      const tools = {
        f: {
          parameters,
          needsApproval: true,
          execute: () => {
            ran += 1;
          },
        },
      };
      const run = await session.run({ input: 'Go', provider, tools });
      assert.equal((await drive(run, { fetch: async () => answer(CALL) }).result).status, 'waiting_approval');
      line.isSilent = true;
      const error = await within(BOUND, run.cancel(), 'cancel');
      assert.deepEqual([error?.code, error?.details.outcome], ['store_error', 'unknown'], error?.message);
      assert.equal(run.status, 'waiting_approval');
      line.isSilent = false;
      await pause(BOUND);
      await run.cancel();
      assert.deepEqual([run.status, ran, await session.pendingRuns()], ['cancelled', 0, []]);
      await client.close();
    });

    test('opening, reading and listing settle', { timeout: 20_000 }, async () => {
      const { line, guarded } = make();
      const client = await openOn(guarded);
      await (await client.session('s')).append(user('one'));
      line.isSilent = true;
      for (const [what, call] of [
        ['open', async () => (await openOn(guarded)).session('s')],
        ['session', () => client.session('t')],
        ['sessions', () => client.sessions()],
        ['deleteSession', () => client.deleteSession('s')],
      ]) {
        const error = await within(BOUND, call(), what);
        assert.equal(error.code, 'store_error', `${what}: ${error.message}`);
        if (what !== 'session' && what !== 'sessions') continue;
        assert.equal(error.details.outcome, 'none', `${what} writes nothing: ${error.message}`);
        assert.doesNotMatch(error.message, /may be written/);
      }
      await within(BOUND, client.close(), 'close');
    });
  });

  for (const at of ['answer', 'result', 'turn']) {
    describe(`r62 a run on ${kind} that stops answering at its ${at}`, () => {
      const begin = async (onStore, more) => {
        const { line, guarded } = make();
        const client = await openOn(guarded, more);
        const session = await client.session('s');
        let ran = 0;
        const hang = (when) => {
          if (when === at) onStore(line);
        };
        const execute = async () => {
          ran += 1;
          hang('result');
          return 5;
        };
        let calls = 0;
        const fetch = async (_, { body }) => {
          calls += 1;
          const isLast = JSON.parse(new TextDecoder().decode(body)).messages.some(({ role }) => role === 'tool');
          hang(isLast ? 'turn' : 'answer');
          return answer(isLast ? { content: 'Done.' } : CALL);
        };
        const request = { provider, tools: { f: { parameters, execute } } };
        const run = await session.run({ input: 'Go', ...request });
        return { line, guarded, client, session, run, fetch, request, ran: () => ran, calls: () => calls };
      };

      test('goes on when the store answers again, and writes nothing twice', { timeout: 20_000 }, async () => {
        for (const silence of ['isSilent', 'isDeaf']) {
          const chat = await begin((line) => {
            line[silence] = true;
          });
          const driven = drive(chat.run, { fetch: chat.fetch, saveTimeoutMs: 10_000 });
          await pause(2 * STORE_TIMEOUT_MS + 100);
          Object.assign(chat.line, { isSilent: false, isDeaf: false });
          await chat.line.deliver();
          const result = await within(5_000, driven.result, 'the run');
          assert.equal(result.status, 'finished', JSON.stringify(result.error));
          assert.deepEqual([chat.ran(), chat.calls()], [1, 2]);
          await chat.line.deliver();
          for (const session of [chat.session, await (await openOn(chat.guarded)).session('s')]) {
            assert.deepEqual(await textsOf(session), ['Go', 'call', 'Done.'], silence);
            assert.deepEqual(
              (await session.invocations()).items.map(({ status }) => status),
              ['ok'],
            );
            assert.deepEqual(await session.pendingRuns(), []);
          }
          await chat.client.close();
        }
      });

      test('ends by `cancel` and by an abort', { timeout: 20_000 }, async () => {
        for (const how of ['cancel', 'abort']) {
          let hung;
          const hangs = new Promise((resolve) => {
            hung = resolve;
          });
          const chat = await begin((line) => {
            line.isSilent = true;
            hung();
          });
          const stop = new AbortController();
          const driven = drive(chat.run, { fetch: chat.fetch, signal: stop.signal });
          await hangs;
          await pause(20);
          if (how === 'abort') stop.abort();
          else await within(BOUND, chat.run.cancel(), 'cancel');
          const result = await within(BOUND, driven.result, how);
          assert.deepEqual([result.status, result.saved], ['cancelled', false]);
          await within(BOUND, chat.client.close(), 'close');
        }
      });
    });
  }
}

test('r62 a transaction of libSQL over the network that is not answered holds no other', {
  timeout: 10_000,
}, async () => {
  const insert = [{ sql: 'INSERT INTO t VALUES (1)', params: [] }];
  const select = [{ sql: 'SELECT a FROM t', params: [] }];
  let calls = 0;
  const batch = async (statements) => {
    calls += 1;
    return calls === 1 ? new Promise(() => {}) : statements.map(() => ({ rows: [] }));
  };
  for (const first of [insert, select]) {
    calls = 0;
    const driver = sqlite(/** @type {any} */ ({ protocol: 'http', batch }));
    driver.transaction(first);
    for (const statements of [insert, select])
      assert.deepEqual(await within(BOUND, driver.transaction(statements), 'the next one'), [[]]);
    assert.equal(calls, 3);
  }
});

test('r62 storeTimeoutMs is a whole number of milliseconds', async () => {
  for (const storeTimeoutMs of [0, 9, -1, 1.5, NaN, Infinity, '100', {}]) {
    await assert.rejects(
      open({ store: 'memory', storeTimeoutMs }),
      (error) => error.code === 'config_invalid' && /storeTimeoutMs/.test(error.message),
      String(storeTimeoutMs),
    );
  }
});

test('r62 a store that answers leaves no timer behind', async () => {
  const { setTimeout: set, clearTimeout: clear } = globalThis;
  const timers = new Set();
  let count = 0;
  globalThis.setTimeout = /** @type {any} */ (
    (run, ms, ...rest) => {
      const timer = set(run, ms, ...rest);
      if (ms === 60_000) count += timers.add(timer) && 1;
      return timer;
    }
  );
  globalThis.clearTimeout = (timer) => {
    timers.delete(timer);
    clear(timer);
  };
  try {
    const { guarded } = KINDS['a LogStore']();
    const client = await open({ store: guarded });
    await (await client.session('s')).append(user('one'));
    await client.close();
    assert.ok(count > 2);
    assert.equal(timers.size, 0);
  } finally {
    Object.assign(globalThis, { setTimeout: set, clearTimeout: clear });
  }
});

test('r62 a `close` of the store that does not answer', { timeout: 10_000 }, async () => {
  const store = Object.assign(new MemoryLogStore(), { close: () => new Promise(() => {}) });
  const error = await within(BOUND, (await openOn(store)).close(), 'close');
  assert.deepEqual([error.code, error.details.outcome], ['store_error', 'unknown']);
});
