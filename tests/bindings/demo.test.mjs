// The parts of the demo that need no page: addresses of model services, and the arguments of tools.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { Chat } from '../../www/chat.js';
import { describeRequest, requestItems, requestLine } from '../../www/request-description.js';
import { turnsOf } from '../../www/inspector-timeline.js';
import { fileNameOf } from '../../www/session-files.js';
import { toolsFor } from '../../www/tools.js';
import { WIRE_FORMATS } from '../../www/wire-formats.js';

test('the address of Gemini names the model once, before the query', () => {
  const { url } = WIRE_FORMATS.gemini;
  const base = 'https://generativelanguage.googleapis.com/v1beta/models';
  for (const model of ['gemini-3-pro', 'models/gemini-3-pro']) {
    for (const endpoint of [base, `${base}/`]) {
      assert.equal(url(endpoint, { model, stream: false }), `${base}/gemini-3-pro:generateContent`);
      assert.equal(url(endpoint, { model, stream: true }), `${base}/gemini-3-pro:streamGenerateContent?alt=sse`);
    }
  }
  assert.equal(url(`${base}?key=x`, { model: 'm', stream: true }), `${base}/m:streamGenerateContent?key=x&alt=sse`);
  assert.equal(url(`${base}?key=x`, { model: 'a/b', stream: false }), `${base}/a%2Fb:generateContent?key=x`);
  assert.equal(url('models', { model: 'm', stream: false }), 'models');
});

test('the tools of the demo reject arguments that do not fit their schema', async () => {
  const tools = toolsFor({ hostile: true, counter: null });
  const invocation = { callId: 'c', invocationId: 'i', signal: new AbortController().signal };
  const cases = [
    ['get_weather', { city: ['Oslo'] }, '`city` must be a string'],
    ['get_weather', { city: {} }, '`city` must be a string'],
    ['get_forecast', { city: null }, '`city` must be a string'],
    ['get_time', { city: '' }, '`city` is missing'],
    ['read_page', undefined, '`city` is missing'],
    ['send_money', { to: 'Anna' }, '`amount` is missing'],
    ['send_money', { to: 'Anna', amount: '5' }, '`amount` must be a number'],
    ['send_money', { to: 'Anna', amount: 0 }, '`amount` must be a positive number'],
  ];
  for (const [name, args, message] of cases)
    await assert.rejects(tools[name].execute(args, invocation), { message }, JSON.stringify(args));
  assert.match(await tools.get_weather.execute({ city: 'Oslo' }, invocation), /^Oslo: -?\d+ °C/);
});

test('the items of a request are described in each wire format', () => {
  const chat = [
    { role: 'user', content: 'Hi' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'f', arguments: '{}' } }],
    },
    { role: 'tool', tool_call_id: 'a', content: 'sun' },
  ];
  const bodies = {
    'openai-chat': { messages: chat },
    'openai-responses': {
      input: [
        { role: 'user', content: 'Hi' },
        { type: 'function_call', call_id: 'a', name: 'f', arguments: '{}' },
        { type: 'function_call_output', call_id: 'a', output: 'sun' },
      ],
    },
    anthropic: {
      messages: [
        { role: 'user', content: [{ type: 'text', text: 'Hi' }] },
        { role: 'assistant', content: [{ type: 'tool_use', id: 'a', name: 'f', input: {} }] },
        { role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a', content: 'sun' }] },
      ],
    },
    gemini: {
      contents: [
        { role: 'user', parts: [{ text: 'Hi' }] },
        { role: 'model', parts: [{ functionCall: { name: 'f', args: {} } }] },
        { role: 'user', parts: [{ functionResponse: { name: 'f', response: { result: 'sun' } } }] },
      ],
    },
  };
  for (const [dialect, body] of Object.entries(bodies)) {
    const [question, call, result] = requestItems(body);
    assert.deepEqual([question.label, question.text], ['user', 'Hi'], dialect);
    assert.match(call.label, /\bf$/, dialect);
    assert.equal(result.label, 'result', dialect);
    assert.match(result.text, /sun/, dialect);
  }
  assert.deepEqual(
    requestItems({ input: 'Hi' }).map(({ label, text }) => [label, text]),
    [['user', 'Hi']],
  );
  const rare = {
    messages: [
      { role: 'user', content: [{ type: 'image' }] },
      { role: 'assistant', content: null },
      { type: 'web_search_call' },
    ],
  };
  assert.deepEqual(
    requestItems(rare).map(({ label }) => label),
    ['user', 'assistant', 'web_search_call'],
  );
});

test('r23 a summary shows what is new, and what the service had', () => {
  const text = (value) => JSON.stringify(value);
  const [one, two] = [
    { role: 'user', content: 'One' },
    { role: 'assistant', content: 'Yes' },
  ];
  const first = describeRequest(text({ messages: [one] }), { before: null, messages: [] });
  assert.equal(requestLine(first), 'last request: 1 item, the whole conversation');
  const second = describeRequest(text({ messages: [one, two, one] }), { before: first, messages: [] });
  assert.deepEqual(
    second.items.map(({ isNew }) => isNew),
    [false, true, true],
  );
  assert.equal(requestLine(second), 'last request: 3 items, 2 new');
  const call = { type: 'tool', call: { result: { content: 'x' } } };
  const messages = [
    { role: 'user', parts: [] },
    { role: 'assistant', parts: [{ type: 'text' }, call, { type: 'tool', call: { result: null } }] },
  ];
  const delta = describeRequest(
    text({ previous_response_id: 'r', input: [{ type: 'function_call_output', call_id: 'a', output: 'x' }] }),
    { before: second, messages },
  );
  assert.deepEqual(
    [delta.isDelta, delta.previousResponseId, delta.keptItemCount, delta.items[0].isNew],
    [true, 'r', 4, true],
  );
  assert.equal(requestLine(delta), 'last request: 1 new item, the service had 4');
});

test('the file of a chat has a harmless name', () => {
  assert.equal(fileNameOf('../../etc/passwd <b>"x"</b>'), 'etc-passwd-b-x-b');
  assert.equal(fileNameOf('Wie ist das Wetter in Zürich?'), 'Wie-ist-das-Wetter-in-Zürich');
  for (const title of [null, undefined, '', '…']) assert.equal(fileNameOf(title), 'chat');
});

test('r52 the timeline shows a run that is not in history as a turn of its own', async () => {
  const session = await (await open()).session('s');
  const provider = { dialect: 'openai-chat', url: 'http://localhost/', params: { model: 'm' } };
  const stored = {
    messages: [
      { role: 'user', content: 'One' },
      { role: 'assistant', content: 'Yes.' },
    ],
  };
  await session.append(stored, 'openai-chat');
  const run = await session.run({ provider, input: 'Two' });
  const view = session.view();
  const questions = () =>
    turnsOf(view.getSnapshot().messages).map(({ question, answers }) => [question, answers.length]);
  assert.deepEqual(questions(), [
    ['One', 1],
    ['Two', 0],
  ]);
  await run.cancel();
  assert.deepEqual(questions(), [
    ['One', 1],
    ['Two', 0],
  ]);
  run[Symbol.dispose]();
});

test('r52 a run that is discarded is at no time an edited question that was interrupted', async () => {
  const db = await open();
  const session = await db.session('s');
  const provider = { dialect: 'openai-chat', url: 'http://localhost/', params: { model: 'm' } };
  const begin = async (options) => {
    const run = await session.run({ provider, ...options });
    run[Symbol.dispose]();
    return run;
  };
  const run = await begin({ input: 'Hi' });
  const hidden = [];
  let chat;
  const settings = { provider, headers: {}, hostile: false, counter: null, keepsConversations: false };
  chat = await Chat.open(db, 's', settings, () => hidden.push(...(chat?.hiddenRuns ?? []).map(({ input }) => input)));
  assert.equal(chat.view.getSnapshot().run?.id, run.id);
  await chat.discard(run.id);
  assert.deepEqual([chat.view.getSnapshot().run, hidden], [null, []]);

  // In the place of another message it is not shown, until it is discarded.
  await session.append({ messages: [{ role: 'user', content: 'Hi' }] }, 'openai-chat');
  const [{ id: replace }] = (await session.messages()).items;
  const edit = await begin({ input: 'Hello', replace });
  await chat.readPendingRuns();
  assert.deepEqual(
    chat.hiddenRuns.map(({ id }) => id),
    [edit.id],
  );
  await chat.discard(edit.id);
  assert.deepEqual(chat.hiddenRuns, []);
  chat.close();
});
