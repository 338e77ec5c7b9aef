// Whatever goes wrong in a turn, with a session in memory, in Node. tests/browser does the same in Chromium with
// IndexedDB.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as rethread from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { cases } from './scenarios/faults.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

for (const dialect of ['openai-chat', 'anthropic']) {
  describe(`faults: Node, memory, ${dialect}`, { concurrency: 4 }, () => {
    for (const [at, { name, run, check }] of cases.entries()) {
      test(name, async () => {
        const lane = `faults-${dialect}-${at}`;
        const { base, chat, messages } = laneOf(standIn.url, lane);
        check(
          assert,
          await run({ rethread, drive }, { dialect, store: 'memory', name: lane, lane: { base, chat, messages } }),
        );
      });
    }
  });
}
