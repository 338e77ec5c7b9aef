// R22 through JavaScript, for a conversation that the application holds: any interleaving of turns, crashes, retries,
// edits and moves, in every dialect.

import { test } from 'node:test';
import { playCallerSeed } from './scenarios/caller-interleavings.mjs';
import { playSeeds } from './seeded-interleavings.mjs';

const play = playSeeds(playCallerSeed, { count: 25, longCount: 2000 });

test('r22 each request of a run has the list that the application passed, whatever happens', play);
