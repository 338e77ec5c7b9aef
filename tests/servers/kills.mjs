// r48: what was acknowledged before a SIGKILL is found after it (rows 1 and 2 of faults.md). With `npm test -- --long`:
// many more kills.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { setTimeout } from 'node:timers/promises';
import { TARGETS } from './kill-targets.mjs';

const LONG = Boolean(process.env.RETHREAD_LONG);
const KILLS = LONG ? 20 : 2;
const APPENDS = LONG ? 100 : 60;
/** A server that does not end within this time is killed when the process ends. */
const END_MS = 10_000;

/** One test for each target of a file. */
export function testKills(file) {
  // What a failed test left, such as a workerd that could not be started, would keep this process alive.
  after(() => {
    setTimeout(END_MS, undefined, { ref: false }).then(() => process.exit());
  });
  for (const [name, prepare] of Object.entries(TARGETS[file])) {
    test(`r48 SIGKILL: ${name}: acknowledged appends are found`, {
      timeout: LONG ? 900_000 : 60_000,
    }, async (context) => {
      const folder = mkdtempSync(path.join(tmpdir(), 'rethread-kills-'));
      const ends = [];
      const over = new AbortController();
      // Also after a failure, and after the time of the test.
      context.after(async () => {
        over.abort();
        const ended = Promise.allSettled(ends.reverse().map(async (end) => end()));
        await Promise.race([ended, setTimeout(END_MS, undefined, { ref: false })]);
        rmSync(folder, { recursive: true, force: true });
      });
      const target = await prepare(folder, { onEnd: (end) => ends.push(end), signal: over.signal });
      const acknowledged = [];
      const doubtful = [];
      let found = 0;
      for (let kill = 0; kill < KILLS; kill += 1) {
        const appends = 1 + Math.floor(Math.random() * 2 * APPENDS);
        const round = await target.round(`kill${kill}`, appends);
        acknowledged.push(...round.acknowledged);
        doubtful.push(...round.doubtful);
        found = await target.check(acknowledged, doubtful);
      }
      assert.ok(acknowledged.length >= KILLS);
      const more = found - acknowledged.length;
      console.log(
        `${name}: ${KILLS} kills, ${acknowledged.length} turns acknowledged, all found, and ${more} whose reply was lost`,
      );
    });
  }
}
