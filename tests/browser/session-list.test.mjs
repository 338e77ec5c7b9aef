// r79: the list of sessions by recency over IndexedDB, also of a database that an older build made and has open.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { dumpDatabase, loadDatabase } from '../frozen/indexed-db-dump.mjs';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** Makes sessions whose order by recency is not that of their ids, every fifth one archived. */
async function fill([name, count]) {
  let now = 1_000_000;
  globalThis.client = await rethread.open({ name, now: () => now });
  for (let at = 0; at < count; at += 1) {
    now = 1_000_000 + Math.floor(((at * 7_919) % count) / 3);
    const session = await client.session(`s${String(at).padStart(4, '0')}`, { title: `Chat ${at}` });
    await session.append([{ role: 'user', parts: [{ type: 'text', text: `Question ${at}` }] }]);
    if (at % 5 === 0) await session.update({ archived: true });
    session[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
  }
}

/** The list as it is to be, and as it is in pages of `limit`. */
async function lists(limit) {
  const read = async (query) => {
    const items = [];
    let cursor;
    do {
      const page = await client.sessions({ ...query, limit, ...(cursor && { cursor }) });
      items.push(...page.items.map(({ id, updatedAt, archived }) => ({ id, updatedAt, archived })));
      cursor = page.cursor;
    } while (cursor);
    return items;
  };
  return [await read({}), await read({ archived: true }), await read({ archived: 'all' })];
}

function check([open, archived, all], count) {
  assert.equal(all.length, count);
  const order = all.toSorted((a, b) => b.updatedAt - a.updatedAt || (a.id < b.id ? -1 : 1));
  assert.deepEqual(all, order);
  assert.deepEqual(
    open,
    order.filter((one) => !one.archived),
  );
  assert.deepEqual(
    archived,
    order.filter((one) => one.archived),
  );
  assert.equal(archived.length, Math.ceil(count / 5));
}

test('r79 sessions of IndexedDB are listed by recency, in pages of any size', async () => {
  const page = await world.page();
  await page.evaluate(fill, ['list', 40]);
  for (const limit of [1, 7, 40, 1000]) check(await page.evaluate(lists, limit), 40);
  assert.deepEqual(page.complaints, []);
});

/** Makes of a dump what version 1 of the database was. */
function toVersion1({ stores }) {
  const rows = stores.heads.rows.map(([key, { object }]) => {
    const { l: _l, n: _n, ...row } = object;
    return [key, { object: row }];
  });
  return { version: 1, stores: { ...stores, heads: { ...stores.heads, indexes: [], rows } } };
}

test('r79 a database of version 1 is listed by recency, and an older tab gives it up', async () => {
  const page = await world.page();
  await page.evaluate(fill, ['new', 600]);
  const want = await page.evaluate(lists, 1000);
  const dump = await page.evaluate(dumpDatabase, 'new');
  assert.equal(dump.version, 3);
  await page.evaluate(loadDatabase, ['old', toVersion1(dump)]);
  const facts = await page.evaluate(async () => {
    // A tab of an older build closes the database when another one wants to change it, as rethread always did.
    const raw = (version) =>
      new Promise((resolve, reject) => {
        const request = indexedDB.open('old', version);
        request.onsuccess = () => resolve(request.result);
        request.onerror = () => reject(request.error);
      });
    const older = await raw(1);
    let givenUp = false;
    older.onversionchange = () => {
      givenUp = true;
      older.close();
    };
    await client.close();
    globalThis.client = await rethread.open({ name: 'old' });
    const refused = await raw(1).then(
      () => null,
      ({ name }) => name,
    );
    return { givenUp, refused, state: (await client.status()).state };
  });
  assert.deepEqual(facts, { givenUp: true, refused: 'VersionError', state: 'ready' });
  for (const limit of [50, 1000]) assert.deepEqual(await page.evaluate(lists, limit), want);
  check(want, 600);
  const after = await page.evaluate(async () => {
    const session = await client.session('s0001');
    await session.append([{ role: 'user', parts: [{ type: 'text', text: 'And?' }] }]);
    const { items } = await client.sessions({ limit: 1 });
    return [items[0].id, (await session.messages()).items.length, items[0].title];
  });
  assert.deepEqual(after, ['s0001', 2, 'Chat 1']);
  assert.deepEqual(page.complaints, []);
});

test('r79 an older tab that does not give the database up makes it blocked, and nothing is lost', async () => {
  const page = await world.page();
  await page.evaluate(fill, ['held', 10]);
  const want = await page.evaluate(lists, 1000);
  const dump = await page.evaluate(dumpDatabase, 'held');
  await page.evaluate(loadDatabase, ['stubborn', toVersion1(dump)]);
  const facts = await page.evaluate(async () => {
    const older = await new Promise((resolve) => {
      const request = indexedDB.open('stubborn', 1);
      request.onsuccess = () => resolve(request.result);
    });
    const error = await rethread.open({ name: 'stubborn' }).then(
      () => null,
      ({ code }) => code,
    );
    older.close();
    await client.close();
    globalThis.client = await rethread.open({ name: 'stubborn' });
    return error;
  });
  assert.equal(facts, 'upgrade_blocked');
  assert.deepEqual(await page.evaluate(lists, 3), want);
  assert.deepEqual(page.complaints, []);
});
