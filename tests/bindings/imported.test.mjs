// Imported history: the times of results, how long they are replayed, calls that are answered later, and rounds.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, validate } from 'rethread';

const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral'];
const MINUTE = 60_000;
const NOW = 100 * 60 * MINUTE;

const clocked = async (options = {}) => {
  const clock = { now: NOW };
  const warnings = [];
  const store = await open({
    store: 'memory',
    now: () => clock.now,
    onWarning: (finding) => warnings.push(finding),
    ...options,
  });
  return { clock, warnings, store, session: await store.session('s') };
};
const rendered = async (session, request = {}) => {
  const { body, report } = await session.render({
    dialect: 'openai-chat',
    params: { model: 'm' },
    input: 'And now?',
    ...request,
  });
  assert.deepEqual(
    validate(body, request.dialect ?? 'openai-chat').filter(({ severity }) => severity === 'error'),
    [],
  );
  return { messages: JSON.parse(new TextDecoder().decode(body)).messages, report };
};
const shown = async (session, request) =>
  (await rendered(session, request)).messages.filter(({ role }) => role === 'tool').map(({ content }) => content);
const rows = async (session) =>
  (await session.invocations({ payload: true })).items.toSorted(
    (a, b) => a.roundIndex - b.roundIndex || a.sequenceIndex - b.sequenceIndex,
  );

const user = (text, extra = {}) => ({ role: 'user', parts: [{ type: 'text', text }], ...extra });
const answer = (parts, extra = {}) => ({ role: 'assistant', parts, ...extra });
const tool = (callId, extra = {}) => ({ type: 'tool', callId, name: 'look', arguments: { of: callId }, ...extra });
const chatTurn = [
  { role: 'user', content: 'q' },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'c1', type: 'function', function: { name: 'look', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: 'c1', content: 'found' },
  { role: 'assistant', content: 'done' },
];
const openTurn = chatTurn.slice(0, 2);

test("r10 the time of a result comes from `finishedAt`, else the message's `createdAt`, else `at`, else now", async () => {
  const { store, session } = await clocked();
  const text = { type: 'text', text: 'done' };
  await session.append(
    [user('q'), answer([tool('own', { result: 1, finishedAt: 111 })], { createdAt: 222 }), answer([text])],
    { at: 333 },
  );
  await session.append([user('q'), answer([tool('message', { result: 1 }), text], { createdAt: 222 })], { at: 333 });
  await session.append([user('q'), answer([tool('at', { result: 1 })]), answer([text])], { at: 333 });
  await session.append([user('q'), answer([tool('now', { result: 1 })]), answer([text])]);
  await session.append({ messages: chatTurn }, 'openai-chat', { at: 444 });
  const times = Object.fromEntries((await rows(session)).map(({ callId, finishedAt }) => [callId, finishedAt]));
  assert.deepEqual(times, { own: 111, message: 222, at: 333, now: NOW, c1: 444 });
  await store.close();
});

test('r10 the age of an imported result comes from its message, and the built-in window reports once what it dropped', async () => {
  const { warnings, store, session } = await clocked();
  const turn = (id, createdAt) => [
    user('q', { createdAt }),
    answer([tool(id, { result: `of ${id}` }), { type: 'text', text: 'done' }], { createdAt }),
  ];
  await session.append([...turn('old', NOW - 6 * MINUTE), ...turn('new', NOW - 4 * MINUTE)]);
  assert.deepEqual(await shown(session), ['of new']);
  assert.deepEqual(await shown(session), ['of new']);
  assert.deepEqual(
    warnings.map(({ code }) => code),
    ['stale_default'],
    'once',
  );
  assert.deepEqual(await shown(session, { replay: { freshness: Infinity } }), ['of old', 'of new']);
  await store.close();
});

test("r10 `append(…, { freshness })` applies to what was appended: above the lower levels, below the request's own", async () => {
  const { clock, warnings, store, session } = await clocked({ replay: { freshness: 0 } });
  await session.append({ messages: chatTurn }, 'openai-chat', { freshness: Infinity, at: 1 });
  await session.append(
    [user('q'), answer([tool('n1', { result: 'neutral', finishedAt: 5 }), { type: 'text', text: 'done' }])],
    { freshness: Infinity },
  );
  await session.append(
    [user('q'), answer([tool('n2', { result: 'an hour', finishedAt: NOW }), { type: 'text', text: 'done' }])],
    { freshness: 60 * MINUTE },
  );
  await session.append(
    [user('q'), answer([tool('n3', { result: 'inherits', finishedAt: NOW }), { type: 'text', text: 'done' }])],
    { freshness: null },
  );
  const tools = { look: { freshness: 0 } };
  assert.deepEqual(await shown(session), ['found', 'neutral', 'an hour']);
  assert.deepEqual(
    await shown(session, { tools }),
    ['found', 'neutral', 'an hour'],
    'it is said of these calls, the tool speaks of all',
  );
  assert.deepEqual(
    await shown(session, { replay: { freshness: 1 } }),
    ['an hour', 'inherits'],
    'the request has the last word',
  );
  clock.now = NOW + 60 * MINUTE;
  assert.deepEqual(await shown(session), ['found', 'neutral', 'an hour'], 'inclusive');
  clock.now += 1;
  assert.deepEqual(await shown(session), ['found', 'neutral']);
  assert.deepEqual(warnings, []);
  await store.close();
});

test('r10 a window that is not a number of milliseconds is rejected, and nothing is stored', async () => {
  const { store, session } = await clocked();
  for (const freshness of [-1, NaN, -Infinity])
    await assert.rejects(session.append({ messages: chatTurn }, 'openai-chat', { freshness }), {
      code: 'config_invalid',
    });
  for (const freshness of ['Infinity', {}, true])
    await assert.rejects(session.append([user('q')], { freshness }), { code: 'config_invalid' });
  assert.equal(session.revision, 0);
  assert.deepEqual((await session.messages()).items, []);
  await store.close();
});

test('r04 an imported open call is answered by a later append in the wire format, and keeps its window', async () => {
  const { store, session, clock } = await clocked();
  await session.append({ messages: openTurn }, 'openai-chat', { freshness: Infinity });
  assert.match((await shown(session))[0], /Interrupted/);
  await session.append({ messages: chatTurn.slice(2) }, 'openai-chat', { at: 7 });
  clock.now += 60 * MINUTE;
  assert.deepEqual(await shown(session), ['found']);
  const [call] = await rows(session);
  assert.deepEqual([call.status, call.finishedAt, call.result], ['ok', 7, { content: 'found', isError: false }]);
  await store.close();
});

test('r57 a neutral tool message answers an imported open call, with its time', async () => {
  const { store, session } = await clocked();
  const { messageIds } = await session.append([user('q'), answer([tool('c1'), tool('c2'), tool('c3')])]);
  assert.equal(messageIds.length, 2);
  const { messageIds: none } = await session.append([
    {
      role: 'tool',
      createdAt: NOW - 2,
      parts: [
        { type: 'tool_result', callId: 'c2', result: { found: 2 } },
        { type: 'tool_result', callId: 'c1', result: 'broke', isError: true, finishedAt: NOW - 1 },
      ],
    },
  ]);
  assert.deepEqual(none, [], 'an answer to a call is no message of its own');
  const [first, second, third] = await rows(session);
  assert.deepEqual(
    [first.status, first.finishedAt, first.result],
    ['error', NOW - 1, { content: 'broke', isError: true }],
  );
  assert.deepEqual(
    [second.status, second.finishedAt, second.result],
    ['ok', NOW - 2, { content: { found: 2 }, isError: false }],
  );
  assert.equal(third.status, 'pending');
  // In one append, too, and by a call of the same append.
  await session.append([
    user('q'),
    answer([tool('c4')]),
    { role: 'tool', parts: [{ type: 'tool_result', callId: 'c4', result: 4 }] },
    answer([{ type: 'text', text: 'done' }]),
  ]);
  assert.deepEqual((await session.invocations({ payload: true })).items.find(({ callId }) => callId === 'c4').result, {
    content: 4,
    isError: false,
  });
  for (const dialect of DIALECTS) {
    const { body } = await session.render({ dialect, params: { model: 'm' }, input: 'And now?' });
    assert.deepEqual(
      validate(body, dialect).filter(({ severity }) => severity === 'error'),
      [],
      dialect,
    );
  }
  await store.close();
});

test('r61 a neutral result without an open call rejects the append, and nothing is stored', async () => {
  const { store, session } = await clocked();
  await session.append([user('q'), answer([tool('c1'), tool('c2', { result: 2 })])]);
  const { revision } = session;
  const result = (part) => ({ role: 'tool', parts: [{ type: 'tool_result', callId: 'c1', result: 1, ...part }] });
  for (const [what, message] of Object.entries({
    unknown: result({ callId: 'c9' }),
    answered: result({ callId: 'c2' }),
    nameless: result({ callId: undefined }),
    empty: result({ result: undefined }),
    'another part': { role: 'tool', parts: [{ type: 'text', text: 'x' }] },
    "the user's": { ...result({}), role: 'user' },
    'no part': { role: 'tool', parts: [] },
  })) {
    await assert.rejects(session.append([user('more'), message]), { code: 'invalid_input' }, what);
  }
  await assert.rejects(session.append([result({}), result({})]), { code: 'invalid_input' }, 'twice');
  assert.equal(session.revision, revision);
  await session.append([result({})]);
  await store.close();
});

test('r04 `session.answer` answers an imported open call, by its call id or its own id', async () => {
  const { store, session, clock } = await clocked({ replay: { freshness: 10 * MINUTE } });
  await session.append([user('q'), answer([tool('c1'), tool('c2'), tool('c3')])]);
  const seen = [];
  session.subscribe(() => seen.push(session.revision));
  const before = session.revision;
  const { revision } = await session.answer('c1', { type: 'tool_result', content: { yes: true } });
  assert.deepEqual([revision, session.revision], [before + 1, before + 1]);
  assert.ok(seen.length > 0, 'who watches hears of it');
  const own = (await rows(session))[1].id;
  await session.answer(
    own,
    { type: 'tool_result', content: 'no', isError: true, finishedAt: NOW - 5 },
    { freshness: Infinity, expectedRevision: revision },
  );
  const [first, second] = await rows(session);
  assert.deepEqual(
    [first.status, first.finishedAt, first.result],
    ['ok', NOW, { content: { yes: true }, isError: false }],
  );
  assert.deepEqual(
    [second.status, second.finishedAt, second.result],
    ['error', NOW - 5, { content: 'no', isError: true }],
  );
  await session.answer('c3', { type: 'tool_result', content: 3 }, { at: NOW - 7 });
  await session.append([answer([{ type: 'text', text: 'done' }])]);
  clock.now += 60 * MINUTE;
  assert.deepEqual(await shown(session), ['Error: no'], 'the window that came with the answer');
  await store.close();
});

test('r04 `session.answer` answers the newest open call of an id, and rejects other ids', async () => {
  const { store, session } = await clocked();
  for (const round of [1, 2])
    await session.append([user(`q${round}`), answer([tool('same')]), answer([{ type: 'text', text: 'never mind' }])]);
  await session.answer('same', { type: 'tool_result', content: 'new' });
  const results = async () =>
    (await session.invocations({ payload: true })).items
      .toSorted((a, b) => a.turn - b.turn)
      .map(({ result }) => result?.content ?? null);
  assert.deepEqual(await results(), [null, 'new']);
  await session.answer('same', { type: 'tool_result', content: 'old' });
  assert.deepEqual(await results(), ['old', 'new']);
  await assert.rejects(session.answer('same', { type: 'tool_result', content: 'again' }), { code: 'wrong_state' });
  await assert.rejects(session.answer('nobody', { type: 'tool_result', content: 1 }), { code: 'not_found' });
  await session.append([user('q'), answer([tool('open')])]);
  const { revision } = session;
  for (const wrong of [
    undefined,
    {},
    { type: 'started' },
    { type: 'tool_result' },
    { type: 'tool_result', content: () => {} },
    { type: 'tool_result', content: 1, finishedAt: -1 },
  ]) {
    await assert.rejects(session.answer('open', wrong), { code: 'invalid_input' }, JSON.stringify(wrong));
  }
  await assert.rejects(session.answer(5, { type: 'tool_result', content: 1 }), { code: 'invalid_input' });
  await assert.rejects(session.answer('open', { type: 'tool_result', content: 1 }, { freshness: -1 }), {
    code: 'config_invalid',
  });
  await assert.rejects(session.answer('open', { type: 'tool_result', content: 1 }, { expectedRevision: 0 }), {
    code: 'conflict',
  });
  assert.equal(session.revision, revision);
  await store.close();
});

test('r57 two rounds of calls separated by a step-start stay two rounds', async () => {
  const { store, session } = await clocked();
  const step = { type: 'step-start' };
  const { messageIds } = await session.append([
    user('q'),
    answer(
      [
        step,
        { type: 'reasoning', text: 'hm' },
        tool('a', { result: 1 }),
        tool('b', { result: 2 }),
        step,
        tool('c', { result: 3 }),
        tool('d'),
        step,
        step,
        { type: 'data', name: 'card', value: 1 },
        { type: 'text', text: 'done' },
        step,
      ],
      { id: 'm' },
    ),
  ]);
  assert.deepEqual(messageIds.slice(1), ['m', 'm.2', 'm.3']);
  assert.deepEqual(
    (await rows(session)).map(({ callId, roundIndex, sequenceIndex }) => [callId, roundIndex, sequenceIndex]),
    [
      ['a', 0, 0],
      ['b', 0, 1],
      ['c', 1, 0],
      ['d', 1, 1],
    ],
  );
  assert.deepEqual(
    (await rendered(session)).messages.map(({ role, tool_calls: calls }) => calls?.length ?? role),
    ['user', 2, 'tool', 'tool', 2, 'tool', 'tool', 'assistant', 'user'],
  );
  for (const dialect of DIALECTS) {
    const { body } = await session.render({ dialect, params: { model: 'm' }, input: 'And now?' });
    assert.deepEqual(
      validate(body, dialect).filter(({ severity }) => severity === 'error'),
      [],
      dialect,
    );
  }
  await assert.rejects(
    session.append([user('q'), { role: 'user', parts: [step] }]),
    { code: 'invalid_input' },
    "only a model's answer has steps",
  );
  await store.close();
});
