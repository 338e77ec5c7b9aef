// R22 to R31 and R37 through JavaScript, against a service that keeps what it is sent: any interleaving of turns,
// crashes, retries, appends, owners, compactions, handoffs, processes and stores.

import { test } from 'node:test';
import { playSeed } from './scenarios/service-interleavings.mjs';
import { playSeeds } from './seeded-interleavings.mjs';

const play = playSeeds(playSeed, { count: 60, longCount: 3000 });

test(
  'r22 r23 r24 r25 r26 r27 r28 r30 r31 r37 the service has what the session has, nothing twice, whatever happens',
  play,
);
