// Annotations, and branches that are not shown, through JavaScript (R38, R57).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';

const say = (text, role = 'user') => ({ role, parts: [{ type: 'text', text }] });
const textsOf = ({ items }) => items.map(({ parts }) => parts.map(({ text }) => text).join(' '));
const coded = (code) => (error) => error.code === code;

async function chat() {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const { messageIds } = await session.append([say('One?'), say('Yes.', 'assistant'), say('Two?')]);
  return { client, session, messageIds };
}

test('r57 a note is on its message in pages, views and copies, and no other message is a new object', async () => {
  const { client, session, messageIds } = await chat();
  const [, answer, last] = messageIds;
  const view = session.view();
  const before = view.getSnapshot();
  let calls = 0;
  view.subscribe(() => calls++);
  const rendered = await session.render({ dialect: 'openai-chat', input: 'And?' });
  const { updatedAt, revision, unread } = (await client.sessions()).items[0];

  const given = { thumb: 'up', labels: ['a', { b: 1 }] };
  await session.annotate(answer, given);
  given.labels.push('later');
  const metadata = { thumb: 'up', labels: ['a', { b: 1 }] };
  const after = view.getSnapshot();
  assert.ok(calls > 0);
  assert.deepEqual(after.messages[1].metadata, metadata);
  assert.notEqual(after.messages[1], before.messages[1]);
  assert.equal(after.messages[1].parts[0], before.messages[1].parts[0]);
  assert.deepEqual([after.messages[0], after.messages[2]], [before.messages[0], before.messages[2]]);
  assert.equal(after.messages[0], before.messages[0]);
  assert.equal(after.messages[2], before.messages[2]);
  await session.annotate(last, 'note');
  assert.equal(view.getSnapshot().messages[2].metadata, 'note');
  assert.equal(view.getSnapshot().messages[1], after.messages[1]);

  const again = await session.render({ dialect: 'openai-chat', input: 'And?' });
  assert.deepEqual(again.body, rendered.body);
  assert.equal(again.prefix.changedBy, null);
  const listed = (await client.sessions()).items[0];
  assert.deepEqual([listed.updatedAt, listed.revision, listed.unread], [updatedAt, revision, unread]);
  await session.append([say('More')], { expectedRevision: revision });

  const page = await session.messages();
  assert.deepEqual(
    page.items.map((message) => message.metadata),
    [null, metadata, 'note', null],
  );
  const copy = await client.session('copy');
  await copy.append(page);
  assert.deepEqual((await copy.messages()).items[1].metadata, metadata);
  const restored = await client.restore(await session.serialize(), { id: 'restored' });
  assert.deepEqual((await restored.messages()).items[1].metadata, metadata);

  for (const nothing of [null, undefined]) {
    await session.annotate(answer, 1);
    await session.annotate(answer, nothing);
    assert.equal((await session.messages()).items[1].metadata, null);
  }
  await session.deleteMessages([answer]);
  await assert.rejects(session.annotate(answer, 'x'), coded('not_found'));
});

test('r57 metadata that is no JSON is invalid_input, and changes nothing', async () => {
  const { session, messageIds } = await chat();
  await session.annotate(messageIds[0], 'kept');
  const cycle = {};
  cycle.self = cycle;
  for (const wrong of [() => 1, Symbol('s'), 1n, cycle, Promise.resolve(1)]) {
    await assert.rejects(session.annotate(messageIds[0], wrong), coded('invalid_input'));
  }
  for (const id of [undefined, null, 7, {}]) await assert.rejects(session.annotate(id, 1), coded('invalid_input'));
  await assert.rejects(session.annotate('unknown', 1), coded('not_found'));
  assert.equal((await session.messages()).items[0].metadata, 'kept');
});

test('r38 append and render take a branch that is not shown', async () => {
  const { client, session, messageIds } = await chat();
  const given = [];
  const store = ({ input }) => void given.push(...textsOf({ items: input }));
  const watched = await client.session('s', { providers: [{ name: 'p', store }] });
  const { branch } = await session.fork(messageIds[1]);
  const { revision, messageIds: added } = await watched.append([say('Three?')], { branch });
  assert.deepEqual([session.branch, session.revision, added.length], ['main', revision, 1]);
  assert.deepEqual(given, ['Three?'], 'what was stored is given to the providers');
  assert.deepEqual(textsOf(await session.messages({ branch })), ['One?', 'Yes.', 'Three?']);
  assert.deepEqual(textsOf(await session.messages()), ['One?', 'Yes.', 'Two?']);
  assert.deepEqual(session.view().getSnapshot().messages[2].siblings, { ids: [messageIds[2], added[0]], index: 0 });

  await session.append({ messages: [{ role: 'user', content: 'Four?' }] }, 'openai-chat', { branch });
  const { body, stablePrefix } = await session.render({ dialect: 'openai-chat', branch, input: 'Five?' });
  const sent = JSON.parse(new TextDecoder().decode(body)).messages.map(({ content }) => content);
  assert.ok(sent.join().includes('Three?') && sent.join().includes('Four?') && !sent.join().includes('Two?'));
  assert.deepEqual([sent.at(-1).endsWith('Five?'), stablePrefix], [true, 0]);

  await assert.rejects(session.append([say('x')], { branch, expectedRevision: revision }), coded('conflict'));
  await assert.rejects(session.append([say('x')], { branch: 'fork-9' }), coded('not_found'));
  await assert.rejects(session.render({ dialect: 'gemini', branch: 'fork-9' }), coded('not_found'));
  await assert.rejects(session.append([say('x')], { branch: 7 }), coded('config_invalid'));
  const answer = { type: 'tool_result', content: 1 };
  await assert.rejects(session.answer('c', answer, { branch }), coded('config_invalid'));
  assert.deepEqual(textsOf(await session.messages()), ['One?', 'Yes.', 'Two?']);
});
