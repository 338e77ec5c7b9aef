// R23 to R25, R27 and R77 through JavaScript, with message threads: any interleaving of turns, crashes, lost answers,
// expiries, filters, edits, owners and processes.

import { test } from 'node:test';
import { playThreadSeed } from './scenarios/thread-interleavings.mjs';
import { playSeeds } from './seeded-interleavings.mjs';

const play = playSeeds(playThreadSeed, { count: 20, longCount: 3000 });

test('r23_r24_r25_r27_r77_a_thread_has_what_the_session_has_and_nothing_twice_whatever_happens', play);
