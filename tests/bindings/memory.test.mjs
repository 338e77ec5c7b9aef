// What a closed store leaves behind: nothing of its memory, whoever still holds an object of it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { open } from 'rethread';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

const says = (text) => ({ messages: [{ role: 'user', content: text }] });
const provider = { dialect: 'openai-chat', url: 'https://model.invalid', params: { model: 'm' }, stream: true };

/** Opens a store, fills it, closes it in the middle of a run, and gives everything that an application may have kept of
 *  it. */
async function openAndClose(at) {
  const client = await open({ store: 'memory', name: `store-${at}` });
  const large = await client.session('large');
  await large.append(says('x'.repeat(200_000)), 'openai-chat');
  const session = await client.session('s');
  await session.append(says('shown'), 'openai-chat');
  const view = session.view();
  const end = session.subscribe(() => {});
  assert.equal(view.getSnapshot().messages.length, 1);
  const run = await session.run({ input: 'Q', provider });
  const { state } = session;
  await client.close();
  return { client, large, session, state, view, end, run };
}

async function megabytes() {
  // Finalizers run in tasks of their own.
  for (let round = 0; round < 3; round += 1) {
    collect();
    await new Promise((resolve) => setImmediate(resolve));
  }
  return process.memoryUsage().rss / 2 ** 20;
}

test('r62 the memory of 2,000 closed stores does not add up, though their objects are still referenced', {
  timeout: 170_000,
}, async () => {
  const held = [];
  for (let at = 0; at < 20; at += 1) held.push(await openAndClose(at));
  const before = await megabytes();
  for (let at = 20; at < 2_000; at += 1) held.push(await openAndClose(at));
  const grown = (await megabytes()) - before;
  // What they were given is 400 MB.
  assert.ok(grown < 100, `${held.length} closed stores hold ${grown} MB`);
});

test('after close every object rejects with closed, and closing twice is harmless', async () => {
  const { client, session, view, run, end } = await openAndClose(0);
  await client.close();
  end();
  assert.deepEqual(
    view.getSnapshot().messages.map(({ parts }) => parts[0].text),
    ['shown', 'Q'],
    'a page goes on painting what it has',
  );
  const closed = (error) => error.code === 'closed';
  for (const work of [
    () => client.session('s'),
    () => client.sessions(),
    () => client.status(),
    () => session.append(says('x'), 'openai-chat'),
    () => session.messages(),
    () => session.refresh(),
    () => run.changed(),
  ])
    await assert.rejects(work, closed);
  assert.deepEqual([session.id, run.id.length > 0], ['s', true]);
});

test('work in progress when the store is closed is stored or rejected, and never hangs', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const appends = Array.from({ length: 20 }, (_, at) => session.append(says(`text ${at}`), 'openai-chat'));
  const asked = session.render({
    dialect: 'openai-chat',
    params: { model: 'm' },
    input: 'Q',
    replay: { reducers: [{ type: 'custom', reduce: () => new Promise(() => {}) }] },
  });
  const ends = Promise.allSettled([...appends, asked]);
  await client.close();
  for (const { status, reason } of await ends)
    assert.ok(status === 'fulfilled' || reason.code === 'closed', String(reason));
});
