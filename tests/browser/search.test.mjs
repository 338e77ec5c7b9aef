// r79: the search over IndexedDB, in plain and encrypted sessions, with a tab that appends meanwhile.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dumpDatabase, loadDatabase } from '../frozen/indexed-db-dump.mjs';
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
  globalThis.options = { name, now: () => (now += 1_000), ...(encryption && { encryption }) };
  globalThis.client = await rethread.open(options);
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

test('r79 after a first search, whatever another tab changes is found by the next one', async () => {
  const page = await world.page();
  const other = await world.page(page.context());
  await page.evaluate(fill, ['changes', 12]);
  assert.deepEqual(await page.evaluate(find, 'topic3'), ['s3']);
  await other.evaluate(async () => {
    // Its clocks are wrong: what has changed is not told by times.
    const { now } = Date;
    Date.now = () => now() + 3_600_000;
    globalThis.client = await rethread.open({ name: 'changes', now: () => 5 });
    globalThis.say = async (id, text) =>
      (await client.session(id)).append([{ role: 'user', parts: [{ type: 'text', text }] }]);
    await say('s3', 'Snow');
  });
  assert.deepEqual(await page.evaluate(find, 'topic3 snow'), ['s3'], 'a message');
  await other.evaluate(async () => (await client.session('s4')).update({ title: 'Sunshine' }));
  assert.deepEqual(await page.evaluate(find, 'sunshine'), ['s4'], 'a title');
  await other.evaluate(async () => (await client.session('s4')).update({ archived: true }));
  assert.deepEqual(
    await page.evaluate(() => client.search('sunshine', { archived: false }).then(({ items }) => items.length)),
    0,
    'archived',
  );
  await other.evaluate(() => client.deleteSession('s4'));
  assert.deepEqual(await page.evaluate(find, 'sunshine'), [], 'a deletion');
  await other.evaluate(() => say('s4', 'Thunder'));
  assert.deepEqual(await page.evaluate(find, 'thunder'), ['s4'], 'a session of the deleted id');
  // Both tabs write in turn, each without knowing the other's numbers.
  for (let round = 0; round < 5; round += 1) {
    await page.evaluate(async (text) => {
      const session = await client.session('s5');
      await session.append([{ role: 'user', parts: [{ type: 'text', text }] }]);
    }, `own${round}x`);
    await other.evaluate(([id, text]) => say(id, text), ['s6', `other${round}x`]);
    assert.deepEqual(await page.evaluate(find, `other${round}x`), ['s6']);
    assert.deepEqual(
      await other.evaluate((text) => client.search(text).then(({ items }) => items.length), `own${round}x`),
      1,
    );
  }
  assert.deepEqual(page.complaints, []);
});

/** Counts the heads that lists and reads of changes return. */
function countHeads() {
  globalThis.readHeads = 0;
  for (const Class of [IDBObjectStore, IDBIndex])
    for (const method of ['getAll', 'getAllRecords']) {
      const original = Class.prototype[method];
      if (!original) continue;
      Class.prototype[method] = function replaced(...args) {
        const request = original.apply(this, args);
        const { name } = this.objectStore ?? this;
        if (name === 'heads') request.addEventListener('success', () => (readHeads += request.result.length));
        return request;
      };
    }
}

test('r79 after a first search, the next one reads no head that has not changed', async () => {
  const page = await world.page();
  await page.evaluate(fill, ['counted', 60]);
  await page.evaluate(countHeads);
  const rows = await page.evaluate(async () => {
    const counts = [];
    for (const change of [false, false, true]) {
      readHeads = 0;
      if (change)
        await (await client.session('s9')).append([{ role: 'user', parts: [{ type: 'text', text: 'Snow' }] }]);
      await client.search('topic17');
      counts.push(readHeads);
    }
    return counts;
  });
  assert.deepEqual(rows, [60, 0, 1]);
});

/** Waits until the database has the index of a search, or has none, and returns its bytes. */
async function keptIndex([name, isThere]) {
  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const database = await done(indexedDB.open(name));
  let index;
  for (let tries = 0; tries < 200; tries += 1) {
    index = await done(database.transaction('log').objectStore('log').get(0));
    if ((index !== undefined) === isThere) break;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  database.close();
  return index && Array.from(index);
}

for (const name of ['plain index', 'sealed']) {
  test(`r79 r59 the first search of a page reads the index that the database has: ${name}`, async () => {
    const page = await world.page();
    await page.evaluate(countHeads);
    await page.evaluate(fill, [name, 520]);
    const counts = [];
    const search = async (text) => {
      await page.evaluate(() => (readHeads = 0));
      const ids = await page.evaluate(find, text);
      counts.push(await page.evaluate(() => readHeads));
      return ids;
    };
    const reopen = () =>
      page.evaluate(async () => {
        await client.close();
        client = await rethread.open(options);
      });
    assert.deepEqual(await search('topic17 weather'), ['s17']);
    const bytes = await page.evaluate(keptIndex, [name, true]);
    assert.ok(bytes.length > 5_000);
    assert.doesNotMatch(Buffer.from(bytes).toString('latin1'), /weather|topic/i);
    await reopen();
    assert.deepEqual(await search('topic18 weather'), ['s18']);
    await page.evaluate(async () => (await client.session('s9')).update({ title: 'Sunshine' }));
    await reopen();
    assert.deepEqual(await search('sunshine'), ['s9']);
    assert.deepEqual(counts, [520, 0, 1]);
    // What is deleted or erased is not in it.
    await page.evaluate(() => client.deleteSession('s18'));
    assert.equal(await page.evaluate(keptIndex, [name, false]), undefined);
    assert.deepEqual(await search('topic18 weather'), []);
    assert.ok(await page.evaluate(keptIndex, [name, true]), 'the next search writes it again');
    await page.evaluate(async () => {
      const session = await client.session('s17');
      await session.deleteMessages([(await session.messages()).items[0].id]);
    });
    assert.equal(await page.evaluate(keptIndex, [name, false]), undefined);
    assert.deepEqual(await search('topic17 weather'), []);
    assert.deepEqual(await search('topic19 weather'), ['s19']);
    const listed = await page.evaluate(async () => (await client.sessions({ limit: 1_000 })).items.length);
    assert.equal(listed, 519);
    assert.deepEqual(page.complaints, []);
  });
}

test('r79 sessions of a database of version 2 are found, and what changes in it', async () => {
  const page = await world.page();
  await page.evaluate(fill, ['new', 20]);
  const dump = await page.evaluate(dumpDatabase, 'new');
  assert.equal(dump.version, 3);
  const { heads } = dump.stores;
  const rows = heads.rows.map(([key, { object }]) => {
    const { n: _, ...row } = object;
    return [key, { object: row }];
  });
  const indexes = heads.indexes.filter(({ name }) => name === 'recent');
  await page.evaluate(loadDatabase, [
    'old',
    { version: 2, stores: { ...dump.stores, heads: { ...heads, indexes, rows } } },
  ]);
  await page.evaluate(async () => {
    await client.close();
    globalThis.client = await rethread.open({ name: 'old' });
  });
  for (const _ of [1, 2]) assert.deepEqual(await page.evaluate(find, 'topic17'), ['s17']);
  await page.evaluate(async () => {
    const session = await client.session('s3');
    await session.append([{ role: 'user', parts: [{ type: 'text', text: 'Snow' }] }]);
  });
  assert.deepEqual(await page.evaluate(find, 'snow topic3'), ['s3']);
  assert.equal((await page.evaluate(find, 'weather')).length, 20);
  assert.deepEqual(page.complaints, []);
});
