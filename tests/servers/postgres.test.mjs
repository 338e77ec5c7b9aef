// r46 r47 r48: rethread/postgres on a server of its own.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { open } from 'rethread';
import { postgres } from 'rethread/postgres';
import { cuttingProxy } from './cutting-proxy.mjs';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { twoProcesses } from './processes.mjs';
import { assertAllPassed, chat, startTesting } from './testing.mjs';

let server;
let testing;
const clients = [];
before(async () => {
  [server, testing] = await Promise.all([startPostgres(), startTesting()]);
});
after(async () => {
  await Promise.all(clients.map((client) => client.end().catch(() => {})));
  await server.stop();
});

const pool = (more) => {
  const made = new pg.Pool({ ...server.place, max: 4, ...more });
  made.on('error', () => {});
  clients.push(made);
  return made;
};
const database = async (name, settings = '') => {
  await pool().query(`CREATE DATABASE ${name}`);
  if (settings) await pool().query(`ALTER DATABASE ${name} SET ${settings}`);
  return { ...server.place, database: name };
};
const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];

for (const store of ['pg Pool', 'pg Client']) {
  describe(store, () => {
    test('r46 it conforms, r47 two processes lose nothing', async () => {
      const place = JSON.stringify(await database(store.toLowerCase().replace(' ', '_')));
      const ends = [];
      const driver = async () => {
        const opened = await openDriver(store, place);
        ends.push(opened.end);
        return opened.driver;
      };
      // Both open the empty database at once.
      await twoProcesses(store, place, 's', 200);
      await testing.nothingLost(await driver(), 's', 200);
      assertAllPassed(await testing.checkStore(driver, 'suite'));
      await Promise.all(ends.map((end) => end()));
    });

    test('a chat is written and read', async () => {
      const place = JSON.stringify(await database(`${store.toLowerCase().replace(' ', '_')}_chat`));
      const both = [await openDriver(store, place), await openDriver(store, place)];
      const drivers = both.map(({ driver }) => driver);
      assert.equal(await chat(open, () => drivers.shift()), 'postgres');
      await Promise.all(both.map(({ end }) => end()));
    });
  });
}

for (const level of ['repeatable read', 'serializable']) {
  test(`r47 ${level}: transactions that are aborted are repeated`, async () => {
    const place = JSON.stringify(
      await database(level.replace(' ', '_'), `default_transaction_isolation TO '${level}'`),
    );
    await twoProcesses('pg Pool', place, 's', 100);
    const { driver, end } = await openDriver('pg Pool', place);
    await testing.nothingLost(driver, 's', 100);
    await end();
  });
}

test('a schema of its own', async () => {
  const clientPool = pool(await database('schemas'));
  await clientPool.query('CREATE SCHEMA "a ""b"""; CREATE SCHEMA c');
  const first = await open({ store: postgres(clientPool, { schema: 'a "b"' }) });
  await (await first.session('s')).append(message('q'));
  const second = await open({ store: postgres(clientPool, { schema: 'c' }) });
  assert.equal((await second.sessions()).items.length, 0);
  assert.equal((await first.sessions()).items.length, 1);
  await assert.rejects(open({ store: postgres(clientPool, { schema: 'none' }) }), { code: 'store_error' });
  for (const wrong of ['', 7]) assert.throws(() => postgres(clientPool, { schema: wrong }), { code: 'config_invalid' });
});

test('long ids and names', async () => {
  const store = await open({ store: postgres(pool(await database('long'))) });
  // Random, so that nothing makes them shorter; the first two differ in their last character.
  const random = Array.from({ length: 6000 }, () => Math.random().toString(36)[3] ?? 'x').join('');
  for (const id of [`${random}a`, `${random}b`, random.slice(0, 1024), random.slice(0, 1025)]) {
    const session = await store.session(id, { channel: random });
    await session.append([
      { role: 'user', parts: [{ type: 'text', text: id.slice(-1) }] },
      { role: 'assistant', parts: [{ type: 'tool', callId: 'c', name: random, arguments: {}, result: id.length }] },
    ]);
  }
  assert.equal((await store.sessions({ channel: random })).items.length, 4);
  const { items } = await store.invocations({ tool: random });
  assert.equal(new Set(items.map(({ sessionId, session }) => sessionId ?? session)).size, 4);
});

describe('r48 an unusable store is rejected and unchanged', () => {
  const refused = async (given, expected) => {
    const error = await open({ store: postgres(given) }).then(
      () => assert.fail('it was opened'),
      (thrown) => thrown,
    );
    assert.equal(error.code, expected, error.message);
    assert.match(error.message, /postgres/);
  };

  test('a newer schema, and one of another application', async () => {
    const clientPool = pool(await database('versions'));
    await open({ store: postgres(clientPool) });
    await clientPool.query('UPDATE rethread_schema SET version = 4');
    await refused(clientPool, 'unsupported_version');
    for (const [at, sql] of [
      'CREATE TABLE rethread_runs (id INT)',
      'CREATE TABLE rethread_schema (id INT)',
    ].entries()) {
      const foreign = pool(await database(`foreign_${at}`));
      await foreign.query(sql);
      await refused(foreign, 'config_invalid');
      const { rows } = await foreign.query("SELECT 1 FROM pg_tables WHERE tablename LIKE 'rethread%'");
      assert.equal(rows.length, 1);
    }
  });

  test('a role without write permission', async () => {
    const place = await database('reading');
    const store = await open({ store: postgres(pool(place)) });
    await (await store.session('s')).append(message('q'));
    const reading = await open({ store: postgres(pool({ ...place, options: '-c default_transaction_read_only=on' })) });
    const session = await reading.session('s');
    assert.equal((await session.messages()).items.length, 1);
    await assert.rejects(
      session.append(message('r')),
      (error) => error.code === 'store_error' && /postgres.*read-only/.test(error.message),
    );
    await refused(
      pool({ ...(await database('empty')), options: '-c default_transaction_read_only=on' }),
      'store_error',
    );
  });

  test('a role without permissions', async () => {
    const place = await database('rights');
    const owner = pool(place);
    const store = await open({ store: postgres(owner) });
    const session = await store.session('s');
    await session.append(message('q'));
    await owner.query(
      'CREATE ROLE nobody LOGIN; CREATE ROLE reader LOGIN; GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader; REVOKE CREATE ON SCHEMA public FROM PUBLIC',
    );
    await refused(pool({ ...place, user: 'nobody' }), 'store_error');
    const reading = await (await open({ store: postgres(pool({ ...place, user: 'reader' })) })).session('s');
    assert.equal((await reading.messages()).items.length, 1);
    await assert.rejects(reading.append(message('r')), { code: 'store_error', message: /postgres.*permission denied/ });
    await session.refresh();
    assert.equal((await session.messages()).items.length, 1);

    const empty = await database('empty_rights');
    await pool(empty).query('REVOKE CREATE ON SCHEMA public FROM PUBLIC');
    await refused(pool({ ...empty, user: 'nobody' }), 'store_error');
    const { rows } = await pool(empty).query("SELECT 1 FROM pg_tables WHERE tablename LIKE 'rethread%'");
    assert.equal(rows.length, 0);
  });

  test('a client that was closed', async () => {
    const place = await database('ended');
    const ended = pool(place);
    const store = await open({ store: postgres(ended) });
    await ended.end();
    await assert.rejects(store.session('s'), { code: 'closed', message: /postgres/ });
    await refused(ended, 'closed');
    const client = new pg.Client(place);
    await client.connect();
    await client.end();
    await refused(client, 'closed');
  });

  test('a guarantee that the server does not give', async () => {
    const store = postgres(pool(await database('unsafe')));
    await assert.rejects(open({ store, durability: 'strict' }), {
      code: 'config_invalid',
      message: /postgres.*fsync = off/,
    });
    await (await open({ store, durability: 'relaxed' })).close();
    for (const wrong of [undefined, {}, 'postgres://'])
      assert.throws(() => postgres(wrong), { code: 'config_invalid' });
  });
});

describe('r48 a server that is unavailable', () => {
  const unavailable = (outcome) => (error) => {
    assert.deepEqual(
      [error.name, error.code, error.details],
      ['RethreadError', 'unavailable', { outcome }],
      error.message,
    );
    assert.match(error.message, /postgres/);
    return true;
  };

  test('stopped, or never started', async () => {
    const stopped = await startPostgres();
    const clientPool = new pg.Pool(stopped.place);
    clientPool.on('error', () => {});
    const session = await (await open({ store: postgres(clientPool) })).session('s');
    await session.append(message('q'));
    await stopped.stop();
    await assert.rejects(session.append(message('r')), unavailable('none'));
    await assert.rejects(session.refresh(), unavailable('none'));
    await assert.rejects(open({ store: postgres(clientPool) }), unavailable('none'));
    await clientPool.end();
    for (const place of [{ host: '/nowhere' }, { host: '127.0.0.1', port: 1 }]) {
      await assert.rejects(open({ store: postgres(new pg.Pool({ ...server.place, ...place })) }), unavailable('none'));
    }
  });

  test('connections that the server closed are replaced', async () => {
    const place = await database('ending');
    const session = await (await open({ store: postgres(pool(place)) })).session('s');
    await session.append(message('q'));
    await pool().query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = 'ending'");
    await session.append(message('r')).catch(unavailable('none'));
    await session.append(message('s'));
    const { items } = await session.messages();
    assert.deepEqual(
      items.map(({ parts }) => parts[0].text).filter((text) => text !== 'r'),
      ['q', 's'],
    );
  });

  test('a connection lost during a commit: written once, or reported as not written', async () => {
    const place = await database('cut');
    const proxy = await cuttingProxy(place);
    const clientPool = pool(proxy.place);
    const store = await open({ store: postgres(clientPool) });
    const session = await store.session('s');
    const texts = async () => {
      const fresh = await (await open({ store: postgres(pool(place)) })).session('s');
      return (await fresh.messages()).items.map(({ parts }) => parts[0].text);
    };
    await session.append(message('q'));

    proxy.cut('after');
    await session.append(message('reply lost'));
    proxy.cut('before');
    await session.append(message('request lost'));
    assert.deepEqual(await texts(), ['q', 'reply lost', 'request lost']);

    proxy.cut('after', 2);
    await assert.rejects(session.append(message('replies lost')), unavailable('unknown'));
    assert.deepEqual(await texts(), ['q', 'reply lost', 'request lost', 'replies lost']);
    proxy.cut('before', 2);
    await assert.rejects(session.append(message('requests lost')), unavailable('unknown'));
    assert.deepEqual(await texts(), ['q', 'reply lost', 'request lost', 'replies lost']);
    await session.append(message('r'));
    assert.equal((await texts()).length, 5);
    await clientPool.end();
    await proxy.close();
  });
});
