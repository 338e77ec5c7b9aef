// r79: the search over IndexedDB, in plain and encrypted sessions, with a tab that appends meanwhile.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** Makes sessions with a word of their own. */
async function fill([name, count]) {
  let now = 1_000_000;
  const encryption = name === 'sealed' && {
    key: await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']),
  };
  globalThis.client = await rethread.open({ name, now: () => (now += 1_000), ...(encryption && { encryption }) });
  for (let at = 0; at < count; at += 1) {
    const session = await client.session(`s${at}`);
    await session.append([
      { role: 'user', parts: [{ type: 'text', text: `A question about topic${at}, and weather` }] },
    ]);
    session[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
  }
}

const find = (text) => client.search(text).then(({ items }) => items.map(({ session }) => session.id));

for (const name of ['plain', 'sealed']) {
  test(`r79 sessions of IndexedDB are found: ${name}`, async () => {
    const page = await world.page();
    await page.evaluate(fill, [name, 45]);
    assert.deepEqual(await page.evaluate(find, 'topic17 weather'), ['s17']);
    const newest = Array.from({ length: 20 }, (_, at) => `s${44 - at}`);
    assert.deepEqual(await page.evaluate(find, 'WEATHER'), newest);
    assert.deepEqual(await page.evaluate(find, 'nothing'), []);
    assert.deepEqual(page.complaints, []);
  });
}

test('r79 what another tab appends is found', async () => {
  const page = await world.page();
  const other = await world.page(page.context());
  await page.evaluate(fill, ['tabs', 3]);
  assert.deepEqual(await page.evaluate(find, 'snow'), []);
  await other.evaluate(async () => {
    globalThis.client = await rethread.open({ name: 'tabs' });
    const session = await client.session('s1');
    await session.append([{ role: 'assistant', parts: [{ type: 'text', text: 'Snow in topic1.' }] }]);
  });
  assert.deepEqual(await page.evaluate(find, 'topic1 snow'), ['s1']);
  assert.deepEqual(await other.evaluate(find, 'snow'), ['s1']);
});
