// Kills: Chromium gets SIGKILL at every point of a run of three tools; the next one finishes it.
//
// RETHREAD_KILL_REPEATS: how often each point (5). RETHREAD_KILL_POINTS: a pattern of names. RETHREAD_KILL_LANES: browsers at once (2).

import assert from 'node:assert/strict';
import test from 'node:test';
import { matrix, printTable } from './kill/matrix.mjs';
import { points } from './kill/points.mjs';

test('killed at each point of a run, it is finished after the restart', async (t) => {
  const plain = points.filter(({ onInterrupted }) => !onInterrupted);
  assert.ok(plain.length >= 20);
  const rows = await matrix(plain);
  for (const row of rows) await t.test(row.name, () => assert.deepEqual(row.failures, []));
  printTable(rows, (line) => console.log(line));
});
