// Waits for what nothing announces.

import { setTimeout } from 'node:timers/promises';

const PAUSE_MS = 5;
const ROUNDS = 12_000;

/** Asks again and again until the condition holds, so often that it takes a minute at least. */
export async function until(what, condition, rounds = ROUNDS) {
  for (let round = 0; round < rounds; round += 1) {
    if (await condition()) return;
    await setTimeout(PAUSE_MS);
  }
  throw new Error(`waited in vain for ${what}`);
}
