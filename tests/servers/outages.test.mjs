// r48, r58: a store that is locked, full or gone while a run stores the result of a tool: `drive` saves again, and ends
// the run if that takes too long.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Redis } from 'ioredis';
import pg from 'pg';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { postgres } from 'rethread/postgres';
import { redis } from 'rethread/redis';
import { sqlite } from 'rethread/sqlite';
import { outageOf } from '../bindings/scenarios/outages.mjs';
import { askWorkerd, startWorkerd } from '../workerd.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { mountSmallDisk } from './small-disk.mjs';

const POINTS = ['result', 'answer', 'turn'];
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-outages-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** The run survives an outage of a second, and ends "failed" in one that lasts longer than its limit; then it is
 *  resumed. */
async function survives(openStore, { begin, end }) {
  const reopen = async () => open({ store: await openStore(), leaseMs: 1000 });
  for (const at of POINTS) {
    const outage = await outageOf({ open: reopen, drive }, { at, begin, end, lastsMs: 1000 });
    assert.deepEqual(
      [outage.result.status, outage.ran],
      ['finished', 1],
      `${at}: ${JSON.stringify(outage.result.error)}`,
    );
    assert.ok(
      outage.events.some(({ type }) => type === 'save_failed'),
      at,
    );
    const stored = await (await reopen()).session('s');
    assert.deepEqual(
      (await stored.messages()).items.map(({ role }) => role),
      ['user', 'assistant', 'assistant'],
      at,
    );
    await outage.client.deleteSession('s');
  }
  const { result, run, session, client, request } = await outageOf(
    { open: reopen, drive },
    { at: 'result', begin, end, lastsMs: 0, saveTimeoutMs: 500 },
  );
  assert.equal(result.status, 'failed', JSON.stringify(result));
  await end();
  await new Promise((resolve) => {
    setTimeout(resolve, 1500);
  });
  const finished = await drive(await session.resume(run.id, request.request), { fetch: request.fetch }).result;
  assert.deepEqual([finished.status, request.ran()], ['finished', 1]);
  await client.deleteSession('s');
}

describe('r48 r58 a run and its store', { timeout: 120_000 }, () => {
  test('SQLite, locked by another connection', async () => {
    const file = path.join(folder, 'locked.sqlite');
    const openStore = () => {
      const database = new DatabaseSync(file);
      database.exec('PRAGMA busy_timeout = 50');
      return sqlite(database);
    };
    await open({ store: openStore() });
    const other = new DatabaseSync(file);
    await survives(openStore, { begin: () => other.exec('BEGIN IMMEDIATE'), end: () => other.exec('ROLLBACK') });
    other.close();
  });

  test('SQLite, on a full disk', async () => {
    const disk = mountSmallDisk(6);
    const databases = [];
    try {
      const openStore = () => {
        const database = new DatabaseSync(path.join(disk.folder, 'full.sqlite'));
        databases.push(database);
        return sqlite(database);
      };
      await survives(openStore, { begin: () => disk.fillUp(), end: () => disk.free() });
    } finally {
      databases.forEach((database) => database.close());
      disk.unmount();
    }
  });

  test('Redis, full', async () => {
    const server = await startRedis({ settings: ['--maxmemory-policy', 'noeviction'] });
    const admin = new Redis(server.place);
    const clients = [admin];
    const openStore = () => {
      clients.push(new Redis(server.place));
      return redis(clients.at(-1));
    };
    await survives(openStore, {
      begin: () => admin.config('SET', 'maxmemory', '1'),
      end: () => admin.config('SET', 'maxmemory', '0'),
    });
    clients.forEach((client) => client.disconnect());
    await server.stop();
  });

  test('Redis, gone and started again', async () => {
    let server = await startRedis();
    const clients = [];
    const openStore = () => {
      clients.push(new Redis(server.place, { maxRetriesPerRequest: 1 }));
      clients.at(-1).on('error', () => {});
      return redis(clients.at(-1));
    };
    const end = async () => {
      server = await startRedis({ folder: server.folder });
    };
    await survives(openStore, { begin: () => server.kill(), end });
    clients.forEach((client) => client.disconnect());
    await server.stop();
  });

  test('PostgreSQL, locked by another connection', async () => {
    const server = await startPostgres();
    const pools = [];
    const openStore = () => {
      pools.push(new pg.Pool({ ...server.place, max: 3 }));
      pools.at(-1).on('error', () => {});
      return postgres(pools.at(-1));
    };
    const admin = new pg.Client(server.place);
    await admin.connect();
    await admin.query("ALTER DATABASE postgres SET lock_timeout = '50ms'");
    await open({ store: openStore() });
    await survives(openStore, {
      begin: () => admin.query('BEGIN; LOCK TABLE rethread_heads'),
      end: () => admin.query('ROLLBACK'),
    });
    await admin.end();
    for (const pool of pools) await pool.end();
    await server.stop();
  });

  test('a Durable Object whose storage rejects writes', async () => {
    const worker = startWorkerd(
      fileURLToPath(new URL('../..', import.meta.url)),
      fileURLToPath(new URL('object.js', import.meta.url)),
      {
        compatibilityFlags: ['nodejs_compat'],
        durableObjects: { CHATS: { className: 'Chat', useSQLite: true } },
      },
    );
    for (const at of POINTS)
      assert.deepEqual(
        await askWorkerd(worker, `outage?at=${at}`),
        { status: 'finished', ran: 1, failed: true, roles: ['user', 'assistant', 'assistant'] },
        at,
      );
    await worker.dispose();
  });
});
