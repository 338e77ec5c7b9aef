// R68 in Chromium: a server quotes the key, and neither the page nor the database holds it; a redirect does not carry
// it away.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { CASES, startEcho } from '../bindings/echo.mjs';
import { DIALECTS, KEYS, checkResumed, formsOf } from '../bindings/scenarios/secrets.mjs';
import { openWorld } from './page.mjs';

let world;
let page;
let echo;
before(async () => {
  [world, echo] = [await openWorld(), await startEcho()];
  page = await world.page();
});
after(async () => {
  await world?.close();
  await echo?.close();
});

let count = 0;
const look = (given) =>
  page.evaluate((env) => scenarios.secrets.seen({ rethread, drive }, env), {
    store: 'indexeddb',
    name: `secrets-${(count += 1)}`,
    ...given,
  });

function holdsNone(text, key) {
  for (const form of formsOf(key))
    assert.ok(!text.includes(form), text.slice(Math.max(0, text.indexOf(form) - 80), text.indexOf(form) + 80));
}

for (const dialect of DIALECTS) {
  describe(`r68: ${dialect}`, () => {
    before(async () => {
      await page.close();
      page = await world.page();
    });
    for (const name of Object.keys(CASES)) {
      test(name, async () => {
        for (const key of [KEYS.plain, KEYS.escaped]) {
          const facts = await look({
            dialect,
            url: `${echo.url}/case/${dialect}/${name}`,
            headers: { authorization: `Bearer ${key}`, 'x-mine': key },
          });
          assert.deepEqual([facts.status, facts.pending], ['failed', 1]);
          assert.ok(
            facts.stored.includes('What is it?') && facts.stored.includes('model_error'),
            'the dump sees what is stored',
          );
          holdsNone(facts.text + facts.stored, key);
        }
      });
    }
  });
}

for (const dialect of DIALECTS) {
  test(`r68: ${dialect}: credentials in params are in no record of the database`, async () => {
    const env = { store: 'indexeddb', name: `params-${dialect}`, dialect, url: `${echo.url}/v1`, key: KEYS.plain };
    const facts = await page.evaluate((given) => scenarios.secrets.resumed({ rethread, drive }, given), env);
    checkResumed(assert, facts, dialect);
    assert.ok(facts.stored.includes('What is it?'), 'the dump sees what is stored');
    holdsNone(facts.text + facts.stored, KEYS.plain);
  });
}

for (const status of [301, 302, 303, 307, 308]) {
  test(`r68: a redirect by ${status} is not followed`, async () => {
    for (const headers of [{ 'x-api-key': KEYS.plain }, { authorization: `Bearer ${KEYS.plain}` }]) {
      const facts = await look({ dialect: 'openai-chat', url: `${echo.url}/redirect/${status}`, headers });
      assert.equal(facts.status, 'failed');
      assert.match(facts.message, /redirect.*`provider\.url`/);
      holdsNone(facts.text + facts.stored, KEYS.plain);
    }
    assert.deepEqual(echo.other, []);
  });
}
