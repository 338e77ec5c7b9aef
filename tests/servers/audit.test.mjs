// r13: the audit table of SQL stores is queried by an index, a page at a time, and its payloads come by a join: counted
// and explained.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { open } from 'rethread';
import { postgres } from 'rethread/postgres';
import { sqlite } from 'rethread/sqlite';
import { startPostgres } from './postgres-server.mjs';

const database = new DatabaseSync(':memory:');
let server;
let pool;
before(async () => {
  server = await startPostgres();
  pool = new pg.Pool(server.place);
  pool.on('error', () => {});
});
after(async () => {
  database.close();
  await pool?.end();
  await server?.stop();
});

const STORES = {
  SQLite: {
    driver: () => sqlite(database),
    analyze: () => database.exec('ANALYZE'),
    /** How the database reads the statement: one line a table or subquery. */
    plan: ({ sql, params }) =>
      database
        .prepare(`EXPLAIN QUERY PLAN ${sql}`)
        .all(...params)
        .map(({ detail }) => detail)
        .join('\n'),
    // `r` and `c` are the log and the chunks; `t`, `f`, `k` and `v` are subqueries.
    scan: /SCAN (rethread_|r\b|c\b)/,
    joined: [
      /SEARCH r USING INDEX sqlite_autoindex_rethread_log_1 \(session=\? AND key=\?\)/,
      /SEARCH rethread_log USING .*INDEX rethread_log_last_key/,
    ],
    indexed: (name) => new RegExp(`SEARCH rethread_tool_invocations USING INDEX ${name}`),
  },
  PostgreSQL: {
    driver: () => postgres(pool),
    analyze: () => pool.query('ANALYZE'),
    async plan({ sql, params }) {
      const client = await pool.connect();
      try {
        // Of small tables it would read all, which is faster. This asks whether an index serves the query.
        await client.query('SET enable_seqscan TO off; SET enable_hashjoin TO off; SET enable_mergejoin TO off');
        const { rows } = await client.query(`EXPLAIN ${sql}`, params);
        return rows.map((row) => row['QUERY PLAN']).join('\n');
      } finally {
        client.release(true);
      }
    },
    scan: /Seq Scan/,
    joined: [/Index Scan using rethread_log_pkey on rethread_log r\b/, /Index Scan (using|on) rethread_log_last_key/],
    indexed: (name) => new RegExp(`Index Scan (using|on) ${name}`),
  },
};

const TURNS = 150;
const CHANNELS = ['web', 'mail'];
/** Every call of a session, oldest first: a failed one in 30, a rare tool in 25. */
const calls = (channel) =>
  Array.from({ length: 2 * TURNS }, (_, number) => ({
    channel,
    callId: `${channel}-${number}`,
    name: number % 25 === 7 ? 'rare' : 'look',
    arguments: { at: number },
    result: `result ${channel} ${number} `.padEnd(400, '.'),
    isError: number % 30 === 0,
    finishedAt: 1_000_000 + number,
  }));

/** Calls in the order of the audit table. Each channel has a session of its name. */
const newestFirst = (list) => list.toSorted((a, b) => b.finishedAt - a.finishedAt || (a.channel < b.channel ? 1 : -1));

async function fill(store) {
  for (const channel of CHANNELS) {
    const session = await store.session(channel, { channel });
    const all = calls(channel);
    for (let turn = 0; turn < TURNS; turn += 1) {
      const two = all.slice(2 * turn, 2 * turn + 2).map(({ channel: _, ...call }) => ({ type: 'tool', ...call }));
      await session.append([
        { role: 'user', parts: [{ type: 'text', text: 'q' }] },
        { role: 'assistant', parts: two },
      ]);
    }
  }
}

for (const [name, { driver, analyze, plan, scan, joined, indexed }] of Object.entries(STORES)) {
  describe(name, () => {
    let store;
    /** The transactions since it was emptied, each a list of statements. */
    let transactions = [];
    before(async () => {
      const inner = driver();
      store = await open({
        store: {
          ...inner,
          transaction: (statements) => {
            transactions.push(statements);
            return inner.transaction(statements);
          },
        },
      });
      await fill(store);
      await analyze();
    });
    after(() => store?.close());
    const page = async (query) => {
      transactions = [];
      return store.invocations(query);
    };
    const readsAudit = ({ sql }) => sql.includes('tool IS NOT NULL');
    const readsLog = ({ sql }) => sql.includes('JOIN rethread_log');

    test('r13 a page is one statement, however many rows there are', async () => {
      for (const limit of [1, 10, 100, 1000]) {
        const { items } = await page({ channel: 'mail', limit });
        assert.equal(items.length, Math.min(limit, 2 * TURNS));
        assert.equal(transactions.length, 1);
        assert.equal(transactions[0].length, 1);
      }
    });

    test('r13 the payloads of a page come by a join, in one transaction for 64 records', async () => {
      for (const [query, rows] of [
        [{ tool: 'rare', limit: 5 }, 5],
        [{ tool: 'rare' }, 24],
        [{ tool: 'look', channel: 'web', limit: 100 }, 100],
      ]) {
        const { items } = await page({ ...query, payload: true });
        assert.equal(items.length, rows);
        const expected = CHANNELS.flatMap(calls);
        for (const { callId, arguments: given, result } of items) {
          const call = expected.find((one) => one.callId === callId);
          assert.deepEqual([given, result], [call.arguments, { content: call.result, isError: call.isError }]);
        }
        const joins = transactions.filter((statements) => statements.some(readsLog));
        assert.equal(transactions.filter((statements) => statements.some(readsAudit)).length, 1);
        assert.ok(joins.length <= Math.ceil(rows / 64), `${joins.length} joins for ${rows} rows`);
        assert.ok(
          joins.flat().length <= Math.ceil(rows / 32) + 1,
          `${joins.flat().length} statements for ${rows} rows`,
        );
        // Beside them the revision of a session, which says whether what was read may be kept for the next page.
        assert.ok(transactions.length <= joins.length + 3, `${transactions.length} transactions for ${rows} rows`);
      }
    });

    test('r13 pages by a cursor have every row once, with its payload', async () => {
      const found = [];
      for (let cursor; cursor !== null; ) {
        const { items, cursor: next } = await page({
          channel: 'mail',
          payload: true,
          limit: 77,
          ...(cursor && { cursor }),
        });
        found.push(...items);
        cursor = next;
      }
      assert.deepEqual(
        found.map(({ callId, result }) => [callId, result.content]),
        calls('mail')
          .reverse()
          .map(({ callId, result }) => [callId, result]),
      );
    });

    test('r13 tool, status, channel and time are in the WHERE clause, and found by an index', async () => {
      const cases = [
        [{ tool: 'rare' }, 'rethread_tool_invocations_tool', ({ name: tool }) => tool === 'rare'],
        [{ status: 'error' }, 'rethread_tool_invocations_status', ({ isError }) => isError],
        [{ channel: 'mail' }, 'rethread_tool_invocations_channel', ({ channel }) => channel === 'mail'],
        [{ since: 1_000_295 }, 'rethread_tool_invocations_at', ({ finishedAt }) => finishedAt >= 1_000_295],
      ];
      for (const [query, index, matches] of cases) {
        const { items } = await page({ ...query, limit: 1000 });
        const expected = newestFirst(CHANNELS.flatMap(calls).filter(matches));
        assert.deepEqual(
          items.map(({ callId }) => callId),
          expected.map(({ callId }) => callId),
        );
        const [[statement]] = transactions;
        assert.doesNotMatch(statement.sql.match(/WHERE.*/s)[0], /^WHERE tool IS NOT NULL ORDER/);
        const explained = await plan(statement);
        if (!query.channel) assert.match(explained, indexed(index), JSON.stringify(query));
        assert.doesNotMatch(explained, scan, JSON.stringify(query));
      }
    });

    test('r13 the join finds each record by an index', async () => {
      await page({ tool: 'rare', payload: true, limit: 20 });
      const [join] = transactions.flat().filter(readsLog);
      const explained = await plan(join);
      for (const line of joined) assert.match(explained, line);
      assert.doesNotMatch(explained, scan);
    });
  });
}
