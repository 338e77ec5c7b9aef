// Erasure of messages through JavaScript (R59).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const turn = (at, mark) => [
  { role: 'user', content: `question ${at} ${mark}` },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'get', arguments: JSON.stringify({ mark }) } }],
  },
  { role: 'tool', tool_call_id: `c${at}`, content: `found ${mark}` },
  { role: 'assistant', content: `answer ${at}` },
];

const append = (session, messages) => session.append({ messages }, 'openai-chat');
const idsOf = async (session) => (await session.messages()).items.map(({ id }) => id);

test('r59 deleteMessages erases what it names and returns a receipt', async () => {
  for (const store of ['memory', new MemoryLogStore()]) {
    const client = await open({ store });
    const session = await client.session('s');
    await append(session, turn(0, 'plain'));
    await append(session, turn(1, 'SECRET'));
    const view = session.view();
    const ids = await idsOf(session);
    await assert.rejects(session.deleteMessages(['nobody', ids[3]]), { code: 'not_found' });
    await assert.rejects(session.deleteMessages([]), { code: 'invalid_input' });
    await assert.rejects(session.deleteMessages('id'), { code: 'invalid_input' });
    await assert.rejects(session.deleteMessages([7]), { code: 'invalid_input' });
    assert.deepEqual(await idsOf(session), ids);
    const receipt = await session.deleteMessages([ids[3], ids[4], ids[3]]);
    const { bytes, unreached, ...rest } = receipt;
    assert.ok(bytes > 50);
    assert.deepEqual(rest, {
      messages: [ids[3], ids[4]],
      invocations: 1,
      records: [
        { table: 'log', count: 1 },
        { table: 'tool_invocations', count: 1 },
      ],
    });
    assert.equal(unreached[0].what, 'exports');
    assert.ok(unreached.every(({ what, why }) => what && why));
    assert.deepEqual(await idsOf(session), [...ids.slice(0, 3), ids[5]]);
    assert.deepEqual(
      view.getSnapshot().messages.map(({ id }) => id),
      [...ids.slice(0, 3), ids[5]],
    );
    const { body } = await session.render({ dialect: 'openai-chat', params: { model: 'm' } });
    const sent = new TextDecoder().decode(body);
    assert.doesNotMatch(sent, /SECRET/);
    assert.match(sent, /answer 1/);
    assert.doesNotMatch(await client.exportSession('s'), /SECRET/);
    await client.close();
  }
});

test('r59 old turns are erased by JavaScript', async () => {
  let now = 1_000_000;
  const client = await open({ store: 'memory', now: () => now });
  const session = await client.session('s', { channel: 'mail' });
  for (const text of ['one', 'two', 'three']) {
    now += 1_000;
    await session.append([
      { role: 'user', parts: [{ type: 'text', text }] },
      { role: 'assistant', parts: [{ type: 'text', text: `Answer to ${text}` }] },
    ]);
  }
  assert.deepEqual(await client.prune({ olderThan: 1_000, dryRun: true }), {
    removed: 4,
    sessions: [{ session: 's', removed: 4, left: 2 }],
    failed: [],
  });
  assert.equal((await session.messages()).items.length, 6);
  assert.equal((await client.prune({ olderThan: 0, channel: 'web' })).removed, 0);
  assert.equal((await client.prune({ olderThan: 0, keepNewestTurns: 2, channel: 'mail' })).removed, 2);
  assert.equal((await client.prune({ keepNewestTurns: 1, session: 's' })).removed, 2);
  const [question] = (await session.messages()).items;
  assert.deepEqual(question.parts, [{ type: 'text', text: 'three' }]);
  await assert.rejects(client.prune({}), { code: 'config_invalid' });
  await assert.rejects(client.prune({ keepNewestTurns: 0 }), { code: 'config_invalid' });
  await assert.rejects(client.prune({ olderThan: -1 }), { code: 'config_invalid' });
  await assert.rejects(client.prune({ olderThan: 0, age: 1 }), { code: 'config_invalid' });
  await client.close();
});
