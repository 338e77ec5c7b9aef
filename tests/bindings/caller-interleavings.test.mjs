// R22 through JavaScript, for a conversation that the application holds: any interleaving of turns, crashes, retries, edits and moves, in every dialect.
// RETHREAD_SEED=n plays one seed, and prints what happens.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { drive } from 'rethread/host';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { startStandIn } from '../stand-in/server.mjs';
import { playCallerSeed } from './scenarios/caller-interleavings.mjs';

const { RETHREAD_SEED, RETHREAD_LONG } = process.env;
const SEEDS = RETHREAD_SEED ? [Number(RETHREAD_SEED)] : Array.from({ length: RETHREAD_LONG ? 2000 : 40 }, (_, seed) => seed);

let standIn;
before(async () => { standIn = await startStandIn(); });
after(() => standIn.close());

test('r22 each request of a run has the list that the application passed, whatever happens', async (t) => {
  const sums = {};
  const failed = [];
  for (const seed of SEEDS) {
    const name = `seed-${seed}`;
    const log = RETHREAD_SEED ? (line) => console.log(line) : undefined;
    const setStep = (step) => Object.assign(standIn.state.lane(name), { script: step ? [step] : [], options: { delayMs: 0 } });
    const { problems, counts } = await playCallerSeed({ open, drive, store: new MemoryLogStore(), base: `${standIn.url}/lane/${name}`, seed, setStep, log });
    standIn.state.reset(name);
    if (problems.length) failed.push(`seed ${seed}: ${problems.join('\n')}`);
    for (const [what, count] of Object.entries(counts)) sums[what] = (sums[what] ?? 0) + count;
  }
  t.diagnostic(JSON.stringify(sums));
  assert.deepEqual(failed.length, 0, `${failed.length} seeds\n${failed.join('\n')}`);
  if (!RETHREAD_SEED) for (const [what, count] of Object.entries(sums)) assert.ok(count >= SEEDS.length / 10, `${count} ${what}`);
});
