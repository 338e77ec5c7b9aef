// A turn on a SQL store costs the same at any length: statements and bytes, counted.

import assert from 'node:assert/strict';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { sqlite } from 'rethread/sqlite';
import { turnCosts } from './turn-costs.mjs';

test('r46 a turn is one transaction of the same size at any length of history of history', async () => {
  const database = new DatabaseSync(':memory:');
  const rows = await turnCosts(sqlite(database), [100, 1200]);
  database.close();
  const [short, long] = rows.map(({ append }) => append);
  assert.deepEqual([short.transactions, long.transactions], [1, 1]);
  assert.equal(short.statements, long.statements);
  assert.ok(long.sent < short.sent * 1.05, `${long.sent} bytes after ${rows[1].messages} messages, ${short.sent} after ${rows[0].messages}`);
  assert.ok(long.received < 100, `${long.received} bytes came back`);
});
