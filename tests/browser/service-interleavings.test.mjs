// R22 to R31 and R37 in Chromium, over HTTP: any interleaving of turns, crashes, retries, filters, appends, owners,
// compactions, handoffs, processes and stores against a service that keeps what it is sent. The seeds are those of
// tests/bindings/service-interleavings.test.mjs. And conversations that the application holds, in every dialect.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

const SEEDS = process.env.RETHREAD_LONG ? 500 : 20;

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** Plays seeds with a function of a scenario in a page. Returns {sums, failed}. */
async function play(file, name, count) {
  const page = await world.page();
  return page.evaluate(
    async ([scenario, exported, seeds, origin]) => {
      const { [exported]: playSeed } = await import(`/scenarios/${scenario}`);
      const { MemoryLogStore } = await import('/log-store/memory-log-store.js');
      const sums = {};
      const failed = [];
      for (let seed = 0; seed < seeds; seed += 1) {
        const base = `${origin}/lane/${exported}-${seed}`;
        const { problems, counts } = await playSeed({
          open: rethread.open,
          drive,
          store: new MemoryLogStore(),
          base,
          seed,
          breaksHere: true,
        });
        if (problems.length) failed.push(`seed ${seed}: ${problems.join('\n')}`);
        for (const [what, value] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + value;
      }
      return { sums, failed };
    },
    [file, name, count, world.url],
  );
}

function assertPlayed({ sums, failed }, count) {
  assert.equal(failed.length, 0, `${failed.length} seeds\n${failed.slice(0, 5).join('\n')}`);
  assert.ok(sums.finished >= count && sums.crashes >= count / 2, JSON.stringify(sums));
}

test('r22 r23 r24 r25 r26 r27 r28 r30 r31 r37 the service has what the session of a page has, nothing twice, whatever happens', async (t) => {
  const played = await play('service-interleavings.mjs', 'playSeed', SEEDS);
  t.diagnostic(JSON.stringify(played.sums));
  assertPlayed(played, SEEDS);
});

test('r22 each request of a page has the list that the application passed, whatever happens', async (t) => {
  const played = await play('caller-interleavings.mjs', 'playCallerSeed', SEEDS / 2);
  t.diagnostic(JSON.stringify(played.sums));
  assertPlayed(played, SEEDS / 2);
});
