// r47: several processes append to one session through the public API. A store is a row.

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
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
