// A full disk, for real: Chromium is told that this origin may hold little.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

test('r48 a full disk is reported and loses nothing', async () => {
  const page = await world.page();
  const cdp = await page.context().newCDPSession(page);
  // Before the database is opened: what is left is asked once and remembered.
  await cdp.send('Storage.overrideQuotaForOrigin', { origin: new URL(world.url).origin, quotaSize: 12_000_000 });
  await page.evaluate(async () => {
    globalThis.store = await rethread.open({ name: 'quota' });
    globalThis.session = await store.session('s');
    // Nothing that a disk could write shorter.
    globalThis.noise = (length) =>
      Array.from({ length: length / 32_768 }, () =>
        String.fromCharCode(...crypto.getRandomValues(new Uint8Array(32_768)).map((byte) => 48 + (byte % 64))),
      )
        .join('')
        .replaceAll('\\', '/');
    await session.append({ messages: [{ role: 'user', content: 'first' }] }, 'openai-chat');
  });
  const facts = await page.evaluate(async () => {
    let appended = 1;
    let error;
    while (!error && appended < 60) {
      await session.append({ messages: [{ role: 'user', content: noise(1_048_576) }] }, 'openai-chat').then(
        () => {
          appended += 1;
        },
        (e) => {
          error = e;
        },
      );
    }
    await session.refresh();
    return {
      appended,
      code: error?.code,
      message: error?.message,
      held: (await session.messages({ limit: 100 })).items.length,
      revision: session.revision,
    };
  });
  assert.equal(facts.code, 'quota_exceeded', facts.message);
  assert.ok(facts.appended > 1, 'something fitted');
  assert.deepEqual([facts.held, facts.revision], [facts.appended, facts.appended]);
  // Another tab reads what was acknowledged, makes room, and goes on.
  const other = await world.page(page.context());
  const later = await other.evaluate(async () => {
    const store = await rethread.open({ name: 'quota' });
    const count = async (session) => (await session.messages({ limit: 100 })).items.length;
    const held = await count(await store.session('s'));
    await store.deleteSession('s');
    const next = await store.session('next');
    await next.append({ messages: [{ role: 'user', content: 'last' }] }, 'openai-chat');
    return [held, await count(next)];
  });
  assert.deepEqual(later, [facts.appended, 1]);
});
