// r48: databases that earlier versions wrote, frozen in tests/frozen, are read and written by this one; those of newer
// versions and of somebody else are refused with an error that names the store, and stay as they are. In workerd:
// workers.test.mjs.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import pg from 'pg';
import { open } from 'rethread';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { readFrozenChat } from '../frozen/frozen-chat.mjs';
import { dumpRedis, dumpStorage, loadRedis, loadStorage } from '../frozen/key-value-dump.mjs';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';

/** Versions of stored data that were released or are about to be: each has its files. */
const VERSIONS = [1];
const frozen = (name) => fileURLToPath(new URL(`../frozen/${name}`, import.meta.url));
const text = (name) => readFileSync(frozen(name), 'utf8');
const json = (name) => JSON.parse(text(name));

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-frozen-'));
let server;
let redisServer;
/** @type {Redis} */
let raw;
before(async () => {
  [server, redisServer] = await Promise.all([startPostgres(), startRedis()]);
  raw = new Redis(redisServer.place);
});
after(async () => {
  raw?.disconnect();
  await Promise.all([server?.stop(), redisServer?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

/** Of each store: loads what is frozen, makes a newer one of it, and one of somebody else; returns a place, and reads
 *  all that is there. */
const sqliteFile = (store) => {
  const plain = store.replace(/\W/g, '');
  const file = (name) => path.join(folder, `${plain}-${name}.sqlite`);
  const changed = (name, sql) => {
    const database = new DatabaseSync(file(name));
    database.exec(sql);
    database.close();
    return file(name);
  };
  const load = (name, version) => {
    copyFileSync(frozen(`chat-${version}.sqlite`), file(name));
    return file(name);
  };
  return {
    name: 'sqlite',
    old: (version) => load('old', version),
    newer(version) {
      load('newer', version);
      return changed('newer', 'UPDATE rethread_schema SET version = 99');
    },
    foreign: () => changed('foreign', 'CREATE TABLE rethread_log (id INTEGER)'),
    content: (place) => readFileSync(place),
  };
};
const postgresDatabase = (store) => {
  const database = async (name, ...texts) => {
    const place = { ...server.place, database: `${name}_${store.replace(/\W/g, '').toLowerCase()}` };
    await onPostgres(server.place, `CREATE DATABASE ${place.database}`);
    for (const sql of texts) await onPostgres(place, sql);
    return JSON.stringify(place);
  };
  return {
    name: 'postgres',
    old: (version) => database('old', text(`chat-${version}.postgres.sql`)),
    newer: (version) =>
      database('newer', text(`chat-${version}.postgres.sql`), 'UPDATE rethread_schema SET version = 99'),
    foreign: () => database('foreign', 'CREATE TABLE rethread_log (id INTEGER)'),
    content: async (place) => {
      const tables = await onPostgres(
        JSON.parse(place),
        "SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY name",
      );
      return Promise.all(
        tables.map(async ({ name }) => [name, await onPostgres(JSON.parse(place), `SELECT * FROM ${name}`)]),
      );
    },
  };
};
async function onPostgres(place, sql) {
  const client = new pg.Client(place);
  await client.connect();
  try {
    return (await client.query(sql)).rows;
  } finally {
    await client.end();
  }
}
const redisKeys = {
  name: 'redis',
  async old(version) {
    await raw.flushall();
    await loadRedis(raw, json(`chat-${version}.redis.json`));
    return redisServer.place;
  },
  async newer(version) {
    const place = await this.old(version);
    await raw.set('rethread:schema', 'rethread records 99');
    return place;
  },
  async foreign() {
    await raw.flushall();
    await raw.set('rethread:user:1', 'somebody');
    return redisServer.place;
  },
  content: () => dumpRedis(raw),
};

const STORES = {
  'node:sqlite': sqliteFile('node:sqlite'),
  DatabaseSync: sqliteFile('DatabaseSync'),
  '@libsql/client': sqliteFile('@libsql/client'),
  'pg Pool': postgresDatabase('pg Pool'),
  'pg Client': postgresDatabase('pg Client'),
  ioredis: redisKeys,
  redis: redisKeys,
};

for (const [store, database] of Object.entries(STORES)) {
  describe(store, () => {
    const refused = async (place, code) => {
      const content = await database.content(place);
      const { driver, end } = await openDriver(store, place);
      await assert.rejects(open({ store: driver }), (error) => {
        assert.deepEqual([error.name, error.code], ['RethreadError', code], error.message);
        assert.match(error.message, new RegExp(`the ${database.name} store`));
        return true;
      });
      await end();
      assert.deepEqual(await database.content(place), content);
    };

    for (const version of VERSIONS) {
      test(`r48 what version ${version} wrote`, async () => {
        const { driver, end } = await openDriver(store, await database.old(version));
        assert.deepEqual(await readFrozenChat(open, { store: driver }), json(`chat-${version}.expected.json`));
        await end();
      });
    }
    test('r48 what a newer version wrote is left alone', async () =>
      refused(await database.newer(VERSIONS[0]), 'unsupported_version'));
    test('r48 what somebody else wrote is left alone', async () => refused(await database.foreign(), 'config_invalid'));
  });
}

describe('unstorage', () => {
  const storageOf = async (dump) => {
    const storage = createStorage();
    await loadStorage(storage, dump);
    return storage;
  };
  const refused = async (storage, code) => {
    const content = await dumpStorage(storage);
    await assert.rejects(open({ store: unstorage(storage) }), {
      name: 'RethreadError',
      code,
      message: /the unstorage store/,
    });
    assert.deepEqual(await dumpStorage(storage), content);
  };

  for (const version of VERSIONS) {
    test(`r48 what version ${version} wrote`, async () => {
      const storage = await storageOf(json(`chat-${version}.unstorage.json`));
      assert.deepEqual(
        await readFrozenChat(open, { store: unstorage(storage) }),
        json(`chat-${version}.expected.json`),
      );
    });
  }
  test('r48 what a newer version wrote is left alone', async () => {
    const storage = await storageOf(json(`chat-${VERSIONS[0]}.unstorage.json`));
    await storage.setItemRaw('rethread:schema', new TextEncoder().encode('rethread appends 99'));
    await refused(storage, 'unsupported_version');
  });
  test('r48 what somebody else wrote is left alone', async () =>
    refused(await storageOf({ 'rethread:user': 'AAAA' }), 'config_invalid'));
});
