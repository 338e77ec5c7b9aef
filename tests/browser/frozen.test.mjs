// r48: what earlier versions wrote to IndexedDB and localStorage, frozen in tests/frozen, is read and written by this
// one.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { readFrozenChat } from '../frozen/frozen-chat.mjs';
import { loadDatabase } from '../frozen/indexed-db-dump.mjs';
import { openWorld } from './page.mjs';

const frozen = (name) => JSON.parse(readFileSync(new URL(`../frozen/${name}`, import.meta.url), 'utf8'));

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

for (const version of [1]) {
  test(`r48 an IndexedDB database of version ${version}`, async () => {
    const page = await world.page();
    await page.evaluate(loadDatabase, ['frozen', frozen(`chat-${version}.indexed-db.json`)]);
    const found = await page.evaluate(`(${readFrozenChat})(rethread.open, { name: 'frozen' })`);
    assert.deepEqual(found, frozen(`chat-${version}.expected.json`));
    assert.deepEqual(page.complaints, []);
  });

  test(`r48 a localStorage of version ${version}`, async () => {
    const page = await world.page();
    await page.evaluate(
      (items) => {
        for (const [key, value] of Object.entries(items)) localStorage.setItem(key, value);
      },
      frozen(`chat-${version}.local-storage.json`),
    );
    const found = await page.evaluate(`(${readFrozenChat})(rethread.open, { store: 'localstorage', name: 'frozen' })`);
    assert.deepEqual(found, frozen(`chat-${version}.expected.json`));
    assert.deepEqual(page.complaints, []);
  });
}

test('r48 an IndexedDB database of somebody else, and a newer one, are refused and left alone', async () => {
  const page = await world.page();
  const found = await page.evaluate(async () => {
    const raw = (name, version) =>
      new Promise((resolve, reject) => {
        const request = indexedDB.open(name, version);
        request.onupgradeneeded = () => request.result.createObjectStore('users');
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
    const found = [];
    for (const [name, version] of [
      ['foreign', 1],
      ['older', 2],
      ['alike', 3],
      ['newer', 4],
    ]) {
      (await raw(name, version)).close();
      const error = await rethread.open({ store: 'indexeddb', name }).then(
        () => null,
        ({ code, message }) => `${code} ${/indexeddb/i.test(message)}`,
      );
      const database = await raw(name);
      found.push([error, database.version, ...database.objectStoreNames]);
      database.close();
    }
    return found;
  });
  assert.deepEqual(found, [
    ['config_invalid true', 1, 'users'],
    ['config_invalid true', 2, 'users'],
    ['config_invalid true', 3, 'users'],
    ['unsupported_version true', 4, 'users'],
  ]);
  assert.deepEqual(page.complaints, []);
});
