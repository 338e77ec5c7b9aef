// r46: a turn costs IndexedDB the same at 100 and at 10,000 messages, and localStorage at 100 and 3,000: it has no room
// for more.

import { after, before, test } from 'node:test';
import { assertConstant, LENGTHS, TURNS_AT_ONCE } from '../servers/constant-costs.mjs';
import { openWorld } from './page.mjs';
import { pageCosts } from './page-costs.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

for (const [store, lengths] of Object.entries({ indexeddb: LENGTHS, localstorage: [100, 3000] })) {
  test(`r46 a turn costs the same at any length: ${store}`, async () => {
    assertConstant(await pageCosts(await world.page(), store, lengths, TURNS_AT_ONCE), {
      isLocalStorage: store === 'localstorage',
    });
  });
}
