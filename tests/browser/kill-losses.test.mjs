// Kills of Chromium while a page writes without pause, beside processes that keep the machine busy: nothing is lost but
// what Chromium itself deletes, and that is reported. With `npm test -- --long` 2,000 kills of rethread, and 500 each
// of a raw writer with durability relaxed and strict, which show what Chromium does without rethread. A profile that
// lost something is kept as the kill left it: its path is printed.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { countLosses } from './kill/losses.mjs';

const LONG = Boolean(process.env.RETHREAD_LONG);
const KILLS = LONG ? 500 : 3;
const RUNS = LONG
  ? [...Array(4).fill(['rethread', 'relaxed']), ['raw', 'relaxed'], ['raw', 'strict']]
  : [['rethread', 'relaxed']];

for (const [at, [writer, durability]] of RUNS.entries()) {
  test(`r48 kills of Chromium under load, ${at}: ${writer}, ${durability}: every start finds what was acknowledged, or says that it was deleted`, async () => {
    const counts = await countLosses({ writer, durability, kills: KILLS });
    console.log(JSON.stringify(counts));
    assert.equal(counts.lost, 0, counts.reasons.join('; '));
    assert.ok(counts.acknowledged > KILLS);
    if (writer === 'rethread')
      for (const reason of counts.reasons) assert.match(reason, /found this site's database damaged and removed it/);
  });
}
