// r46 r47 r48: rethread/redis on a server of its own, through both clients.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { Redis } from 'ioredis';
import { createClient } from 'redis';
import { open } from 'rethread';
import { redis } from 'rethread/redis';
import { openDriver } from './drivers.mjs';
import { twoProcesses } from './processes.mjs';
import { startRedis } from './redis-server.mjs';
import { assertAllPassed, chat, startTesting } from './testing.mjs';

let server;
let testing;
/** @type {Redis} */
let raw;
before(async () => {
  [server, testing] = await Promise.all([startRedis(), startTesting()]);
  raw = new Redis(server.place);
});
after(async () => {
  raw.disconnect();
  await server.stop();
});

for (const store of ['ioredis', 'redis']) {
  describe(store, () => {
    // The suite's heads are no sessions, so each test has keys of its own.
    const place = (name) => `${server.place} ${store}-${name}:`;

    test('r46 it conforms', async () => {
      const ends = [];
      const driver = async () => {
        const opened = await openDriver(store, place('suite'));
        ends.push(opened.end);
        return opened.driver;
      };
      assertAllPassed(await testing.checkStore(driver, 'suite'));
      await Promise.all(ends.map((end) => end()));
    });

    test('r47 two processes of 200 appends each lose nothing', async () => {
      const conflicts = await twoProcesses(store, place('both'), 'both', 200);
      const { driver, end } = await openDriver(store, place('both'));
      await testing.nothingLost(driver, 'both', 200);
      assert.equal(conflicts.length, 2);
      await end();
    });

    test('a chat is written and read', async () => {
      const both = [await openDriver(store, place('chat')), await openDriver(store, place('chat'))];
      const drivers = both.map(({ driver }) => driver);
      assert.equal(await chat(open, () => drivers.shift()), 'redis');
      await Promise.all(both.map(({ end }) => end()));
    });
  });
}

test('prefixes are separate, and keys are listed by their prefix', async () => {
  const [one, two] = ['a:', 'a*['].map((prefix) => redis(raw, { prefix }));
  const message = [{ role: 'user', parts: [{ type: 'text', text: 'q' }] }];
  const first = await open({ store: one });
  await (await first.session('s')).append(message);
  const second = await open({ store: two });
  assert.deepEqual((await second.sessions()).items, []);
  assert.deepEqual(
    (await first.sessions()).items.map(({ id }) => id),
    ['s'],
  );
  await first.deleteSession('s');
  assert.deepEqual((await raw.keys('a:*')).sort(), ['a::keys', 'a:head:s', 'a:schema']);
});

describe('r48 an unusable store is rejected and unchanged', () => {
  const refused = async (prefix, code) => {
    const before = await raw.dbsize();
    const error = await open({ store: redis(raw, { prefix }) }).then(
      () => assert.fail('it was opened'),
      (thrown) => thrown,
    );
    assert.equal(error.code, code, error.message);
    assert.match(error.message, /redis/);
    assert.equal(await raw.dbsize(), before);
  };

  test('a newer layout, and keys of another application', async () => {
    await raw.set('newer:schema', 'rethread records 2');
    await refused('newer:', 'unsupported_version');
    await raw.set('other:schema', 'something');
    await refused('other:', 'config_invalid');
    await raw.set('app:user:1', 'somebody');
    await refused('app:', 'config_invalid');
    await raw.lpush('list:schema', 'x');
    await refused('list:', 'store_error');
  });

  test('a wrong client, a closed client, a guarantee that Redis cannot give', async () => {
    for (const wrong of [undefined, {}, 'redis://localhost'])
      assert.throws(() => redis(wrong), { code: 'config_invalid' });
    assert.throws(() => redis(raw, { prefix: '' }), { code: 'config_invalid' });
    await assert.rejects(open({ store: redis(raw), durability: 'strict' }), { code: 'config_invalid' });
    const closed = new Redis(server.place);
    const store = await open({ store: redis(closed) });
    closed.disconnect();
    await assert.rejects(store.session('s'), { code: 'closed' });
    const client = createClient({ socket: { path: server.place } });
    await client.connect();
    const other = await open({ store: redis(client) });
    await client.close();
    await assert.rejects(other.session('s'), { code: 'closed' });
  });

  test('a connection that was lost is `unavailable`, one that was closed is `closed`', async () => {
    const messages = {
      'Socket closed unexpectedly': 'unavailable',
      'read ECONNRESET': 'unavailable',
      'The client is closed': 'closed',
      'Disconnects client': 'closed',
      'Connection is closed.': 'closed',
    };
    for (const [text, code] of Object.entries(messages)) {
      const store = { ...redis(raw), get: () => Promise.reject(new Error(text)) };
      await assert.rejects(open({ store }), { code, message: /redis/ }, text);
    }
  });

  test('r48 FLUSHALL under an open session is `evicted`, and the session can be begun again', async () => {
    const server = await startRedis();
    const client = new Redis(server.place);
    const store = await open({ store: redis(client) });
    const session = await store.session('s');
    const append = (to) => to.append([{ role: 'user', parts: [{ type: 'text', text: 'q' }] }]);
    await append(session);
    await client.flushall();
    for (let attempt = 0; attempt < 2; attempt += 1) await assert.rejects(append(session), { code: 'evicted' });
    assert.equal((await store.status()).state, 'evicted');
    const again = await store.session('s');
    await append(again);
    assert.equal((await again.messages()).items.length, 1);
    client.disconnect();
    await server.stop();
  });

  test('a full memory', async () => {
    const full = await startRedis({ settings: ['--maxmemory', '3mb', '--maxmemory-policy', 'noeviction'] });
    const client = new Redis(full.place);
    const session = await (await open({ store: redis(client) })).session('s');
    const append = (text) => session.append([{ role: 'user', parts: [{ type: 'text', text }] }]);
    await append('q');
    await assert.rejects(
      async () => {
        for (let i = 0; i < 20; i += 1) await append('x'.repeat(300_000));
      },
      { code: 'quota_exceeded' },
    );
    const { items } = await session.messages();
    assert.ok(items.length >= 1);
    client.disconnect();
    await full.stop();
  });
});
