// Neutral messages, with a session in memory, in Node.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, validate } from 'rethread';

const text = (body) => new TextDecoder().decode(body);

const given = () => [
  { id: 'q', role: 'user', createdAt: 1000, metadata: { from: 'import' }, parts: [
    { type: 'text', text: 'What is on it?' },
    { type: 'image', data: new Uint8Array([137, 80, 78, 71]), mediaType: 'image/png' },
    { type: 'file', name: 'a.pdf', data: new Blob(['%PDF'], { type: 'application/pdf' }) },
    { type: 'data', name: 'card', value: { never: 'sent' } },
  ] },
  { id: 'a', role: 'assistant', parts: [
    { type: 'reasoning', text: 'hm' },
    { type: 'text', text: 'I look.' },
    { type: 'tool', callId: 'c1', name: 'look', arguments: { at: 1 }, result: { found: true } },
    { type: 'tool', name: 'look', arguments: { at: 2 } },
    { type: 'text', text: 'A cat.' },
  ] },
];

test('the title of a session is null until it is set', async () => {
  const store = await open({ store: 'memory' });
  const session = await store.session('s');
  assert.equal(session.title, null);
  await session.update({ title: 'Trip' });
  assert.equal(session.title, 'Trip');
  await session.update({ title: null });
  assert.equal(session.title, null);
  await store.close();
});

test('r57 neutral messages are returned as appended, and are encoded in every dialect', async () => {
  const store = await open({ store: 'memory', now: () => 2000 });
  const session = await store.session('s');
  const { messageIds } = await session.append(given(), { source: { type: 'history', id: 'old' } });
  assert.deepEqual(messageIds, ['q', 'a', 'a.2']);
  const { items } = await session.messages();
  assert.deepEqual([items[0].id, items[0].createdAt, items[0].metadata, items[0].source], ['q', 1000, { from: 'import' }, { type: 'history', id: 'old' }]);
  assert.equal(items[1].createdAt, 2000);
  assert.deepEqual(items[0].parts, [
    { type: 'text', text: 'What is on it?' },
    { type: 'image', data: 'iVBORw==', mediaType: 'image/png' },
    { type: 'file', name: 'a.pdf', data: 'JVBERg==', mediaType: 'application/pdf' },
    { type: 'data', name: 'card', value: { never: 'sent' } },
  ]);
  for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral']) {
    const { body } = await session.render({ dialect, params: { model: 'm' }, replay: { freshness: Infinity }, input: 'And now?' });
    assert.deepEqual(validate(body, dialect).filter(({ severity }) => severity === 'error'), [], dialect);
    for (const said of ['What is on it?', 'iVBORw==', 'I look.', 'found', 'A cat.', 'And now?']) assert.ok(text(body).includes(said), `${dialect}: ${said}`);
    assert.ok(!text(body).includes('never'), dialect);
  }
  await store.close();
});

test('r57 values that change after `append` was called are stored as they were, in the order of the calls', async () => {
  const store = await open({ store: 'memory' });
  const session = await store.session('s');
  const messages = [{ role: 'user', parts: [{ type: 'text', text: 'one' }, { type: 'image', data: new Blob(['x']), mediaType: 'image/png' }] }];
  const first = session.append(messages);
  messages[0].parts[0].text = 'changed';
  const second = session.append({ messages: [{ role: 'assistant', content: 'two' }] }, 'openai-chat');
  await Promise.all([first, second]);
  const { items } = await session.messages();
  assert.deepEqual(items.map(({ parts }) => parts[0].text), ['one', 'two']);
  await store.close();
});

test('r57 messages of a session can be appended to another one', async () => {
  const store = await open({ store: 'memory' });
  const from = await store.session('from');
  await from.append(given());
  const copy = await store.session('copy');
  const { items } = await from.messages();
  const calls = new Map((await from.invocations({ payload: true })).items.map((call) => [call.id, call]));
  await copy.append(items.map(({ id, role, createdAt, metadata, parts }) => ({
    id, role, createdAt, metadata, parts: parts.map((part) => {
      if (part.type !== 'tool_call') return part;
      const { callId, name, argumentsText, result, finishedAt } = calls.get(part.invocation);
      return { type: 'tool', callId, name, arguments: argumentsText, ...(result && { result: result.content, isError: result.isError }), ...(finishedAt && { finishedAt }) };
    }),
  })));
  const body = async (session) => JSON.parse(text((await session.render({ dialect: 'anthropic', params: { model: 'm', max_tokens: 9 }, replay: { freshness: Infinity } })).body));
  const plain = ({ messages }) => JSON.stringify(messages).replaceAll(/"(id|tool_use_id)":"[^"]*"/g, '"$1":""');
  assert.equal(plain(await body(copy)), plain(await body(from)));
  await store.close();
});

test('r57 what a view shows can be appended elsewhere, refusals and calls included; a bare id of a call is refused with what to do', async () => {
  const store = await open({ store: 'memory', now: () => 2000 });
  const session = await store.session('s');
  await session.append(given());
  await session.append({ messages: [{ role: 'user', content: 'How?' }, { role: 'assistant', content: null, refusal: 'I cannot help.' }] }, 'openai-chat');
  const shown = (one) => one.view().getSnapshot().messages.map(({ id, role, parts }) => [id, role, parts.map(({ type, text: words, call }) => [type, words ?? null, call?.argumentsText ?? null, call?.result ?? null])]);
  const copy = await store.session('copy');
  await copy.append(session.view().getSnapshot().messages);
  assert.deepEqual(shown(copy), shown(session));
  const { items } = await session.messages();
  const withCall = items.find(({ parts }) => parts.some(({ type }) => type === 'tool_call'));
  await assert.rejects((await store.session('third')).append([withCall]), (error) => error.code === 'invalid_input' && /view/.test(error.message));
  const plain = items.filter(({ parts }) => parts.every(({ type }) => type !== 'tool_call'));
  await (await store.session('fourth')).append(plain);
  await store.close();
});
