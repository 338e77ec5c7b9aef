// r46: a turn costs a store the same at 100 and at 10,000 messages: requests, operations and bytes, counted. D1,
// Durable Objects and Workers KV are in workers.test.mjs, IndexedDB and localStorage in
// tests/browser/turn-costs.test.mjs, better-sqlite3 in tests/better-sqlite3.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { assertConstant, LENGTHS, TURNS_AT_ONCE } from './constant-costs.mjs';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { counted, turnCosts } from './turn-costs.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-costs-'));
let postgres;
let redis;
before(async () => {
  [postgres, redis] = await Promise.all([startPostgres(), startRedis()]);
});
after(async () => {
  await Promise.all([postgres?.stop(), redis?.stop()]);
  rmSync(folder, { recursive: true, force: true });
});

const STORES = {
  'node:sqlite': () => path.join(folder, 'node.sqlite'),
  '@libsql/client': () => path.join(folder, 'libsql.sqlite'),
  'pg Pool': () => JSON.stringify(postgres.place),
  ioredis: () => `${redis.place} ioredis:`,
  redis: () => `${redis.place} redis:`,
  'unstorage fs': () => path.join(folder, 'unstorage'),
};

for (const [store, place] of Object.entries(STORES)) {
  test(`r46 a turn costs the same at any length: ${store}`, async () => {
    const { driver, end } = await openDriver(store, place());
    try {
      assertConstant(await turnCosts(open, counted(driver), LENGTHS, TURNS_AT_ONCE), {
        listsAppends: !driver.transaction && !driver.commit,
      });
    } finally {
      await end();
    }
  });
}
