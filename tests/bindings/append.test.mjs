// Neutral messages, with a session in memory, in Node.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, validate } from 'rethread';

const text = (body) => new TextDecoder().decode(body);

const given = () => [
  {
    id: 'q',
    role: 'user',
    createdAt: 1000,
    metadata: { from: 'import' },
    parts: [
      { type: 'text', text: 'What is on it?' },
      { type: 'image', data: new Uint8Array([137, 80, 78, 71]), mediaType: 'image/png' },
      { type: 'file', name: 'a.pdf', data: new Blob(['%PDF'], { type: 'application/pdf' }) },
      { type: 'data', name: 'card', value: { never: 'sent' } },
    ],
  },
  {
    id: 'a',
    role: 'assistant',
    parts: [
      { type: 'reasoning', text: 'hm' },
      { type: 'text', text: 'I look.' },
      { type: 'tool', callId: 'c1', name: 'look', arguments: { at: 1 }, result: { found: true } },
      { type: 'tool', name: 'look', arguments: { at: 2 } },
      { type: 'text', text: 'A cat.' },
    ],
  },
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
  assert.deepEqual(
    [items[0].id, items[0].createdAt, items[0].metadata, items[0].source],
    ['q', 1000, { from: 'import' }, { type: 'history', id: 'old' }],
  );
  assert.equal(items[1].createdAt, 2000);
  assert.deepEqual(items[0].parts, [
    { type: 'text', text: 'What is on it?' },
    { type: 'image', data: 'iVBORw==', mediaType: 'image/png' },
    { type: 'file', name: 'a.pdf', data: 'JVBERg==', mediaType: 'application/pdf' },
    { type: 'data', name: 'card', value: { never: 'sent' } },
  ]);
  for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral']) {
    const { body } = await session.render({
      dialect,
      params: { model: 'm' },
      replay: { freshness: Infinity },
      input: 'And now?',
    });
    assert.deepEqual(
      validate(body, dialect).filter(({ severity }) => severity === 'error'),
      [],
      dialect,
    );
    for (const said of ['What is on it?', 'iVBORw==', 'I look.', 'found', 'A cat.', 'And now?'])
      assert.ok(text(body).includes(said), `${dialect}: ${said}`);
    assert.ok(!text(body).includes('never'), dialect);
  }
  await store.close();
});

test('r57 values that change after `append` was called are stored as they were, in the order of the calls', async () => {
  const store = await open({ store: 'memory' });
  const session = await store.session('s');
  const messages = [
    {
      role: 'user',
      parts: [
        { type: 'text', text: 'one' },
        { type: 'image', data: new Blob(['x']), mediaType: 'image/png' },
      ],
    },
  ];
  const first = session.append(messages);
  messages[0].parts[0].text = 'changed';
  const second = session.append({ messages: [{ role: 'assistant', content: 'two' }] }, 'openai-chat');
  await Promise.all([first, second]);
  const { items } = await session.messages();
  assert.deepEqual(
    items.map(({ parts }) => parts[0].text),
    ['one', 'two'],
  );
  await store.close();
});

test('r57 a snapshot of a view is appended if it has all messages of its session', async () => {
  const store = await open({ store: 'memory' });
  const from = await store.session('from');
  await from.append(
    Array.from({ length: 160 }, (_, n) => ({
      id: `m${n}`,
      role: n % 2 ? 'assistant' : 'user',
      parts: [{ type: 'text', text: `${n}` }],
    })),
  );
  const to = await store.session('to');
  const view = from.view();
  assert.deepEqual([view.getSnapshot().messages.length, view.getSnapshot().hasOlder], [100, true]);
  await assert.rejects(to.append(view.getSnapshot()), { code: 'invalid_input', message: /older\(\)/ });
  await assert.rejects(to.append({ ...view.getSnapshot(), hasOlder: false, loading: true }), { code: 'invalid_input' });
  assert.equal(to.revision, 0);
  while (await view.older());
  const { messageIds } = await to.append(view.getSnapshot());
  assert.deepEqual(
    messageIds,
    Array.from({ length: 160 }, (_, n) => `m${n}`),
  );
  await assert.rejects(to.append({ messages: [{ role: 'user', content: 'no dialect' }] }), { code: 'invalid_input' });
  await store.close();
});

/** Chats of each dialect, with what only that dialect knows: signatures, opaque blocks, numbers and escapes that
 *  JavaScript writes otherwise. */
const CHATS = {
  'openai-chat':
    '{"messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"caf\\u00e9","name":"ann"},{"role":"assistant","content":"I look.","reasoning_content":"hm","tool_calls":[{"id":"c","type":"function","function":{"name":"look","arguments":"{ \\"n\\": 1.0 }"}}]},{"role":"tool","tool_call_id":"c","content":"[{\\"source_number\\":3,\\"content\\":\\"a\\"}]"},{"role":"assistant","content":"See [source3].","annotations":[{"type":"url_citation"}]}]}',
  'openai-responses':
    '{"input":[{"role":"user","content":[{"type":"input_text","text":"hi"}]},{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"enc"},{"type":"function_call","id":"fc_1","call_id":"c","name":"look","arguments":"{}","status":"completed"},{"type":"function_call_output","call_id":"c","output":"r"},{"type":"web_search_call","id":"ws_1","status":"completed","big":12345678901234567890},{"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"final_answer","content":[{"type":"output_text","text":"done","annotations":[]}]}]}',
  anthropic:
    '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"redacted_thinking","data":"x"},{"type":"tool_use","id":"c","name":"look","input":{"n":1.50}},{"type":"text","text":"Wait."}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":[{"type":"text","text":"r"}],"cache_control":{"type":"ephemeral"}}]},{"role":"assistant","content":[{"type":"text","text":"done","citations":[{"type":"char_location","cited_text":"r"}]}]}]}',
  gemini:
    '{"contents":[{"role":"user","parts":[{"text":"hi"}]},{"role":"model","parts":[{"functionCall":{"name":"look","args":{"n":2.0}},"thoughtSignature":"c2ln"}]},{"role":"user","parts":[{"functionResponse":{"name":"look","response":{"output":"r"}}}]},{"role":"model","parts":[{"text":"done"},{"executableCode":{"language":"PYTHON","code":"1"}}]}]}',
  mistral:
    '{"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":[{"type":"text","text":"hm"}]},{"type":"text","text":"I look."}],"tool_calls":[{"id":"abcdefghi","function":{"name":"look","arguments":"{}"}}]},{"role":"tool","tool_call_id":"abcdefghi","name":"look","content":"r"},{"role":"assistant","content":"done"}]}',
};
const DIALECTS = Object.keys(CHATS);

/** The bodies of a session in every dialect. */
async function bodies(session) {
  const render = (dialect) =>
    session.render({
      dialect,
      params: { model: 'm', max_tokens: 9 },
      replay: { freshness: Infinity, citations: 'replay' },
      input: 'And now?',
    });
  return Promise.all(DIALECTS.map(async (dialect) => text((await render(dialect)).body)));
}

test('r57 messages of any session can be appended to an empty one, which then renders the same bodies', async () => {
  const store = await open({ store: 'memory', now: () => 2000 });
  const copy = async (id, ...appends) => {
    const session = await store.session(id);
    for (const messages of appends) await session.append(messages);
    return session;
  };
  for (const kind of [...DIALECTS, 'neutral', 'all']) {
    const from = await store.session(kind);
    for (const dialect of DIALECTS.filter((one) => kind === one || kind === 'all'))
      await from.append(CHATS[dialect], dialect, { freshness: dialect === 'gemini' ? 0 : null });
    if (!CHATS[kind]) await from.append(given());
    const expected = await bodies(from);
    const page = await from.messages();
    const shown = from.view().getSnapshot().messages;
    const pages = [];
    for (let cursor; cursor !== null; ) {
      const { items, cursor: next } = await from.messages({ limit: 2, cursor });
      pages.unshift(items);
      cursor = next;
    }
    const texts = JSON.parse(JSON.stringify(page.items));
    const copies = [
      await copy(`${kind} page`, page),
      await copy(`${kind} items`, page.items),
      await copy(`${kind} view`, shown),
      await copy(`${kind} JSON`, texts),
      await copy(`${kind} pages`, ...pages),
    ];
    for (const session of copies) {
      assert.deepEqual(await bodies(session), expected, session.id);
      const plain = ({ items }) => items.map((message) => ({ ...message, parts: message.parts.length }));
      assert.deepEqual(plain(await session.messages()), plain(page), session.id);
      const rows = async (one) =>
        (await one.invocations({ payload: true })).items.map((row) => ({ ...row, sessionId: '' }));
      assert.deepEqual(await rows(session), await rows(from), session.id);
    }
    await assert.rejects(copy(`${kind} half`, await from.messages({ limit: 1 })), {
      code: 'invalid_input',
      message: /cursor/,
    });
  }
  await store.close();
});

test('r57 a run that is copied keeps who answered, in what time, and its open call', async () => {
  const store = await open({ store: 'memory', now: () => 2000 });
  const from = await store.session('from');
  const provider = {
    dialect: 'anthropic',
    url: 'https://m.example/v1/messages',
    params: { model: 'claude-5.5-opus', max_tokens: 9 },
  };
  const reply = async (run, content, stop) =>
    run.answer(run.effects()[0].id, {
      type: 'response',
      status: 200,
      body: JSON.stringify({
        id: 'msg',
        type: 'message',
        role: 'assistant',
        model: 'claude-5.5-opus',
        content,
        stop_reason: stop,
        usage: { input_tokens: 5, output_tokens: 3 },
      }),
    });
  const tools = { later: { async: true, execute() {} } };
  const run = await from.run({ input: 'Start it.', provider, tools });
  await reply(
    run,
    [
      { type: 'thinking', thinking: 'hm', signature: 'c2ln' },
      { type: 'tool_use', id: 'toolu_1', name: 'later', input: { a: 1 } },
    ],
    'tool_use',
  );
  await run.answer(run.effects()[0].id, { type: 'pending' });
  if (run.effects().length) await reply(run, [{ type: 'text', text: 'It runs.' }], 'end_turn');
  const copies = [];
  const check = async () => {
    const copy = await store.session(`copy ${copies.push(0)}`);
    await copy.append(await from.messages());
    const render = async (session) =>
      text((await session.render({ dialect: 'anthropic', params: provider.params, input: 'And?' })).body);
    assert.equal(await render(copy), await render(from));
    const [{ id }] = (await copy.invocations({ tool: 'later' })).items;
    assert.equal(id, (await from.invocations({ tool: 'later' })).items[0].id);
    return copy;
  };
  const copy = await check();
  const { items } = await copy.messages();
  assert.deepEqual(
    items.map(({ model, finishReason, runId }) => [model, finishReason, runId]),
    (await from.messages()).items.map(({ model, finishReason, runId }) => [model, finishReason, runId]),
  );
  assert.ok(
    copy
      .view()
      .getSnapshot()
      .messages.some(({ parts }) => parts.some(({ awaitingResult }) => awaitingResult)),
  );
  for (const session of [from, copy]) await session.answer('toolu_1', { type: 'tool_result', content: { rows: 7 } });
  await check();
  const next = await from.run({ provider, tools });
  await reply(next, [{ type: 'text', text: 'Seven rows.' }], 'end_turn');
  await check();
  await store.close();
});

test('r57 what a view shows can be appended elsewhere, refusals and calls included; a bare id of a call is refused with what to do', async () => {
  const store = await open({ store: 'memory', now: () => 2000 });
  const session = await store.session('s');
  await session.append(given());
  await session.append(
    {
      messages: [
        { role: 'user', content: 'How?' },
        { role: 'assistant', content: null, refusal: 'I cannot help.' },
      ],
    },
    'openai-chat',
  );
  const shown = (one) =>
    one
      .view()
      .getSnapshot()
      .messages.map(({ id, role, parts }) => [
        id,
        role,
        parts.map(({ type, text: words, call }) => [
          type,
          words ?? null,
          call?.argumentsText ?? null,
          call?.result ?? null,
        ]),
      ]);
  const copy = await store.session('copy');
  await copy.append(session.view().getSnapshot().messages);
  assert.deepEqual(shown(copy), shown(session));
  const bare = { role: 'assistant', parts: [{ type: 'tool_call', invocation: 'i', round: 0, place: 0 }] };
  await assert.rejects(
    (await store.session('third')).append([bare]),
    (error) => error.code === 'invalid_input' && /view/.test(error.message),
  );
  assert.equal((await store.session('third')).revision, 0);
  await store.close();
});

test('r61 a time that is no number of milliseconds is rejected wherever it is given, and nothing is stored', async () => {
  const session = await (await open({ store: 'memory' })).session('s');
  const call = { callId: 'c', name: 'f', arguments: {}, result: 1 };
  await session.append([{ role: 'assistant', parts: [{ type: 'tool', callId: 'open', name: 'f', arguments: {} }] }]);
  for (const time of [NaN, Infinity, -Infinity, -1, 1.5, '5', new Date(5), new Date(NaN), {}]) {
    const message = (more, part) => session.append([{ role: 'assistant', ...more, parts: [part] }]);
    const given = {
      tool: () => message({}, { type: 'tool', ...call, finishedAt: time }),
      shown: () => message({}, { type: 'tool', call: { ...call, result: { content: 1 }, finishedAt: time } }),
      stored: () => message({}, { type: 'tool_call', ...call, result: { content: 1 }, finishedAt: time }),
      createdAt: () => message({ createdAt: time }, { type: 'text', text: 'x' }),
      result: () =>
        session.append([
          { role: 'tool', parts: [{ type: 'tool_result', callId: 'open', result: 1, finishedAt: time }] },
        ]),
      results: () =>
        session.append([
          { role: 'tool', createdAt: time, parts: [{ type: 'tool_result', callId: 'open', result: 1 }] },
        ]),
      answer: () => session.answer('open', { type: 'tool_result', content: 1, finishedAt: time }),
    };
    for (const [what, append] of Object.entries(given)) {
      await assert.rejects(append(), (error) => {
        assert.deepEqual(
          [error.code, /`(createdAt|finishedAt)` must be whole milliseconds/.test(error.message)],
          ['invalid_input', true],
          `${what} ${String(time)}: ${error.message}`,
        );
        return true;
      });
    }
  }
  assert.equal((await session.messages()).items.length, 1);
  await session.answer('open', { type: 'tool_result', content: { finishedAt: NaN }, finishedAt: null });
  await session.append([
    {
      role: 'assistant',
      createdAt: undefined,
      parts: [{ type: 'tool', ...call, result: { createdAt: NaN }, finishedAt: 5 }],
    },
  ]);
});
