// r47: several processes append to one session through the public API. A store is a row.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { pathToFileURL } from 'node:url';
import { createClient } from '@libsql/client';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { manyWriters } from './many-writers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';

const APPENDS = 200;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-processes-'));
let postgres;
let redis;
before(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
});
after(async () => {
  await Promise.all([postgres?.stop(), redis?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const file = (name) => () => path.join(folder, `${name}.sqlite`);
const STORES = [
  { name: 'node:sqlite', writers: 2, place: file('node') },
  { name: '@libsql/client', writers: 2, place: file('libsql') },
  { name: '@libsql/client that does not wait', writers: 4, place: file('impatient') },
  { name: 'pg Pool', writers: 4, place: () => JSON.stringify(postgres.place) },
  { name: 'ioredis', writers: 4, place: () => `${redis.place} ioredis:` },
  { name: 'redis', writers: 4, place: () => `${redis.place} redis:` },
];

describe('r47 processes that append at once lose and duplicate nothing, each in its order', () => {
  for (const { name, writers, place } of STORES) {
    test(`${writers} processes, ${name}`, async (context) => {
      context.diagnostic(JSON.stringify(await manyWriters(name, place(), writers, APPENDS)));
    });
  }
});

describe('r47 @libsql/client: a lock that outlasts the wait is busy, says what to do, and leaves none', () => {
  const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];

  for (const [journal, lock] of [
    ['DELETE', 'BEGIN IMMEDIATE'],
    ['DELETE', 'BEGIN EXCLUSIVE'],
    ['DELETE', 'BEGIN; SELECT * FROM rethread_schema'],
    ['WAL', 'BEGIN IMMEDIATE'],
  ]) {
    test(`${journal}, ${lock}`, async () => {
      const url = pathToFileURL(path.join(folder, `${journal} ${lock.replace(/\W/g, '-')}.sqlite`)).href;
      // Of libSQL as well: two libraries in one process would not see each other's locks.
      const other = createClient({ url });
      await other.execute(`PRAGMA journal_mode = ${journal}`);
      const client = createClient({ url, timeout: 100 });
      const store = await open({ store: sqlite(client) });
      const session = await store.session('s');
      await session.append(message('first'));
      const held = await other.transaction('deferred');
      await held.executeMultiple(`COMMIT; ${lock}`);
      if (lock.includes('SELECT')) await held.execute('SELECT * FROM rethread_schema');
      for (const text of ['second', 'third']) {
        await assert.rejects(session.append(message(text)), (error) => {
          assert.equal(error.code, 'busy', error.message);
          assert.match(error.message, /timeout: 200/);
          return true;
        });
      }
      await held.rollback();
      await other.executeMultiple('BEGIN EXCLUSIVE; ROLLBACK');
      await session.append(message('fourth'));
      await other.executeMultiple('BEGIN EXCLUSIVE; ROLLBACK');
      assert.equal(session.revision, 2);
      await store.close();
      client.close();
      other.close();
    });
  }

  test('a transaction of the same process goes on meanwhile, and so do reads', async () => {
    const url = pathToFileURL(path.join(folder, 'same-process.sqlite')).href;
    const client = createClient({ url, timeout: 5000 });
    const store = await open({ store: sqlite(client) });
    const session = await store.session('s');
    await session.append(message('first'));
    for (const [mode, own] of [
      ['write', client],
      ['read', client],
      ['write', createClient({ url })],
    ]) {
      const held = await own.transaction(mode);
      await held.execute('SELECT * FROM rethread_schema');
      const start = performance.now();
      const appended = session.append(message(mode));
      let turns = 0;
      const turn = setInterval(() => {
        turns += 1;
      }, 10);
      await new Promise((resolve) => setTimeout(resolve, 150));
      assert.equal((await store.session('s')).revision, session.revision);
      await held.execute('SELECT 1');
      await held.commit();
      await appended;
      clearInterval(turn);
      assert.ok(turns >= 4, `${turns} turns of the event loop`);
      assert.ok(performance.now() - start < 2500);
      if (own !== client) own.close();
    }
    assert.equal(session.revision, 4);
    await store.close();
    client.close();
  });

  test('an erasure that waits for a reader of the same process lets it end', async () => {
    const url = pathToFileURL(path.join(folder, 'erasure.sqlite')).href;
    const other = createClient({ url });
    await other.execute('PRAGMA journal_mode = WAL');
    const client = createClient({ url, timeout: 5000 });
    const driver = sqlite(client);
    await driver.transaction([{ sql: 'CREATE TABLE t (a)', params: [] }]);
    const held = await other.transaction('read');
    await held.execute('SELECT * FROM t');
    await driver.transaction([{ sql: 'INSERT INTO t VALUES (1)', params: [] }]);
    const erased = driver.eraseOverwritten?.();
    await new Promise((resolve) => setTimeout(resolve, 100));
    await held.rollback();
    await erased;
    client.close();
    other.close();
  });

  test('a client that cannot tell its wait reads', async () => {
    const client = createClient({ url: ':memory:' });
    const execute = async (statement) => {
      if (String(statement).startsWith('PRAGMA busy_timeout')) throw new Error('unsupported');
      return client.execute(statement);
    };
    const { protocol } = client;
    const more = { batch: client.batch.bind(client), executeMultiple: client.executeMultiple.bind(client) };
    const driver = sqlite({ protocol, execute, ...more });
    assert.deepEqual(
      (await driver.transaction([{ sql: 'SELECT 1 AS a', params: [] }])).map(([row]) => row.a),
      [1],
    );
    client.close();
  });
});
