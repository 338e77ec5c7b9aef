// Plays the seeds of an interleaving in Node, each on a lane of the stand-in of its own. RETHREAD_SEED=n plays one
// seed, and prints what happens.

import assert from 'node:assert/strict';
import { after, before } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { startStandIn } from '../stand-in/server.mjs';

const { RETHREAD_SEED, RETHREAD_LONG } = process.env;

/** Returns a test that plays so many seeds with `play`, or `longCount` in a long run. `options`: those of the lanes.
 *  Call it once in a file. */
export function playSeeds(play, { count, longCount, options = {} }) {
  const seeds = RETHREAD_SEED
    ? [Number(RETHREAD_SEED)]
    : Array.from({ length: RETHREAD_LONG ? longCount : count }, (_, seed) => seed);
  let standIn;
  before(async () => {
    standIn = await startStandIn();
  });
  after(() => standIn.close());
  return async (t) => {
    const sums = {};
    const failed = [];
    for (const seed of seeds) {
      const name = `seed-${seed}`;
      const log = RETHREAD_SEED ? (line) => console.log(line) : undefined;
      const setStep = (step) =>
        Object.assign(standIn.state.lane(name), { script: step ? [step] : [], options: { delayMs: 0, ...options } });
      const { problems, counts } = await play({
        open,
        drive,
        store: new MemoryLogStore(),
        base: `${standIn.url}/lane/${name}`,
        lane: () => standIn.state.lane(name),
        seed,
        setStep,
        log,
      });
      standIn.state.reset(name);
      if (problems.length) failed.push(`seed ${seed}: ${problems.join('\n')}`);
      for (const [what, number] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + number;
    }
    t.diagnostic(JSON.stringify(sums));
    assert.equal(failed.length, 0, `${failed.length} seeds\n${failed.join('\n')}`);
    if (!RETHREAD_SEED)
      for (const [what, number] of Object.entries(sums)) assert.ok(number >= seeds.length / 10, `${number} ${what}`);
  };
}
