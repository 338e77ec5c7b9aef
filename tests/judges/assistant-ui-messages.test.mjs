// r53: messages of assistant-ui of every kind come back as they were, and every dialect's request is valid.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { validate } from 'rethread';
import { toUIMessages } from 'rethread/ai-sdk';
import { threadHistory } from 'rethread/assistant-ui';
import { all, bodyOf, newSession, reloaded } from './assistant-ui.mjs';

const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral', 'bedrock'];
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==';
const PDF = 'JVBERi0xLjQKJWNvZGV4Cg==';
// Results that are old are not sent.
const START = Date.now() - 60_000;
const at = (second) => new Date(START + 1000 * second);

const metadata = (more = {}) => ({
  unstable_state: null,
  unstable_annotations: [],
  unstable_data: [],
  steps: [],
  custom: {},
  ...more,
});
const answer = (id, content, more = {}) => ({
  id,
  role: 'assistant',
  createdAt: at(id.length),
  content,
  status: { type: 'complete', reason: 'stop' },
  metadata: metadata(),
  ...more,
});
const asked = (id, content, more = {}) => ({
  id,
  role: 'user',
  createdAt: at(id.length),
  content,
  attachments: [],
  metadata: { custom: {} },
  ...more,
});
const text = (words, more = {}) => ({ type: 'text', text: words, ...more });
const call = (toolCallId, more = {}) => ({
  type: 'tool-call',
  toolCallId,
  toolName: 'look',
  args: { of: 1 },
  argsText: '{"of":1}',
  ...more,
});

const nested = { ...answer('inner', [text('Nested secret.')]), createdAt: at(3) };

/** A conversation with every part. */
const MESSAGES = [
  { id: 's', role: 'system', createdAt: at(0), content: [text('Be kind.')], metadata: { custom: { a: 1 } } },
  asked(
    'u1',
    [
      text('What is this?', { id: 'p1', providerMetadata: { a: { b: 1 } } }),
      { type: 'image', image: `data:image/png;base64,${PNG}`, filename: 'dot.png' },
      { type: 'image', image: 'https://example.com/cat.png' },
      { type: 'image', image: PNG },
      { type: 'image', image: 'blob:https://example.com/secret-1' },
      { type: 'file', data: PDF, mimeType: 'application/pdf', filename: 'a.pdf' },
      { type: 'file', data: `data:application/pdf;base64,${PDF}`, mimeType: 'application/pdf' },
      { type: 'file', data: 'secret-2', mimeType: 'application/pdf', sourceType: 'id' },
      { type: 'audio', audio: { data: 'secret3==', format: 'wav' } },
      { type: 'data', name: 'place', data: { lat: 1, at: '2026' } },
      { type: 'data', id: 'd1', name: 'place', data: 'secret-4' },
      { type: 'data', name: 'rethread/ai-sdk', data: { of: 'secret-5' } },
    ],
    {
      attachments: [
        {
          id: 'a1',
          type: 'document',
          name: 'notes.txt',
          contentType: 'text/plain',
          status: { type: 'complete' },
          content: [text('The attached words.'), { type: 'data', name: 'page', data: 1 }],
        },
        { id: 'a2', type: 'image', name: 'b.png', status: { type: 'complete' }, content: [] },
      ],
      metadata: { custom: { mood: 'odd', $date: 'no date' }, modality: 'voice' },
    },
  ),
  answer(
    'a1b',
    [
      { type: 'reasoning', text: 'Let me think.', unstable_summary: 'thinks', timing: { startTime: 1 } },
      text('I look.'),
      call('c1', { result: { found: ['x', 2] }, artifact: { raw: 'secret-6' }, timing: { startedAt: 1 } }),
      call('c2', { result: 'no such thing', isError: true }),
      call('c3', { result: { code: 5 }, isError: true, argsText: '{ "of": 1 }' }),
      call('c4', { result: 'told', isError: false, approval: { id: 'ap', approved: true, reason: 'fine' } }),
      call('c5', { result: { long: 'secret-7' }, modelContent: [text('In short.')], parentId: 'p' }),
      call('c6', { result: null, messages: [nested], mcp: { app: { resourceUri: 'ui://a' } } }),
      text('Done.', { status: { type: 'complete' } }),
      { type: 'source', sourceType: 'url', id: 's1', url: 'https://example.com/secret-8', title: 'A source' },
      { type: 'source', sourceType: 'document', id: 's2', title: 'B', mediaType: 'text/plain', filename: 'secret-9' },
      { type: 'file', data: PDF, mimeType: 'application/pdf', filename: 'made.pdf', parentId: 'p' },
      { type: 'image', image: `data:image/png;base64,${PNG}` },
      { type: 'data', name: 'chart', data: [1, 2] },
      { type: 'generative-ui', spec: { root: { component: 'Card', props: { title: 'secret-10' } } }, id: 'g' },
      { type: 'hologram', depth: 3, of: 'secret-11' },
    ],
    {
      metadata: metadata({
        unstable_state: { step: 2 },
        unstable_annotations: ['n'],
        steps: [{ messageId: 'x', usage: { inputTokens: 3, outputTokens: 4 } }],
        submittedFeedback: { type: 'positive', comment: 'good' },
        timing: { streamStartTime: 5, totalChunks: 2, toolCallCount: 6 },
        custom: { thumb: 'up', due: at(9) },
      }),
    },
  ),
  asked('u2', [text('And now?')]),
  answer('a2', [text('Cut by the')], { status: { type: 'incomplete', reason: 'cancelled' } }),
  asked('u3', [text('Go on.')]),
  answer('a3', [text('Failed at'), call('half', { args: { o: 'sec' }, argsText: '{"o": "secret-12' })], {
    status: { type: 'incomplete', reason: 'error', error: { code: 'overloaded' } },
  }),
  asked('u4', [text('Once more.')]),
  answer('a4', [call('open', { approval: { id: 'ap2', options: [{ id: 'o', kind: 'allow-once' }] } })], {
    status: { type: 'requires-action', reason: 'tool-calls' },
  }),
];

const chained = (messages) =>
  messages.map((message, index) => ({ parentId: messages[index - 1]?.id ?? null, message }));

async function stored(messages) {
  const session = await newSession();
  const history = threadHistory(session);
  for (const item of chained(messages)) await history.append(item);
  return session;
}

test('r53 messages of assistant-ui of every part and status come back equal', async () => {
  const session = await stored(MESSAGES);
  const expected = { headId: 'a4', messages: chained(MESSAGES) };
  assert.deepEqual(await threadHistory(session).load(), expected);
  assert.deepEqual(await threadHistory(await reloaded(session)).load(), expected);
  const items = await all(session);
  assert.deepEqual(
    MESSAGES.map(({ id }) => items.some((message) => message.id === id)),
    MESSAGES.map(() => true),
    'a stored message has the id',
  );
  assert.deepEqual(
    items.filter(({ status }) => status !== 'complete').map(({ id, status }) => [id, status]),
    [
      ['a2', 'stopped'],
      ['a3', 'failed'],
    ],
  );
});

test("r53 every dialect's request is valid, has what assistant-ui's messages say, and nothing that was kept beside", async () => {
  const session = await stored(MESSAGES);
  for (const dialect of DIALECTS) {
    const { body } = await session.render({ dialect, params: { model: 'm' } });
    const errors = validate(body, dialect).filter(({ severity }) => severity === 'error');
    assert.deepEqual(errors, [], dialect);
    const sent = new TextDecoder().decode(body);
    for (const said of ['What is this?', 'The attached words.', 'I look.', 'found', 'no such thing', 'In short.', PNG])
      assert.ok(sent.includes(said), `${dialect} is sent ${said}`);
    assert.deepEqual(/secret|assistant-ui|thumb/.exec(sent), null, dialect);
  }
  const chat = await bodyOf(session);
  const user = chat.messages.find(({ role }) => role === 'user').content;
  assert.equal(user.filter(({ type }) => type === 'image_url').length, 3);
  assert.equal(user.filter(({ type }) => type === 'file').length, 2);
  assert.ok(JSON.stringify(user).includes('https://example.com/cat.png'));
  const calls = chat.messages.flatMap(({ tool_calls: own = [] }) => own.map(({ id }) => id));
  assert.equal(calls.length, 7, 'the call that the model did not finish is not sent');
});

test('r53 a message that is not one of assistant-ui is refused, and what JSON does not have is left out', async () => {
  const session = await newSession();
  const history = threadHistory(session);
  const put = (message) => history.append({ parentId: null, message });
  const loop = { ...asked('u', [text('x')]) };
  loop.metadata = { custom: { loop } };
  for (const message of [undefined, {}, asked('u', 'text'), { ...asked('u', []), role: 'tool' }, asked('', []), loop])
    await assert.rejects(put(message), { code: 'invalid_input' });
  assert.equal((await all(session)).length, 0);
  const file = new File(['words'], 'a.txt');
  const attachment = { id: 'a', type: 'file', name: 'a.txt', file, status: { type: 'complete' }, content: [] };
  await put(
    asked('u', [text('x', { id: undefined })], { attachments: [attachment], metadata: { custom: { f() {} } } }),
  );
  const { file: _, ...kept } = attachment;
  const message = asked('u', [text('x')], { attachments: [kept] });
  assert.deepEqual((await history.load()).messages, [{ parentId: null, message }]);
  assert.throws(() => threadHistory({}), { code: 'config_invalid' });
});

test('r53 what other parts of rethread have stored are messages of assistant-ui, and these are UI messages', async () => {
  const session = await newSession();
  await session.append(
    {
      messages: [
        { role: 'system', content: 'Be kind.' },
        {
          role: 'user',
          content: [
            { type: 'text', text: 'hi' },
            { type: 'image_url', image_url: { url: `data:image/png;base64,${PNG}` } },
          ],
        },
        {
          role: 'assistant',
          content: 'Looking.',
          tool_calls: [1, 2].map((n) => ({
            id: `c${n}`,
            type: 'function',
            function: { name: 'look', arguments: '{"of":1}' },
          })),
        },
        { role: 'tool', tool_call_id: 'c1', content: 'found' },
      ],
    },
    'openai-chat',
    { at: 5000 },
  );
  const history = threadHistory(session);
  const { messages } = await history.load();
  assert.deepEqual(
    messages.map(({ message }) => [message.role, message.createdAt.getTime(), message.content]),
    [
      ['system', 5000, [text('Be kind.')]],
      ['user', 5000, [text('hi'), { type: 'image', image: `data:image/png;base64,${PNG}` }]],
      ['assistant', 5000, [text('Looking.'), call('c1', { result: 'found' }), call('c2')]],
    ],
  );
  assert.deepEqual(messages[2].message.metadata, metadata());
  // A thumb, and a result that came late.
  const { message, parentId } = messages[2];
  const rated = {
    ...message,
    content: message.content.with(2, call('c2', { result: 'late' })),
    metadata: metadata({ submittedFeedback: { type: 'positive' } }),
  };
  await history.update({ parentId, message: rated });
  assert.deepEqual((await history.load()).messages[2].message, rated);
  assert.equal((await session.branches()).length, 1);
  assert.deepEqual((await bodyOf(session)).messages.at(-1), { role: 'tool', tool_call_id: 'c2', content: 'late' });
  const shown = toUIMessages(await all(session)).at(-1);
  assert.deepEqual(
    shown.parts.slice(0, 3).map(({ type, output }) => [type, output]),
    [
      ['text', undefined],
      ['tool-look', 'found'],
      ['tool-look', 'late'],
    ],
  );
});

describe('update', () => {
  const paused = answer('a1', [text('May I?'), call('c1'), { type: 'data', name: 'n', data: 1 }], {
    status: { type: 'requires-action', reason: 'interrupt' },
  });
  const talk = [asked('u1', [text('Do it.')]), paused, asked('u2', [text('Well?')]), answer('a2', [text('Yes.')])];
  const update = async (session, message, parentId) => {
    const history = threadHistory(session);
    await history.update({ parentId, message });
    await history.update({ parentId, message });
    const { messages, headId } = await history.load();
    assert.deepEqual(messages.find((item) => item.message.id === message.id).message, message);
    return { headId, messages };
  };

  test('r53 results, decisions, statuses and new parts of a paused message are stored once', async () => {
    const session = await stored(talk.slice(0, 2));
    const done = answer('a1', [
      text('May I?'),
      call('c1', { result: { ok: true }, approval: { id: 'x', approved: true } }),
      { type: 'data', name: 'n', data: 2 },
      text('It is done.'),
    ]);
    await update(session, done, 'u1');
    const revision = session.revision;
    await update(session, done, 'u1');
    assert.equal(session.revision, revision, 'nothing is new');
    assert.equal((await session.branches()).length, 1);
    const { messages } = await bodyOf(session);
    assert.deepEqual(
      messages.map(({ role, content }) => [role, content]),
      [
        ['user', 'Do it.'],
        ['assistant', 'May I?'],
        ['tool', '{"ok":true}'],
        ['assistant', 'It is done.'],
      ],
    );
  });

  test('r53 a result comes late, for a message that others follow, in each branch that has the message', async () => {
    const session = await stored(talk);
    const history = threadHistory(session);
    await history.append({ parentId: 'a1', message: asked('u2b', [text('Or else?')]) });
    const note = { type: 'data', name: 'n', data: 2 };
    const done = { ...paused, content: paused.content.with(1, call('c1', { result: 'late' })).with(2, note) };
    const { messages, headId } = await update(session, done, 'u1');
    assert.equal(headId, 'u2b');
    assert.equal(messages.length, 5);
    for (const { branch } of await session.branches()) {
      await session.switchTo(branch);
      const { messages: sent } = await bodyOf(session);
      assert.deepEqual(sent[2], { role: 'tool', tool_call_id: 'c1', content: 'late' }, branch);
    }
    // A branch that begins before the late result has it.
    await history.append({ parentId: 'a1', message: asked('u2c', [text('And this?')]) });
    assert.deepEqual((await history.load()).messages.find(({ message }) => message.id === 'a1').message, done);
    assert.equal((await bodyOf(session)).messages[2].content, 'late');
    assert.equal(toUIMessages(await all(session))[1].parts.find(({ type }) => type === 'data-n').data, 2);
  });

  test('r53 an edited text is sent instead of the old one, in a branch with what follows it', async () => {
    const session = await stored(talk);
    const edited = { ...talk[0], content: [text('Do the other thing.')] };
    const { messages, headId } = await update(session, edited, null);
    assert.deepEqual([headId, messages.length], ['a2', 4]);
    assert.deepEqual(
      messages.map((item) => item.parentId),
      [null, 'u1', 'a1', 'u2'],
    );
    assert.deepEqual(
      messages.slice(1).map(({ message }) => message),
      talk.slice(1),
    );
    const sent = (await bodyOf(session)).messages.map(({ content }) => content);
    assert.deepEqual([sent[0], sent.at(-1)], ['Do the other thing.', 'Yes.']);
    await threadHistory(session).append({ parentId: 'a2', message: asked('u5', [text('More.')]) });
    assert.equal((await session.branches()).length, 2);
    assert.equal((await bodyOf(session)).messages.at(-1).content, 'More.');
  });

  test('r53 an edit in a branch that is not shown does not show it', async () => {
    const session = await stored(talk.slice(0, 2));
    await threadHistory(session).append({ parentId: 'u1', message: answer('a1b', [text('No.')]) });
    const { headId } = await update(session, { ...paused, content: [text('May I, please?')] }, 'u1');
    assert.equal(headId, 'a1b');
    assert.equal((await bodyOf(session)).messages.at(-1).content, 'No.');
  });

  test('r53 a second result, a shorter message and another role replace what was stored', async () => {
    const once = answer('a1', [call('c1', { result: 'first' }), text('So.')]);
    for (const other of [
      answer('a1', [call('c1', { result: 'second' }), text('So.')]),
      answer('a1', [call('c1', { result: 'first' })]),
      asked('a1', [text('I said it.')]),
    ]) {
      const session = await stored([talk[0], once]);
      await update(session, other, 'u1');
      const sent = JSON.stringify((await bodyOf(session)).messages.slice(1));
      assert.equal(sent.includes('"second"') || !sent.includes('So.'), true, sent);
    }
  });

  test('r53 a message that was never stored is stored by its update, and one that was by another append', async () => {
    const session = await stored(talk.slice(0, 1));
    const history = threadHistory(session);
    await history.update({ parentId: 'u1', message: paused });
    await history.append({ parentId: 'u1', message: paused });
    await history.append({ parentId: null, message: talk[0] });
    assert.deepEqual(await history.load(), { headId: 'a1', messages: chained(talk.slice(0, 2)) });
    assert.equal((await all(session)).length, 2);
  });
});

describe('withFormat', () => {
  /** As `useChatRuntime` of assistant-ui gives it. */
  const ai = (format = 'ai-sdk/v6') => ({
    format,
    encode: ({ message: { id, ...message } }) => message,
    decode: ({ id, parent_id: parentId, content }) => ({ parentId, message: { id, ...content } }),
    getId: ({ id }) => id,
  });
  const messages = [
    { id: 'u', role: 'user', parts: [{ type: 'text', text: 'hi' }] },
    {
      id: 'a',
      role: 'assistant',
      metadata: { tokens: 5 },
      parts: [
        { type: 'step-start' },
        { type: 'reasoning', text: 'Hm.', providerMetadata: { x: { signature: 's' } }, state: 'done' },
        { type: 'tool-look', toolCallId: 'c', state: 'input-available', input: { of: 1 } },
        { type: 'data-note', id: 'n', data: [1] },
      ],
    },
  ];

  test('r53 messages of AI SDK come back equal, are sent, and take a late output', async () => {
    for (const format of ['ai-sdk/v5', 'ai-sdk/v6', 'ai-sdk/v12']) {
      const session = await newSession();
      const history = threadHistory(session).withFormat(ai(format));
      for (const item of chained(messages)) await history.append(item);
      assert.deepEqual(await history.load(), { headId: 'a', messages: chained(messages) });
      const done = structuredClone(messages[1]);
      Object.assign(done.parts[2], { state: 'output-available', output: { found: 1 } });
      done.parts.push({ type: 'step-start' }, { type: 'text', text: 'Found.', state: 'done' });
      done.metadata = { tokens: 9 };
      await history.update({ parentId: 'u', message: done }, 'a');
      await history.update({ parentId: 'u', message: done }, 'a');
      const loaded = threadHistory(await reloaded(session)).withFormat(ai(format));
      assert.deepEqual((await loaded.load()).messages, chained([messages[0], done]));
      assert.deepEqual(toUIMessages(await all(session)), [messages[0], done]);
      assert.deepEqual(
        (await bodyOf(session)).messages.map(({ role, content }) => [role, content ?? null]),
        [
          ['user', 'hi'],
          ['assistant', null],
          ['tool', '{"found":1}'],
          ['assistant', 'Found.'],
        ],
      );
      // The same conversation in assistant-ui's own runtime.
      const own = (await threadHistory(session).load()).messages.at(-1).message;
      assert.deepEqual(
        own.content.map(({ type }) => type),
        ['reasoning', 'tool-call', 'data', 'text'],
      );
      await history.delete([{ parentId: 'u', message: done }]);
      await history.delete([{ parentId: 'u', message: done }]);
      assert.deepEqual((await history.load()).messages, chained(messages.slice(0, 1)));
    }
  });

  test('r53 an id that the server gives later is that of the message which the page stored', async () => {
    const session = await newSession();
    const history = threadHistory(session).withFormat(ai());
    history.pin();
    for (const item of chained(messages)) await history.append(item);
    const renamed = { ...messages[1], id: 'server', metadata: { tokens: 7 } };
    await history.update({ parentId: 'u', message: renamed }, 'a');
    assert.deepEqual((await history.load()).messages, chained([messages[0], { ...renamed, id: 'a' }]));
    // The page has only the new id.
    const ask = (id) => ({ id, role: 'user', parts: [{ type: 'text', text: id }] });
    for (const id of ['u2', 'u3']) await history.append({ parentId: 'server', message: ask(id) });
    await history.update({ parentId: 'u', message: { ...renamed, metadata: { tokens: 8 } } }, 'server');
    const parents = async () => (await history.load()).messages.map(({ parentId, message }) => [message.id, parentId]);
    assert.deepEqual(await parents(), [
      ['u', null],
      ['a', 'u'],
      ['u2', 'a'],
      ['u3', 'a'],
    ]);
    await history.delete([{ parentId: 'u', message: renamed }]);
    assert.deepEqual(await parents(), [
      ['u', null],
      ['u2', 'u'],
      ['u3', 'u'],
    ]);
  });

  test('r53 messages of an unknown format come back equal, and nothing of them is sent', async () => {
    const session = await newSession();
    const own = {
      format: 'mine/v1',
      encode: ({ message }) => ({ role: message.who, secret: message.words, when: message.when }),
      decode: ({ id, parent_id: parentId, content: { role, secret, when } }) => ({
        parentId,
        message: { key: id, who: role, words: secret, when },
      }),
      getId: ({ key }) => key,
    };
    const history = threadHistory(session).withFormat(own);
    const mine = [
      { key: 'k1', who: 'user', words: 'secret hi', when: at(1) },
      { key: 'k2', who: 'bot', words: 'secret bye', when: at(2) },
    ];
    await history.append({ parentId: null, message: mine[0] });
    await history.append({ parentId: 'k1', message: mine[1] });
    const later = { ...mine[1], words: 'secret so long' };
    await history.update({ parentId: 'k1', message: later }, 'k2');
    assert.deepEqual(await history.load(), {
      headId: 'k2',
      messages: [
        { parentId: null, message: mine[0] },
        { parentId: 'k1', message: later },
      ],
    });
    assert.deepEqual(await threadHistory(session).load(), { messages: [] });
    assert.ok(!JSON.stringify(await bodyOf(session)).includes('secret'));
    await assert.rejects(history.append({ parentId: null, message: { words: 'x' } }), { code: 'invalid_input' });
  });
});
