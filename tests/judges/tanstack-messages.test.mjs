// `rethread/tanstack-ai`: messages of TanStack AI are stored and come back as they were, and every dialect's request
// with them is valid.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, validate } from 'rethread';
import { chatPersistence } from 'rethread/tanstack-ai';
import { chatOf } from './tanstack-messages.mjs';
import { seeded } from './ui-messages.mjs';

const CASES = Number(process.env.RETHREAD_CASES ?? (process.env.RETHREAD_LONG ? 2000 : 80));
const SEED = Number(process.env.RETHREAD_SEED ?? 20261127);
const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral', 'bedrock'];

const newStore = () => open({ store: 'memory', replay: { freshness: Number.POSITIVE_INFINITY } });
const store = await newStore();
const quiet = { onError: () => {} };
/** What a page that begins now is given. */
const loaded = async (id, from = store) => (await chatPersistence(from).getItem(id))?.messages;
const user = (content, id = content) => ({ id, role: 'user', parts: [{ type: 'text', content }] });
const assistant = (id, ...parts) => ({ id, role: 'assistant', parts });
const text = (content) => ({ type: 'text', content });

async function errorsOf(session, dialect, input = 'And now?') {
  const { body } = await session.render({ dialect, params: { model: 'm' }, input });
  return validate(body, dialect).filter(({ severity }) => severity === 'error');
}

test("r53 messages of TanStack come back as they were, and every dialect's request is valid", async () => {
  for (let at = 0; at < CASES; at += 1) {
    const messages = chatOf(seeded(SEED + at));
    const label = `RETHREAD_SEED=${SEED + at} RETHREAD_CASES=1`;
    await chatPersistence(store).setItem(`chat-${at}`, { messages });
    assert.deepEqual(await loaded(`chat-${at}`), messages, label);
    const session = await store.session(`chat-${at}`);
    for (const dialect of DIALECTS) assert.deepEqual(await errorsOf(session, dialect), [], `${label} ${dialect}`);
  }
});

test('r53 messages that come part by part are stored once, and come back as they are at last', async () => {
  for (let at = 0; at < Math.ceil(CASES / 4); at += 1) {
    const messages = chatOf(seeded(SEED + at));
    const label = `RETHREAD_SEED=${SEED + at} RETHREAD_CASES=1`;
    const chats = await newStore();
    const kept = chatPersistence(chats);
    for (const [place, message] of messages.entries()) {
      const before = messages.slice(0, place);
      const lengths = message.role === 'assistant' ? message.parts.map((_, length) => length + 1) : [];
      for (const length of lengths) {
        await kept.setItem('chat', { messages: [...before, { ...message, parts: message.parts.slice(0, length) }] });
        // What is there is stored now and then, as if the answer had become quiet.
        if (seeded(SEED + length).below(2)) await kept.flush('chat');
      }
      await kept.setItem('chat', { messages: [...before, message] });
    }
    await kept.flush();
    assert.deepEqual(await loaded('chat', chats), messages, label);
    const session = await chats.session('chat');
    assert.equal((await session.branches()).length, 1, label);
    for (const dialect of DIALECTS) assert.deepEqual(await errorsOf(session, dialect), [], `${label} ${dialect}`);
  }
});

test('r53 what a model is sent is in neutral parts, and what is kept beside them is not sent', async () => {
  const call = {
    type: 'tool-call',
    id: 'c1',
    name: 'look',
    arguments: '{"at":1}',
    input: { at: 1 },
    state: 'complete',
  };
  const answer = [
    { type: 'thinking', content: 'Hm.', signature: 'c2ln' },
    { ...call, output: { found: 'a cat' } },
    { type: 'tool-result', toolCallId: 'c1', content: '{"found":"a cat"}', state: 'complete' },
    { type: 'structured-output', status: 'complete', raw: '{"animal":"cat"}', data: { animal: 'cat' } },
    { type: 'hologram', secret: 'of the page' },
  ];
  const question = { id: 'u', role: 'user', parts: [text('What?'), CAT] };
  await chatPersistence(store).setItem('sent', { messages: [question, assistant('a', ...answer)] });
  const session = await store.session('sent');
  const { items } = await session.messages();
  const types = items.map(({ parts }) => parts.filter(({ type }) => type !== 'data').map(({ type }) => type));
  assert.deepEqual(types, [['text', 'image'], ['reasoning', 'tool_call'], ['text']]);
  for (const dialect of DIALECTS) {
    const { body } = await session.render({ dialect, params: { model: 'm' }, input: 'And now?' });
    const sent = new TextDecoder().decode(body);
    for (const words of ['What?', 'iVBORw0K', 'look', 'a cat', 'animal']) assert.ok(sent.includes(words), words);
    assert.ok(!sent.includes('of the page') && !sent.includes('tanstack'));
  }
});
const CAT = { type: 'image', source: { type: 'data', value: 'iVBORw0KGgoA', mimeType: 'image/png' } };

test('r53 a result in another message than its call is that of the call, and both come back as they were', async () => {
  const call = (id, more) => ({
    type: 'tool-call',
    id,
    name: 'look',
    arguments: '{}',
    state: 'input-complete',
    ...more,
  });
  const result = (toolCallId, content) => ({ type: 'tool-result', toolCallId, content, state: 'complete' });
  const messages = [
    user('Look.', 'u'),
    assistant('a', call('c1'), call('c2', { state: 'complete', output: { seen: 2 } }), call('c3')),
    assistant('b', result('c1', 'a cat'), result('c1', 'again'), result('c2', 'other'), result('c9', 'of none')),
    assistant('c', result('c3', '{"x":1}'), result('c1', 'and again'), text('Well.')),
  ];
  const kept = chatPersistence(store, quiet);
  for (const length of [2, 3, 4]) await kept.setItem('stray', { messages: messages.slice(0, length) });
  await kept.flush('stray');
  await chatPersistence(store, quiet).setItem('stray-at-once', { messages });
  for (const id of ['stray', 'stray-at-once']) {
    assert.deepEqual(await loaded(id), messages);
    const session = await store.session(id);
    const { items } = await session.messages();
    const results = items.flatMap(({ parts }) => parts.flatMap((part) => part.result?.content ?? []));
    assert.deepEqual(results, ['a cat', { seen: 2 }, '{"x":1}']);
    for (const dialect of DIALECTS) assert.deepEqual(await errorsOf(session, dialect), []);
  }
});

test('r53 a call of which a later part has the result comes back as it was, whenever the result comes', async () => {
  const call = { type: 'tool-call', id: 'c', name: 'look', arguments: '{}', state: 'input-complete' };
  const parts = [call, { type: 'tool-result', toolCallId: 'c', content: 'seen', state: 'complete' }];
  const kept = chatPersistence(store, quiet);
  for (const length of [0, 1, 2]) {
    await kept.setItem('later', { messages: [user('hi', 'u'), assistant('a', ...parts.slice(0, length))] });
    await kept.flush();
  }
  const messages = [user('hi', 'u'), assistant('a', ...parts)];
  assert.deepEqual(await loaded('later'), messages);
  await chatPersistence(store, quiet).setItem('at once', { messages });
  assert.deepEqual(await loaded('at once'), messages);
});

test('r53 an answer is appended when the same list comes again, which is how TanStack says that its run is over', async () => {
  const kept = chatPersistence(store, quiet);
  const lists = [[], ['Hel'], ['Hello.']].map((texts) => [
    user('hi', 'u'),
    ...texts.map((words) => assistant('a', text(words))),
  ]);
  for (const messages of lists) await kept.setItem('over', { messages });
  const session = await store.session('over');
  assert.equal((await session.messages()).items.length, 1);
  await kept.setItem('over', { messages: [...lists.at(-1)] });
  assert.equal((await session.messages()).items.length, 2);
});

test('r53 a decision, and what else an answer gets before it has more text, is kept when it comes and stored', async () => {
  const kept = chatPersistence(store, quiet);
  const called = (state, more) => ({
    type: 'tool-call',
    id: 'c',
    name: 'pay',
    arguments: '{}',
    input: {},
    state,
    ...more,
  });
  const asks = { id: 'p', needsApproval: true };
  const parts = [
    [called('input-complete'), text('Wait.')],
    [called('approval-requested', { approval: asks }), text('Wait.')],
    [called('approval-responded', { approval: { ...asks, approved: true } }), text('Wait.')],
    [
      called('approval-responded', { approval: { ...asks, approved: true } }),
      { ...text('Wait.'), metadata: { seen: 1 } },
    ],
  ];
  await kept.setItem('decided', { messages: [user('hi', 'u')] });
  for (const own of parts) {
    const messages = [user('hi', 'u'), assistant('a', ...own)];
    await kept.setItem('decided', { messages });
    assert.deepEqual(await loaded('decided'), messages);
    await kept.flush();
    assert.deepEqual(await loaded('decided'), messages);
  }
  // A page that has less takes nothing away.
  for (const own of parts.slice(0, 3)) {
    await kept.setItem('decided', { messages: [user('hi', 'u'), assistant('a', ...own)] });
    await kept.flush();
  }
  assert.deepEqual((await loaded('decided'))[1].parts, parts.at(-1));
  assert.equal((await (await store.session('decided')).branches()).length, 1);
});

test('r53 a message that JSON cannot have is reported, and holds up no other', async () => {
  const kept = chatPersistence(store, quiet);
  const [asked, said, more] = [user('hi', 'u'), assistant('a', text('Hello.')), user('more', 'u2')];
  const bad = { ...said, metadata: { count: 1n } };
  const refused = { code: 'invalid_input' };
  await kept.setItem('bad', { messages: [asked] });
  await assert.rejects(kept.setItem('bad', { messages: [asked, bad] }), refused);
  await assert.rejects(kept.setItem('bad', { messages: [asked, bad, more] }), refused);
  assert.deepEqual(await loaded('bad'), [asked, more]);
  await kept.setItem('bad', { messages: [asked, more, said] });
  await kept.flush();
  await assert.rejects(kept.setItem('bad', { messages: [asked, more, bad, user('last')] }), refused);
  assert.deepEqual(await loaded('bad'), [asked, more, said, user('last')]);
  assert.equal((await (await store.session('bad')).branches()).length, 1);
});

test('r53 another answer with the same id is a branch, and comes back with its id', async () => {
  const kept = chatPersistence(store, quiet);
  const lists = [['One.'], [], ['Two.'], [], ['Three.']].map((texts) => [
    user('hi', 'u'),
    ...texts.map((content) => assistant('a', text(content))),
  ]);
  for (const messages of lists) await kept.setItem('same-id', { messages });
  await kept.flush();
  assert.deepEqual(await loaded('same-id'), lists.at(-1));
  assert.equal((await (await store.session('same-id')).branches()).length, 3);
});

test('r53 TanStack: an answer without a time that begins as the one before is another answer, and a branch', async () => {
  const call = { type: 'tool-call', id: 'c1', name: 'look', arguments: '{}', state: 'complete', output: 7 };
  const result = { type: 'tool-result', toolCallId: 'c1', content: '7', state: 'complete' };
  const at = (milliseconds) => ({ createdAt: new Date(Date.UTC(2026, 10, 28) + milliseconds) });
  const first = assistant('a1', call, result);
  const second = assistant('a2', call, result, text('Seven.'));
  for (const [before, after, branches] of [
    [first, second, 2],
    [{ ...first, createdAt: 'soon' }, { ...second, createdAt: 'soon' }, 2],
    [first, { ...second, ...at(0) }, 2],
    [{ ...first, ...at(0) }, { ...second, ...at(1) }, 2],
    // TanStack dates what it makes itself, and keeps the time of a message that gets another id.
    [{ ...first, ...at(0) }, { ...second, ...at(0) }, 1],
  ]) {
    const chats = await newStore();
    const kept = chatPersistence(chats);
    await kept.setItem('chat', { messages: [user('q'), before] });
    await kept.flush();
    await kept.setItem('chat', { messages: [user('q'), after] });
    await kept.flush();
    const session = await chats.session('chat');
    assert.equal((await session.branches()).length, branches);
    const [, answer] = await loaded('chat', chats);
    assert.deepEqual([answer.id, answer.parts], [branches === 1 ? 'a1' : 'a2', after.parts]);
  }
});

test('r53 what other parts of rethread have stored are messages of TanStack, which go on', async () => {
  const session = await store.session('other');
  const calls = [
    { type: 'tool', callId: 'c1', name: 'look', arguments: { at: 1 }, result: { found: true } },
    { type: 'tool', callId: 'c2', name: 'look', arguments: '{"at":2}', result: 'gone', isError: true },
    { type: 'tool', callId: 'c3', name: 'look', arguments: {} },
  ];
  await session.append([
    { role: 'developer', parts: [{ type: 'text', text: 'Be brief.' }] },
    {
      id: 'q',
      role: 'user',
      createdAt: 5,
      parts: [
        { type: 'text', text: 'Look.' },
        { type: 'file', data: 'aGk=', mediaType: 'audio/wav' },
      ],
    },
    {
      id: 'a',
      role: 'assistant',
      parts: [{ type: 'reasoning', text: 'Hm.' }, { type: 'data', name: 'x', value: 1 }, ...calls],
    },
  ]);
  const [system, question, answer] = await loaded('other');
  assert.deepEqual([system.role, system.parts], ['system', [text('Be brief.')]]);
  const audio = { type: 'audio', source: { type: 'data', value: 'aGk=', mimeType: 'audio/wav' } };
  assert.deepEqual(question, { id: 'q', role: 'user', createdAt: new Date(5), parts: [text('Look.'), audio] });
  const call = (id, at, more) => ({
    type: 'tool-call',
    id,
    name: 'look',
    arguments: at,
    input: JSON.parse(at),
    ...more,
  });
  assert.deepEqual(answer.parts, [
    { type: 'thinking', content: 'Hm.' },
    call('c1', '{"at":1}', { state: 'complete', output: { found: true } }),
    call('c2', '{"at":2}', { state: 'error', output: { error: 'gone' } }),
    call('c3', '{}', { state: 'input-complete' }),
    { type: 'tool-result', toolCallId: 'c1', content: '{"found":true}', state: 'complete' },
    { type: 'tool-result', toolCallId: 'c2', content: 'gone', state: 'error', error: 'gone' },
  ]);
  // The page goes on with what it was given, and the result of the open call comes from elsewhere.
  const kept = chatPersistence(store, quiet);
  const { messages } = await kept.getItem('other');
  await session.append([{ role: 'tool', parts: [{ type: 'tool_result', callId: 'c3', result: 'late' }] }]);
  const next = [...messages, user('Go on.'), assistant('b', text('Done.'))];
  await kept.setItem('other', { messages: next });
  const again = await loaded('other');
  assert.deepEqual(again.slice(3), next.slice(3));
  assert.deepEqual(again[2].parts.at(-1), {
    type: 'tool-result',
    toolCallId: 'c3',
    content: 'late',
    state: 'complete',
  });
  assert.deepEqual([again.length, (await session.branches()).length], [5, 1]);
});

test('r53 what is no state of a chat is refused, and so are options that there are not', async () => {
  const kept = chatPersistence(store, quiet);
  const refused = { name: 'RethreadError', code: 'invalid_input' };
  const cyclic = {};
  cyclic.self = cyclic;
  for (const messages of [
    {},
    [null],
    [{ id: 'a', role: 'tool', parts: [] }],
    [assistant('a', 'text')],
    [assistant('a', { type: 'x', cyclic })],
  ])
    await assert.rejects(kept.setItem('refused', { messages }), refused);
  await assert.rejects(kept.getItem(''), refused);
  const wrong = { name: 'RethreadError', code: 'config_invalid' };
  assert.throws(() => chatPersistence(Promise.resolve(store)), wrong);
  assert.throws(() => chatPersistence(store, { onFail: () => {} }), wrong);
  assert.throws(() => chatPersistence(store, { onError: 'no' }), wrong);
});
