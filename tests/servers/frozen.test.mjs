// r48: databases that earlier versions wrote, frozen in tests/frozen, are read and written by this one.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { open } from 'rethread';
import { postgres } from 'rethread/postgres';
import { sqlite } from 'rethread/sqlite';
import { readFrozenChat } from '../frozen/frozen-chat.mjs';
import { startPostgres } from './postgres-server.mjs';

/** Versions of stored data that were released or are about to be: each has its files. */
const VERSIONS = [1];
const frozen = (name) => fileURLToPath(new URL(`../frozen/${name}`, import.meta.url));
const expected = (version) => JSON.parse(readFileSync(frozen(`chat-${version}.expected.json`), 'utf8'));

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-frozen-'));
let server;
before(async () => { server = await startPostgres(); });
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

for (const version of VERSIONS) {
  test(`r48 a SQLite file of version ${version}`, async () => {
    const file = path.join(folder, `${version}.sqlite`);
    copyFileSync(frozen(`chat-${version}.sqlite`), file);
    const driver = sqlite(file);
    assert.deepEqual(await readFrozenChat(open, { store: driver }), expected(version));
  });

  test(`r48 a PostgreSQL database of version ${version}`, async () => {
    const pool = new pg.Pool(server.place);
    pool.on('error', () => {});
    await pool.query(readFileSync(frozen(`chat-${version}.postgres.sql`), 'utf8'));
    assert.deepEqual(await readFrozenChat(open, { store: postgres(pool) }), expected(version));
    await pool.end();
  });
}
