// r46 r47 r48: `store: "localstorage"` in Chromium.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

test('r46 localStorage conforms', async () => {
  const page = await world.page();
  const results = await page.evaluate(async () => {
    const { createGlue } = await import('/dist/testing.js');
    const { localStorageDriver } = await import('/js/stores/local-storage.js');
    const glue = createGlue((exports) => exports);
    const program = glue.start(
      await WebAssembly.instantiate(await WebAssembly.compileStreaming(fetch('/dist/testing_bg.wasm')), glue.imports),
    );
    const results = [];
    for (const name of program.checkNames()) {
      // There is little room, so each check begins with an empty one.
      localStorage.clear();
      const error = await program
        .runCheck(name, 'suite', () => localStorageDriver(name))
        .then(
          () => null,
          ({ message }) => message,
        );
      results.push({ name, error });
    }
    return results;
  });
  assert.ok(results.length >= 24, `only ${results.length} checks ran`);
  assert.deepEqual(
    results.filter(({ error }) => error),
    [],
  );
});

test('r47 two tabs append 100 times each at once: nothing is lost', async () => {
  const context = await world.context();
  const both = [await world.page(context), await world.page(context)];
  await Promise.all(
    both.map((page, tab) =>
      page.evaluate(async (tab) => {
        const session = await (await rethread.open({ store: 'localstorage', name: 'both' })).session('s');
        for (let n = 0; n < 100; n += 1)
          await session.append({ messages: [{ role: 'user', content: `${tab} ${n}` }] }, 'openai-chat');
      }, tab),
    ),
  );
  const texts = await both[0].evaluate(async () => {
    const { items } = await (
      await (await rethread.open({ store: 'localstorage', name: 'both' })).session('s')
    ).messages({ limit: 1000 });
    return items.map(({ parts }) => parts[0].text);
  });
  for (const tab of [0, 1])
    assert.deepEqual(
      texts.filter((text) => text.startsWith(`${tab} `)),
      Array.from({ length: 100 }, (_, n) => `${tab} ${n}`),
    );
  assert.equal(texts.length, 200);
  for (const page of both) assert.deepEqual(page.complaints, []);
});

test('r47 a tab reads the appends of another one from its listener alone, without a refresh', async () => {
  const context = await world.context();
  const [listening, writing] = [await world.page(context), await world.page(context)];
  await listening.evaluate(async () => {
    const session = await (await rethread.open({ store: 'localstorage', name: 'heard' })).session('s');
    globalThis.heard = new Promise((resolve) => {
      session.subscribe(async () => {
        const { items } = await session.messages();
        if (items.length === 2) resolve(items.map(({ parts }) => parts[0].text));
      });
    });
  });
  await writing.evaluate(async () => {
    const session = await (await rethread.open({ store: 'localstorage', name: 'heard' })).session('s');
    for (const content of ['one', 'two'])
      await session.append({ messages: [{ role: 'user', content }] }, 'openai-chat');
  });
  assert.deepEqual(await listening.evaluate(() => globalThis.heard), ['one', 'two']);
  for (const page of [listening, writing]) assert.deepEqual(page.complaints, []);
});

test('r48 an unfinished commit of a closed tab is undone', async () => {
  const page = await world.page();
  const seen = await page.evaluate(async () => {
    const texts = async (store) =>
      (await (await store.session('s')).messages()).items.map(({ parts }) => parts[0].text);
    const open = () => rethread.open({ store: 'localstorage', name: 'torn' });
    const append = async (store, content) =>
      (await store.session('s')).append({ messages: [{ role: 'user', content }] }, 'openai-chat');
    await append(await open(), 'first');
    const before = { ...localStorage };
    await append(await open(), 'second');
    // As if the tab had ended in between: what was there before is noted, and not all is written.
    const changed = Object.keys(localStorage).filter(
      (key) => localStorage[key] !== before[key] && !key.endsWith('/written'),
    );
    localStorage.setItem(
      'rethread:torn/undo',
      JSON.stringify(Object.fromEntries(changed.map((key) => [key, before[key] ?? null]))),
    );
    localStorage.removeItem(changed[0]);
    const undone = await texts(await open());
    await append(await open(), 'third');
    return {
      changed: changed.length,
      undone,
      after: await texts(await open()),
      undo: localStorage.getItem('rethread:torn/undo'),
    };
  });
  assert.ok(seen.changed >= 2);
  assert.deepEqual(seen, { ...seen, undone: ['first'], after: ['first', 'third'], undo: null });
});

test('r48 a full localStorage is reported and loses nothing', async () => {
  const page = await world.page();
  const seen = await page.evaluate(async () => {
    const session = await (await rethread.open({ store: 'localstorage', name: 'full' })).session('s');
    let appended = 0;
    let code;
    while (!code && appended < 100) {
      await session
        .append({ messages: [{ role: 'user', content: `${appended} ${'x'.repeat(400_000)}` }] }, 'openai-chat')
        .then(
          () => {
            appended += 1;
          },
          (error) => {
            code = error.code;
          },
        );
    }
    const again = await (await rethread.open({ store: 'localstorage', name: 'full' })).session('s');
    const { items } = await again.messages({ limit: 1000 });
    const numbers = items.map(({ parts }) => Number(parts[0].text.split(' ')[0]));
    await again.append({ messages: [{ role: 'user', content: 'small' }] }, 'openai-chat');
    return { appended, code, numbers };
  });
  assert.equal(seen.code, 'quota_exceeded');
  assert.ok(seen.appended > 3);
  assert.deepEqual(
    seen.numbers,
    Array.from({ length: seen.appended }, (_, n) => n),
  );
});

test('r48 promises that it cannot keep are rejected, and keys of other applications are not touched', async () => {
  const page = await world.page();
  const codes = await page.evaluate(async () => {
    const codeOf = (options) =>
      rethread.open({ store: 'localstorage', ...options }).then(
        () => null,
        ({ code, message }) => `${code} ${message.includes('localstorage')}`,
      );
    localStorage.setItem('rethread:newer/schema', 'rethread records 2');
    localStorage.setItem('rethread:other/schema', 'something');
    localStorage.setItem('rethread:keys/user', 'somebody');
    return [
      await codeOf({ durability: 'strict' }),
      await codeOf({ name: 'newer' }),
      await codeOf({ name: 'other' }),
      await codeOf({ name: 'keys' }),
      localStorage.length,
    ];
  });
  assert.deepEqual(codes, [
    'config_invalid true',
    'unsupported_version true',
    'config_invalid true',
    'config_invalid true',
    3,
  ]);
});
