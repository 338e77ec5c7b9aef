// Prints what a turn costs on each store; on better-sqlite3 tests/better-sqlite3/print-turn-costs.mjs does.
//
//   node tests/servers/print-turn-costs.mjs [messages …]     after `npm run build`; POSTGRES_BIN names the programs of
//   PostgreSQL

import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { open } from 'rethread';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { pageCosts } from '../browser/page-costs.mjs';
import { openWorld } from '../browser/page.mjs';
import { openDriver } from './drivers.mjs';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';
import { counted, turnCosts } from './turn-costs.mjs';
import { startWorker } from './workerd.mjs';

const lengths = process.argv.length > 2 ? process.argv.slice(2).map(Number) : [100, 10_000];
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-costs-'));
const ends = [() => rmSync(folder, { recursive: true, force: true })];
const file = (name) => path.join(folder, name);

async function costsOf(store, place) {
  const { driver, end } = await openDriver(store, place);
  ends.push(end);
  return turnCosts(open, counted(driver), lengths);
}

const started = async (start) => {
  const server = await start();
  ends.push(() => server.stop?.() ?? server.end?.() ?? server.close());
  return server;
};
const inWorker = async (store) => (await started(startWorker)).ask(`${store}/costs`, { lengths });
const inPage = async (store, at = lengths) => pageCosts(await (await started(openWorld)).page(), store, at);

const STORES = {
  IndexedDB: () => inPage('indexeddb'),
  // There is no room for more.
  localStorage: () =>
    inPage(
      'localstorage',
      lengths.map((messages) => Math.min(messages, 5000)),
    ),
  'node:sqlite': () => costsOf('node:sqlite', file('node')),
  libSQL: () => costsOf('@libsql/client', file('libsql')),
  PostgreSQL: async () => costsOf('pg Pool', JSON.stringify((await started(startPostgres)).place)),
  'Durable Object': () => inWorker('object'),
  D1: () => inWorker('d1'),
  Redis: async () => costsOf('ioredis', (await started(startRedis)).place),
  'Workers KV': () => inWorker('kv'),
  // In memory: its driver for files lists a folder in each turn, which takes long.
  unstorage: () => turnCosts(open, counted(unstorage(createStorage())), lengths),
};

console.log('| store | messages | requests | operations | bytes sent | bytes received |\n|---|---|---|---|---|---|');
try {
  for (const [store, measure] of Object.entries(STORES)) {
    for (const { messages, requests, operations, sent, received } of await measure()) {
      console.log(`| ${[store, messages, requests, operations, sent, received].join(' | ')} |`);
    }
  }
} finally {
  for (const end of ends.reverse()) await end();
}
