// Runs over real HTTP in each of the five dialects, in Chromium with IndexedDB. All modes run in Node (tests/bindings).

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { ALL_DIALECTS } from '../bindings/scenarios/dialects.mjs';
import * as judge from '../bindings/scenarios/judge-dialects.mjs';
import { openWorld } from './page.mjs';

let world;
let page;
before(async () => {
  world = await openWorld();
  page = await world.page();
});
after(() => world?.close());

const envOf = (name) => ({ store: 'indexeddb', name, base: world.lane(name).base });

test('r16 r20 two turns over each dialect, streamed and whole', async () => {
  for (const [at, dialect] of ALL_DIALECTS.entries()) {
    const persistence = ['run', 'call', 'result'][at % 3];
    const outcomes = [];
    for (const stream of [true, false]) {
      const env = envOf(`${dialect}-${stream}`);
      const lane = world.lane(env.name);
      await lane.script(judge.scriptOf(dialect), { then: 'brain' });
      const facts = await page.evaluate(
        ([env, settings]) => scenarios.dialects.twoTurns({ rethread, drive }, env, settings),
        [env, { dialect, stream, persistence }],
      );
      outcomes.push({ facts, requests: await lane.requests(), persistence, stream });
    }
    judge.twoTurns(dialect, outcomes);
  }
  assert.deepEqual(page.complaints, []);
});

test('r42 the dialect changes in mid-session', async () => {
  const env = envOf('switch');
  await world.lane('switch').script([], { then: 'brain' });
  const facts = await page.evaluate(
    (env) => scenarios.dialects.switching({ rethread, drive }, env, { stream: true, persistence: 'call' }),
    env,
  );
  judge.switching(facts, await world.lane('switch').requests());
});
