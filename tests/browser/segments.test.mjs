// Large sessions in IndexedDB: old records become segments while nobody writes, and the newest messages are there
// first.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

/** A page with helpers: `fill` writes 300 turns of 4 KB, `records` counts the log's records, `until` waits for a
 *  condition. */
async function opened(context) {
  const page = await world.page(context);
  await page.evaluate(() => {
    globalThis.turn = (at) => ({
      messages: [
        { role: 'user', content: `question ${at}` },
        { role: 'assistant', content: `answer ${at} ${'x'.repeat(4000)}` },
      ],
    });
    globalThis.fill = async (session) => {
      for (let at = 0; at < 300; at += 1) await session.append(turn(at), 'openai-chat');
    };
    globalThis.records = (name) =>
      new Promise((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const counting = opening.result.transaction('log').objectStore('log').count();
          counting.onsuccess = () => {
            opening.result.close();
            resolve(counting.result);
          };
        };
      });
    globalThis.until = async (test) => {
      for (const end = Date.now() + 60_000; Date.now() < end; ) {
        if (await test()) return true;
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
      return false;
    };
    globalThis.textOf = ({ parts }) => parts.map(({ text }) => text.slice(0, 12)).join('');
  });
  return page;
}

test('r46 old records are merged while the session is idle and open in another tab', async () => {
  const context = await world.context();
  const page = await opened(context);
  const facts = await page.evaluate(async () => {
    const client = await rethread.open({ name: 'merged' });
    const session = await client.session('s');
    await fill(session);
    // Another connection, as another tab has, which has read the records one by one.
    const other = await rethread.open({ name: 'merged' });
    const reader = await other.session('s');
    await reader.messages({ limit: 1000 });
    const merged = await until(async () => (await records('merged')) < 100);
    await reader.append(turn(300), 'openai-chat');
    await session.append(turn(301), 'openai-chat');
    await reader.refresh();
    const all = async (of) => (await of.messages({ limit: 1000 })).items.map(textOf);
    const [here, there] = [await all(session), await all(reader)];
    const { revision } = session;
    await client.close();
    await other.close();
    const again = await rethread.open({ name: 'merged' });
    const read = await all(await again.session('s'));
    const { state, findings } = await again.status();
    await again.close();
    return { merged, revision, same: JSON.stringify(here) === JSON.stringify(there), read, state, findings };
  });
  assert.ok(facts.merged && facts.same);
  assert.deepEqual(
    facts.read,
    Array.from({ length: 302 }, (_, at) => [`question ${at}`.slice(0, 12), `answer ${at} xxxx`.slice(0, 12)]).flat(),
  );
  assert.deepEqual([facts.state, facts.findings, facts.revision], ['ready', [], 302]);
});

test('r56 a large session shows its newest messages first, then all of them', async () => {
  const page = await opened();
  const facts = await page.evaluate(async () => {
    const client = await rethread.open({ name: 'newest' });
    await fill(await client.session('s'));
    await client.close();
    const again = await rethread.open({ name: 'newest' });
    const session = await again.session('s');
    const view = session.view();
    const first = view.getSnapshot();
    const page = await session.messages({ limit: 20 });
    const isLoading = view.getSnapshot().loading;
    const older = await session.messages({ limit: 20, cursor: page.cursor });
    const whole = await until(() => !view.getSnapshot().loading);
    const last = view.getSnapshot();
    const { body } = await session.render({ dialect: 'openai-chat', params: { model: 'm' } });
    await again.close();
    const cold = await rethread.open({ name: 'newest' });
    const rendered = await (await cold.session('s')).render({ dialect: 'openai-chat', params: { model: 'm' } });
    await cold.close();
    return {
      first: [first.loading, first.hasOlder, first.messages.length > 10, textOf(first.messages.at(-2))],
      isLoading,
      whole,
      page: page.items.map(textOf),
      parent: page.items[0].parentId === older.items.at(-1).id,
      older: textOf(older.items[0]),
      last: [last.loading, last.hasOlder, last.messages.length],
      kept: last.messages.at(-1) === first.messages.at(-1),
      messages: JSON.parse(new TextDecoder().decode(body)).messages.length,
      same: String(rendered.body) === String(body),
    };
  });
  assert.deepEqual(facts.first, [true, true, true, 'question 299']);
  assert.ok(facts.isLoading && facts.whole && facts.kept && facts.same);
  assert.deepEqual(
    [facts.page.length, facts.page[0], facts.page.at(-2), facts.older],
    [20, 'question 290', 'question 299', 'question 280'],
  );
  assert.deepEqual(facts.last, [false, true, 100]);
  assert.equal(facts.messages, 600);
});
