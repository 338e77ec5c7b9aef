// r13: a query of the audit table has the same answer in every store: the newest calls first, in pages, each call once.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, before, test } from 'node:test';
import { Redis } from 'ioredis';
import pg from 'pg';
import { open } from 'rethread';
import { postgres } from 'rethread/postgres';
import { redis } from 'rethread/redis';
import { sqlite } from 'rethread/sqlite';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { startPostgres } from './postgres-server.mjs';
import { startRedis } from './redis-server.mjs';

let servers;
let pool;
let client;
before(async () => {
  servers = await Promise.all([startPostgres(), startRedis()]);
  pool = new pg.Pool(servers[0].place);
  pool.on('error', () => {});
  client = new Redis(servers[1].place);
});
after(async () => {
  client?.disconnect();
  await pool?.end();
  await Promise.all((servers ?? []).map((server) => server.stop()));
});

const SEED = 20_261_123;
/** Numbers that look random, the same in each run. */
function numbers(seed) {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return (state >>> 8) % below;
  };
}

const SESSIONS = ['a', 'A', 'a\0', 'é', 'x'.repeat(2000)];
const TOOLS = ['look', 'Look', 'look\0', '%', 'x'.repeat(300)];
const CHANNELS = ['web', 'Web', '', 'é'];
const TIMES = [0, 1, 999, 1000, 1001, 2 ** 41];
const QUERIES = 40;

/** Fills a store with calls, some without result, some answered later, in sessions of which one is deleted. */
async function fill(store) {
  const random = numbers(SEED);
  const of = (list) => list[random(list.length)];
  for (let at = 0; at < 40; at += 1) {
    const session = await store.session(of(SESSIONS));
    if (random(4) === 0) await session.update({ channel: of(CHANNELS) });
    const parts = Array.from({ length: 1 + random(3) }, (_, place) => ({
      type: 'tool',
      callId: `c${at}.${place}`,
      name: of(TOOLS),
      arguments: {},
      ...(random(4) && { result: at, isError: random(3) === 0, finishedAt: of(TIMES) }),
    }));
    await session.append([{ role: 'assistant', parts }]);
    const {
      items: [open],
    } = await session.invocations({ status: 'pending', limit: 1 });
    if (open && random(3) === 0)
      await session.answer(open.id, { type: 'tool_result', content: 'late', finishedAt: of(TIMES) });
    if (at === 20) await store.deleteSession(session.id);
  }
}

const timeOf = ({ finishedAt, startedAt }) => finishedAt ?? startedAt ?? 5000;

test('r13 every store gives the same rows in the same order, the newest first', async () => {
  const stores = {
    memory: 'memory',
    'a store of the application': new MemoryLogStore(),
    SQLite: sqlite(new DatabaseSync(':memory:')),
    PostgreSQL: postgres(pool),
    Redis: redis(client),
    unstorage: unstorage(createStorage()),
  };
  /** By store, the answer to each query. */
  const answers = {};
  for (const [name, store] of Object.entries(stores)) {
    let ids = 0;
    const opened = await open({ store, now: () => 5000, newId: () => `id ${(ids += 1)}` });
    await fill(opened);
    const random = numbers(SEED + 1);
    const maybe = (list) => (random(3) === 0 ? list[random(list.length)] : undefined);
    answers[name] = [];
    for (let at = 0; at < QUERIES; at += 1) {
      const query = {
        session: maybe(SESSIONS),
        tool: maybe(TOOLS),
        status: maybe(['ok', 'error', 'pending']),
        channel: maybe(CHANNELS),
        since: maybe(TIMES),
        until: maybe(TIMES),
        limit: 1 + random(9),
        payload: random(2) === 0,
      };
      const rows = [];
      let cursor;
      do {
        const page = await opened.invocations({ ...query, cursor });
        assert.ok(page.items.length <= query.limit);
        rows.push(...page.items);
        cursor = page.cursor ?? undefined;
      } while (cursor);
      answers[name].push({ query, rows });
    }
    const all = (await opened.invocations({ limit: 1000 })).items;
    for (const { query, rows } of answers[name]) {
      const { session = null, tool = null, status = null, channel = null, since = 0, until = Infinity } = query;
      const isWanted = (row) =>
        [
          [session, row.sessionId],
          [tool, row.name],
          [status, row.status],
          [channel, row.channel],
        ].every(([wanted, actual]) => wanted === null || wanted === actual) &&
        timeOf(row) >= since &&
        timeOf(row) <= until;
      assert.deepEqual(
        rows.map(({ id }) => id),
        all.filter(isWanted).map(({ id }) => id),
        `${name}: ${JSON.stringify(query)}`,
      );
      assert.deepEqual(
        rows.map(timeOf),
        rows.map(timeOf).toSorted((one, other) => other - one),
        `${name}: ${JSON.stringify(query)}`,
      );
    }
    for (const messageId of new Set(all.map((row) => row.messageId))) {
      const rows = [];
      for (let cursor = null; cursor !== undefined; ) {
        const page = await opened.invocations({ messageId, limit: 2, ...(cursor && { cursor }) });
        assert.ok(
          page.items.length === 2 || page.cursor === null,
          `${name}: a page of the calls of ${messageId} is not full`,
        );
        rows.push(...page.items.map(({ id }) => id));
        cursor = page.cursor ?? undefined;
      }
      assert.deepEqual(
        rows,
        all.filter((row) => row.messageId === messageId).map(({ id }) => id),
        `${name}: ${messageId}`,
      );
    }
    await opened.close();
  }
  assert.ok(answers.memory.filter(({ rows }) => rows.length).length > QUERIES / 4, 'most queries find nothing');
  for (const [name, found] of Object.entries(answers)) assert.deepEqual(found, answers.memory, name);
});
