// r48: databases that earlier versions wrote to IndexedDB, frozen in tests/frozen, are read and written by this one.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { readFrozenChat } from '../frozen/frozen-chat.mjs';
import { loadDatabase } from '../frozen/indexed-db-dump.mjs';
import { openWorld } from './page.mjs';

const frozen = (name) => JSON.parse(readFileSync(new URL(`../frozen/${name}`, import.meta.url), 'utf8'));

let world;
before(async () => { world = await openWorld(); });
after(() => world?.close());

for (const version of [1]) {
  test(`r48 an IndexedDB database of version ${version}`, async () => {
    const page = await world.page();
    await page.evaluate(loadDatabase, ['frozen', frozen(`chat-${version}.indexed-db.json`)]);
    const found = await page.evaluate(`(${readFrozenChat})(rethread.open, { name: 'frozen' })`);
    assert.deepEqual(found, frozen(`chat-${version}.expected.json`));
    assert.deepEqual(page.complaints, []);
  });
}
