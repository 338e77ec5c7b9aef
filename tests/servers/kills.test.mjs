// r48: what was acknowledged before a SIGKILL is found after it (rows 1 and 2 of faults.md). With `npm test -- --long`: many more kills.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { TARGETS } from './kill-targets.mjs';

const LONG = Boolean(process.env.RETHREAD_LONG);
const KILLS = LONG ? 20 : 2;
const APPENDS = LONG ? 300 : 60;

for (const [name, prepare] of Object.entries(TARGETS)) {
  test(`r48 SIGKILL: ${name}: acknowledged appends are found`, { timeout: LONG ? 900_000 : 180_000 }, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'rethread-kills-'));
    const target = await prepare(folder);
    const acknowledged = [];
    const doubtful = [];
    let found = 0;
    try {
      for (let kill = 0; kill < KILLS; kill += 1) {
        const appends = 1 + Math.floor(Math.random() * 2 * APPENDS);
        const round = await target.round(`kill${kill}`, appends);
        acknowledged.push(...round.acknowledged);
        doubtful.push(...round.doubtful);
        found = await target.check(acknowledged, doubtful);
      }
    } finally {
      await target.end();
      rmSync(folder, { recursive: true, force: true });
    }
    assert.ok(acknowledged.length >= KILLS);
    const more = found - acknowledged.length;
    console.log(`${name}: ${KILLS} kills, ${acknowledged.length} turns acknowledged, all found, and ${more} whose reply was lost`);
  });
}
