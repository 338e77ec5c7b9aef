// Writes the frozen databases of the current version: node tests/frozen/write.mjs <version>
// sqlite|postgres|redis|unstorage|indexed-db|localstorage
//
// Files of older versions are never written again: a test opens each with the current build.

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { writeFrozenChat } from './frozen-chat.mjs';
import { dumpDatabase } from './indexed-db-dump.mjs';
import { dumpRedis, dumpStorage } from './key-value-dump.mjs';

const [version, kind] = process.argv.slice(2);
const writeJson = (extension, value) => writeFileSync(place(extension), `${JSON.stringify(value, null, 1)}\n`);
const place = (extension) => fileURLToPath(new URL(`chat-${version}.${extension}`, import.meta.url));

const WRITERS = {
  async sqlite() {
    const [{ DatabaseSync }, { sqlite }] = await Promise.all([import('node:sqlite'), import('rethread/sqlite')]);
    const database = new DatabaseSync(place('sqlite'));
    database.exec('PRAGMA page_size = 512');
    await writeFrozenChat(open, { store: sqlite(database) });
    database.exec('VACUUM');
    database.close();
  },
  async postgres() {
    const [{ default: pg }, { postgres }, { startPostgres }] = await Promise.all([
      import('pg'),
      import('rethread/postgres'),
      import('../servers/postgres-server.mjs'),
    ]);
    const server = await startPostgres();
    const pool = new pg.Pool(server.place);
    pool.on('error', () => {});
    await writeFrozenChat(open, { store: postgres(pool) });
    await pool.end();
    const options = [
      '-h',
      server.place.host,
      '-U',
      'postgres',
      '--inserts',
      '--no-owner',
      '--no-privileges',
      '--no-comments',
      'postgres',
    ];
    const dump = execFileSync(path.join(process.env.POSTGRES_BIN, 'pg_dump'), options, { encoding: 'utf8' });
    // Settings and directives for psql are not needed.
    writeFileSync(
      place('postgres.sql'),
      dump
        .split('\n')
        .filter((line) => !/^(--|SET |SELECT pg_catalog\.set_config|\\|$)/.test(line))
        .join('\n'),
    );
    await server.stop();
  },
  async redis() {
    const [{ Redis }, { redis }, { startRedis }] = await Promise.all([
      import('ioredis'),
      import('rethread/redis'),
      import('../servers/redis-server.mjs'),
    ]);
    const server = await startRedis();
    const client = new Redis(server.place);
    await writeFrozenChat(open, { store: redis(client) });
    writeJson('redis.json', await dumpRedis(client));
    client.disconnect();
    await server.stop();
  },
  async unstorage() {
    const [{ createStorage }, { unstorage }] = await Promise.all([import('unstorage'), import('rethread/unstorage')]);
    const storage = createStorage();
    await writeFrozenChat(open, { store: unstorage(storage) });
    writeJson('unstorage.json', await dumpStorage(storage));
  },
  async localstorage() {
    const { openWorld } = await import('../browser/page.mjs');
    const world = await openWorld();
    const page = await world.page();
    await page.evaluate(`(${writeFrozenChat})(rethread.open, { store: 'localstorage', name: 'frozen' })`);
    writeJson('local-storage.json', await page.evaluate('({ ...localStorage })'));
    await world.close();
  },
  async 'indexed-db'() {
    const { openWorld } = await import('../browser/page.mjs');
    const world = await openWorld();
    const page = await world.page();
    await page.evaluate(`(${writeFrozenChat})(rethread.open, { name: 'frozen' })`);
    const dump = await page.evaluate(`(${dumpDatabase})('frozen')`);
    writeJson('indexed-db.json', dump);
    await world.close();
  },
};

await WRITERS[kind]();
