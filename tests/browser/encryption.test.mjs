// r80: encryption at rest over IndexedDB in Chromium, with a key that no script can read.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

test('r80 no value of IndexedDB has a text of a chat, and a reloaded page with the key reads all of it', async () => {
  const context = await world.context();
  const page = await world.page(context);
  const raw = await page.evaluate(async () => {
    // The application keeps its key where it likes: a database of its own takes CryptoKeys.
    const key = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
    const keys = await new Promise((resolve, reject) => {
      const request = indexedDB.open('keys', 1);
      request.onupgradeneeded = () => request.result.createObjectStore('keys');
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    await new Promise((resolve) => {
      const transaction = keys.transaction('keys', 'readwrite');
      transaction.objectStore('keys').put(key, 'chat');
      transaction.oncomplete = resolve;
    });
    keys.close();
    const store = await rethread.open({ name: 'sealed', encryption: { key } });
    const session = await store.session('visible');
    for (let n = 0; n < 20; n += 1)
      await session.append({ messages: [{ role: 'user', content: `in confidence ${n}` }] }, 'openai-chat');
    await session.update({ title: 'in confidence: title' });
    await store.close();

    const database = await new Promise((resolve, reject) => {
      const request = indexedDB.open('sealed');
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
    const texts = [];
    const latin = new TextDecoder('latin1');
    const visit = (value) => {
      if (typeof value === 'string') texts.push(value);
      else if (value instanceof ArrayBuffer) texts.push(latin.decode(value));
      else if (ArrayBuffer.isView(value)) texts.push(latin.decode(value));
      else if (value && typeof value === 'object') Object.values(value).forEach(visit);
    };
    for (const name of database.objectStoreNames) {
      const objects = database.transaction(name).objectStore(name);
      for (const method of ['getAll', 'getAllKeys'])
        await new Promise((resolve) => {
          const request = objects[method]();
          request.onsuccess = () => resolve(visit(request.result));
        });
    }
    database.close();
    return texts.join('\n');
  });
  assert.ok(raw.includes('visible'), 'the search finds what stays readable');
  assert.ok(!raw.includes('in confidence'), 'a text is readable');

  const later = await world.page(context);
  const read = await later.evaluate(async () => {
    const keys = await new Promise((resolve) => {
      const request = indexedDB.open('keys', 1);
      request.onsuccess = () => resolve(request.result);
    });
    const key = await new Promise((resolve) => {
      const request = keys.transaction('keys').objectStore('keys').get('chat');
      request.onsuccess = () => resolve(request.result);
    });
    keys.close();
    const store = await rethread.open({ name: 'sealed', encryption: { key } });
    const { items } = await (await store.session('visible')).messages({ limit: 100 });
    const [{ title }] = (await store.sessions()).items;
    await store.close();
    const other = await crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
    const codes = [];
    for (const encryption of [{ key: other }, undefined]) {
      const wrong = await rethread.open({ name: 'sealed', encryption });
      codes.push(
        await wrong.session('visible').then(
          () => 'opened',
          ({ code }) => code,
        ),
      );
      await wrong.close();
    }
    return { texts: items.map(({ parts }) => parts[0].text), title, codes };
  });
  assert.equal(read.texts.length, 20);
  assert.equal(read.texts[19], 'in confidence 19');
  assert.equal(read.title, 'in confidence: title');
  assert.deepEqual(read.codes, ['wrong_key', 'wrong_key']);
});
