// Whatever goes wrong in a turn, with a session in IndexedDB, in Chromium. tests/bindings does the same in Node, in
// memory.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { cases } from '../bindings/scenarios/faults.mjs';
import { openWorld } from './page.mjs';

let world;
let page;
before(async () => {
  world = await openWorld();
  page = await world.page();
});
after(() => world?.close());

for (const dialect of ['openai-chat', 'anthropic']) {
  describe(`faults: Chromium, IndexedDB, ${dialect}`, { concurrency: 4 }, () => {
    for (const [at, { name, check }] of cases.entries()) {
      test(name, async () => {
        const lane = `faults-${dialect}-${at}`;
        const { base, chat, messages } = world.lane(lane);
        const env = { dialect, store: 'indexeddb', name: lane, lane: { base, chat, messages } };
        const facts = await page.evaluate(
          ([which, given]) => scenarios.faults.cases[which].run({ rethread, drive }, given),
          [at, env],
        );
        check(assert, facts);
      });
    }
  });
}

test('the pages reported no error', () => assert.deepEqual(page.complaints, []));
