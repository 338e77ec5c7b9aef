// r62: a page opens as many stores as it likes: their instances are used again, and shared where there are many.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

const message = { messages: [{ role: 'user', content: 'Hi.' }] };

test('r62 opens and closes 400 stores one after another', async () => {
  const page = await world.page();
  const count = await page.evaluate(async (message) => {
    let opened = 0;
    for (; opened < 400; opened += 1) {
      const store = await rethread.open({ store: 'memory' });
      await (await store.session('chat')).append(message, 'openai-chat');
      await store.close();
    }
    return opened;
  }, message);
  assert.equal(count, 400);
});

test('r62 has 300 stores open at once, each with its own sessions', async () => {
  const page = await world.page();
  const titles = await page.evaluate(async (message) => {
    const stores = [];
    for (let at = 0; at < 300; at += 1) {
      const store = await rethread.open({ store: 'memory' });
      const session = await store.session('chat', { title: `chat of ${at}` });
      await session.append(message, 'openai-chat');
      stores.push(store);
    }
    const titles = [];
    for (const store of stores) titles.push((await store.sessions()).items.map(({ title }) => title).join());
    return titles;
  }, message);
  assert.deepEqual(
    titles,
    Array.from({ length: 300 }, (_, at) => `chat of ${at}`),
  );
});

test('r62 a closed store rejects with closed while another store uses its instance', async () => {
  const page = await world.page();
  const facts = await page.evaluate(async (message) => {
    const first = await rethread.open({ store: 'memory' });
    const session = await first.session('chat');
    await first.close();
    await first.close();
    const second = await rethread.open({ store: 'memory' });
    await (await second.session('chat')).append(message, 'openai-chat');
    const code = await session.append(message, 'openai-chat').then(
      () => null,
      (error) => error.code,
    );
    return { code, revision: (await second.session('chat')).revision };
  }, message);
  assert.deepEqual(facts, { code: 'closed', revision: 1 });
});
