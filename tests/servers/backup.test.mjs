// r59: all sessions of an SQLite database into IndexedDB in Chromium, and back. RETHREAD_LONG=1: ten thousand.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { DatabaseSync } from 'node:sqlite';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { openWorld } from '../browser/page.mjs';

const SESSIONS = process.env.RETHREAD_LONG === '1' ? 10_000 : 300;

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

const newStore = () => open({ store: sqlite(new DatabaseSync(':memory:')) });
async function textOf(store) {
  let text = '';
  for await (const part of store.backup()) text += part;
  return text;
}
const turn = (at) => ({
  messages: [
    { role: 'user', content: `Question ${at} 😀` },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'look', arguments: `{"at":${at}}` } }],
    },
    { role: 'tool', tool_call_id: `c${at}`, content: `Result ${at}` },
    { role: 'assistant', content: `Answer ${at}` },
  ],
});

test('r59 sessions go from SQLite to IndexedDB and back, equal, also if the page is killed in between', async (t) => {
  const source = await newStore();
  for (let at = 0; at < SESSIONS; at += 1) {
    const session = await source.session(`chat-${at}`, { title: `Chat ${at}` });
    await session.append(turn(at), 'openai-chat');
  }
  const backup = await textOf(source);
  await source.close();

  const context = await world.context();
  const killed = await world.page(context);
  const restored = await killed.evaluate(async (text) => {
    const store = await rethread.open({ name: 'copy', durability: 'strict' });
    const half = text.slice(0, text.length / 2);
    return store.restoreBackup(new Blob([half]).stream()).catch(({ code, details }) => ({ code, ...details }));
  }, backup);
  assert.equal(restored.code, 'invalid_input', 'a half is not a backup');
  assert.ok(restored.sessions > 0 && restored.sessions < SESSIONS);
  await killed.close();

  const page = await world.page(context);
  const begin = performance.now();
  const copied = await page.evaluate(async (text) => {
    const store = await rethread.open({ name: 'copy' });
    const result = await store.restoreBackup(new Blob([text]).stream());
    let copy = '';
    const reader = store.backup().getReader();
    for (let part = await reader.read(); !part.done; part = await reader.read()) copy += part.value;
    await store.close();
    return { result, copy };
  }, backup);
  t.diagnostic(`${SESSIONS} sessions, ${backup.length} characters: ${Math.round(performance.now() - begin)} ms there`);
  const rest = SESSIONS - restored.sessions;
  assert.deepEqual(copied.result, { sessions: rest, skipped: restored.sessions, report: [] });
  assert.ok(copied.copy === backup, 'IndexedDB has something else');

  const target = await newStore();
  const back = async function* () {
    yield copied.copy;
  };
  assert.deepEqual(await target.restoreBackup(back()), { sessions: SESSIONS, skipped: 0, report: [] });
  assert.ok((await textOf(target)) === backup, 'SQLite has something else');
  const { items } = await (await target.session('chat-7')).messages();
  assert.equal(items.length, 3);
  await target.close();
});
