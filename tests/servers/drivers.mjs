// The drivers that tests open by name, also in other processes.

import { DatabaseSync } from 'node:sqlite';
import { pathToFileURL } from 'node:url';
import { createClient } from '@libsql/client';
import { Redis } from 'ioredis';
import pg from 'pg';
import { createClient as createRedisClient } from 'redis';
import { postgres } from 'rethread/postgres';
import { redis } from 'rethread/redis';
import { sqlite } from 'rethread/sqlite';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import fsDriver from 'unstorage/drivers/fs';

const timeout = (database) => {
  database.exec('PRAGMA busy_timeout = 10000');
  return database;
};

/** The place of a Redis server is its socket, and may name a prefix: "/tmp/redis.sock prefix:". */
const redisPlace = (place) => {
  const [socket, prefix] = place.split(' ');
  return { socket, prefix };
};

const OPEN = {
  'node:sqlite': (file) => ({ driver: sqlite(file) }),
  DatabaseSync: (file) => {
    const database = timeout(new DatabaseSync(file));
    return { driver: sqlite(database), end: () => database.close() };
  },
  '@libsql/client': (file) => {
    const client = createClient({ url: pathToFileURL(file).href, timeout: 10_000 });
    return { driver: sqlite(client), end: () => client.close() };
  },
  // As its documentation writes it: without a `timeout`.
  '@libsql/client that does not wait': (file) => {
    const client = createClient({ url: pathToFileURL(file).href });
    return { driver: sqlite(client), end: () => client.close() };
  },
  'pg Pool': (place) => {
    const pool = new pg.Pool({ ...JSON.parse(place), max: 4 });
    pool.on('error', () => {}); // the server is stopped at the end
    return { driver: postgres(pool), end: () => pool.end() };
  },
  'pg Client': async (place) => {
    const client = new pg.Client(JSON.parse(place));
    client.on('error', () => {});
    await client.connect();
    return { driver: postgres(client), end: () => client.end() };
  },
  ioredis: (place) => {
    const { socket, ...options } = redisPlace(place);
    const client = new Redis(socket);
    client.on('error', () => {}); // the server is stopped at the end
    return { driver: redis(client, options), end: () => client.disconnect() };
  },
  redis: async (place) => {
    const { socket, ...options } = redisPlace(place);
    const client = createRedisClient({ socket: { path: socket } });
    client.on('error', () => {}); // the server is stopped at the end
    await client.connect();
    return { driver: redis(client, options), end: () => client.close() };
  },
  'unstorage fs': (folder) => {
    const storage = createStorage({ driver: fsDriver({ base: folder }) });
    return { driver: unstorage(storage), end: () => storage.dispose() };
  },
};

/** A driver for a database, and what ends its client. */
export async function openDriver(store, place) {
  const { driver, end } = await OPEN[store](place);
  return { driver, end: end ?? (() => driver.close?.()) };
}
