// R22 to R31 and R37 in Chromium, over HTTP: any interleaving of turns, crashes, retries, filters, appends, owners, compactions, handoffs, processes
// and stores against a service that keeps what it is sent. The seeds are those of tests/bindings/service-interleavings.test.mjs.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

const SEEDS = process.env.RETHREAD_LONG ? 500 : 20;

let world;
before(async () => { world = await openWorld(); });
after(() => world?.close());

test('r22 r23 r24 r25 r26 r27 r28 r30 r31 r37 the service has what the session of a page has, nothing twice, whatever happens', async (t) => {
  const page = await world.page();
  const { sums, failed } = await page.evaluate(async ([seeds, origin]) => {
    const { playSeed } = await import('/scenarios/service-interleavings.mjs');
    const { MemoryLogStore } = await import('/log-store/memory-log-store.js');
    const sums = {};
    const failed = [];
    for (let seed = 0; seed < seeds; seed += 1) {
      const base = `${origin}/lane/seed-${seed}`;
      const { problems, counts } = await playSeed({ open: rethread.open, drive, store: new MemoryLogStore(), base, seed, breaksHere: true });
      if (problems.length) failed.push(`seed ${seed}: ${problems.join('\n')}`);
      for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count;
    }
    return { sums, failed };
  }, [SEEDS, world.url]);
  t.diagnostic(JSON.stringify(sums));
  assert.equal(failed.length, 0, `${failed.length} seeds\n${failed.slice(0, 5).join('\n')}`);
  assert.ok(sums.finished >= SEEDS && sums.crashes >= SEEDS / 2, JSON.stringify(sums));
});
