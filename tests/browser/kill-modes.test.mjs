// r16, r17, r18: kills in the modes `call` and `result`. 20 points, once; with `npm test -- --long` all points, five
// times.

import { test } from 'node:test';
import { killTests } from './kill/matrix.mjs';
import { inMode } from './kill/points.mjs';

const LONG = Boolean(process.env.RETHREAD_LONG);
const ONCE = Number(process.env.RETHREAD_KILL_REPEATS || 1);

for (const persistence of ['call', 'result']) {
  test(`r16 r17 r18 kills in Chromium, mode ${persistence}`, (t) =>
    killTests('each write', inMode(persistence, LONG), { begin: t.test.bind(t), ...(LONG ? {} : { repeats: ONCE }) }));
}
