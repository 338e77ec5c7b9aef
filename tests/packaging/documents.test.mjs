// The JavaScript of docs/ is run as it stands, with the names that a reader's program has, against the stand-in.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import OpenAI from 'openai';
import { RethreadError, StreamAssembler, open } from '../../js/entry/node.js';
import { once } from '../../js/adapters/once.js';
import { drive } from '../../js/host.js';
import { conformance } from '../../js/entry/testing-node.js';
import { keyValueService } from '../bindings/key-value-service.mjs';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { bodies, chat as chatOf, decode, runBlock, textsOf } from './document-page.mjs';

const parameters = { type: 'object', properties: {} };
const call = (name, args = {}) => ({ calls: [{ name, arguments: args }] });

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const chat = (...args) => chatOf(standIn, ...args);

describe('docs/owners.md', () => {
  test('each owner can be named', async () => {
    const rethread = await open();
    await runBlock('owners', 'rethread.session("a")', { rethread });
    const owners = await Promise.all([...'abcde'].map(async (id) => (await rethread.session(id)).owner.kind));
    assert.deepEqual(owners, ['session', 'conversation', 'response', 'response', 'caller']);
  });

  test('the application holds the conversation', async () => {
    const { rethread, lane, provider } = await chat('caller', [{ text: 'Hi.' }, { text: 'Now.' }]);
    const { session, next } = await runBlock('owners', 'first.replay', { rethread, provider, tools: {} }, [
      'session',
      'next',
    ]);
    assert.deepEqual(
      (await bodies(lane)).map(({ messages }) => messages.map(({ content }) => content)),
      [['Hello'], ['Hello', 'Hi.', 'And now?']],
    );
    assert.equal(next.messages.length, 3);
    assert.deepEqual(await textsOf(session), ['user: Hello', 'assistant: Hi.', 'user: And now?', 'assistant: Now.']);
  });

  test('a filter changes what is sent, and not what is stored', async () => {
    const { session, lane, provider } = await chat('filter', [{ text: 'I will.' }], { dialect: 'openai-responses' });
    const withoutPhoneNumbers = (items) => JSON.parse(JSON.stringify(items).replaceAll(/555-\d+/g, '[number]'));
    const { run } = await runBlock(
      'owners',
      'inputFilter',
      { session, provider, input: 'Call 555-0100.', withoutPhoneNumbers },
      ['run'],
    );
    assert.equal((await drive(run).result).status, 'finished');
    assert.match(JSON.stringify((await bodies(lane))[0].input), /Call \[number\]\./);
    assert.deepEqual(await textsOf(session), ['user: Call 555-0100.', 'assistant: I will.']);
  });
});

describe('sessions and runs', () => {
  test('a turn', async () => {
    const { lane, provider } = await chat('turn', [{ text: 'It is.' }]);
    const printed = [];
    const console = { log: (text) => printed.push(text) };
    await runBlock('runs', 'event.result.status', { provider, tools: {}, console });
    assert.deepEqual([printed.at(-1), printed.slice(0, -1).join('')], ['finished', 'It is.']);
    assert.equal((await bodies(lane))[0].messages[0].content, 'Answer in one sentence.');
  });

  test('what a session does', async () => {
    const { rethread, provider } = await chat('session', [{ text: 'No.' }]);
    const values = { rethread, provider, tools: {}, input: 'Is it raining?' };
    const { session, items, body, text } = await runBlock('sessions', 'The weather in Oslo', values, [
      'session, items, body, text',
    ]);
    assert.deepEqual([items.length, decode(body).messages.length, text], [1, 1, 'No.']);
    assert.deepEqual(
      [session.title, await textsOf(session)],
      ['The weather in Oslo', ['user: Hi', 'user: Is it raining?', 'assistant: No.']],
    );
  });

  test('another provider', async () => {
    const { session, lane, provider } = await chat('switching', [{ text: 'Oslo.' }, { text: 'It is further north.' }]);
    const toLane = (url, init) => fetch(String(url).replace('https://api.anthropic.com', lane.base), init);
    const values = { session, provider, tools: {}, drive: (run, options) => drive(run, { ...options, fetch: toLane }) };
    await runBlock('switching-models', 'Which is warmer?', values);
    const asked = (await lane.requests()).map(({ dialect }) => dialect);
    assert.deepEqual(asked, ['openai-chat', 'anthropic']);
    assert.equal((await bodies(lane))[1].messages.length, 3);
  });

  test('secrets', async () => {
    const { session, lane, provider } = await chat('secrets', [
      call('login', { name: 'ada', password: 'hunter2' }),
      { text: 'You are logged in.' },
    ]);
    const signIn = async (name, password) => `token-of-${name}-${password.length}`;
    const values = { session, provider, input: 'Log me in.', signIn, apiKey: async () => 'sk-documents' };
    await runBlock('secrets', 'signIn', values);
    assert.match(JSON.stringify((await bodies(lane))[1]), /token-of-ada-7/);
    const [stored] = (await session.invocations({ payload: true })).items;
    assert.deepEqual([stored.arguments, stored.result.content], [{}, 'logged in']);
    assert.doesNotMatch(new TextDecoder().decode(await session.serialize()), /hunter2|token-of-ada|sk-documents/);
  });

  test('all interrupted runs', async () => {
    const { rethread, session, provider } = await chat('resume-all', [{ text: 'Done.' }]);
    const left = await session.run({ input: 'Do it.', provider });
    left[Symbol.dispose]();
    const { runs, failed } = await runBlock('resume', 'resumeAll', { rethread, provider, tools: {} }, ['runs, failed']);
    assert.deepEqual([runs.length, failed], [1, []]);
    while (runs[0].status === 'running') await runs[0].changed();
    assert.equal(runs[0].result().text, 'Done.');
  });

  test('a chat on a page', async () => {
    const { session, provider } = await chat('page', [{ text: 'Hello.' }]);
    const useSyncExternalStore = (subscribe, getSnapshot) => getSnapshot(subscribe);
    const { view, useChat, send } = await runBlock(
      'chat-page',
      'useSyncExternalStore',
      { session, provider, tools: {}, useSyncExternalStore },
      ['view, useChat, send'],
    );
    const isAnswered = (message) => message?.role === 'assistant' && message.saved;
    const answered = new Promise((resolve) => {
      view.subscribe(() => isAnswered(useChat().messages.at(-1)) && resolve());
    });
    await send('Hi');
    await answered;
    assert.deepEqual(await textsOf(session), ['user: Hi', 'assistant: Hello.']);
  });

  test('a branch that is not shown gets messages, and a message gets a note', async () => {
    const rethread = await open();
    const session = await rethread.session('chat-1');
    const said = (role, text) => ({ role, parts: [{ type: 'text', text }] });
    await session.append([said('user', 'Hi'), said('assistant', 'Hello'), said('user', 'And?')]);
    const answered = (await session.messages()).items[1];
    const { branch, body } = await runBlock('branches', 'And in Bern?', { session, answered }, ['branch', 'body']);
    assert.deepEqual(
      decode(body).messages.map(({ content }) => JSON.stringify(content).includes('Bern')),
      [false, false, true],
    );
    assert.deepEqual([session.branch, branch], ['main', 'fork-1']);
    await runBlock('branches', 'thumb: "up"', { session, answered });
    assert.equal((await session.messages()).items[1].metadata, null);
  });

  test('a loop of your own', async () => {
    const { session, lane } = await chat('loop', [
      {
        calls: ['{"to":"ann"}', '{"to":']
          .map((args) => ({ name: 'send_mail', arguments: args }))
          .concat(call('look').calls),
      },
      { text: 'Done.' },
    ]);
    const openai = new OpenAI({ apiKey: 'sk-documents', baseURL: `${lane.base}/v1` });
    const toolDefinitions = [{ type: 'function', function: { name: 'send_mail', parameters } }];
    const { execute } = await runBlock('own-loop', 'const execute', { sendMail: ({ to }) => `sent to ${to}` }, [
      'execute',
    ]);
    await runBlock('own-loop', 'session.external', {
      session,
      openai,
      question: 'What is there?',
      toolDefinitions,
      execute,
    });
    const stored = ['user: What is there?', `assistant: ${'tool_call '.repeat(3).trim()}`, 'assistant: Done.'];
    assert.deepEqual(await textsOf(session), stored);
    const results = (await session.invocations({ payload: true })).items.map(({ result }) =>
      JSON.parse(result.content),
    );
    assert.equal(results[2], 'sent to ann');
    assert.match(results[1], /^SyntaxError/);
    assert.equal(results[0], 'There is no tool look.');
    const { isAnswered } = await runBlock('own-loop', 'isAnswered', { session }, ['isAnswered']);
    assert.equal(isAnswered, true);
    await session.append([{ role: 'user', parts: [{ type: 'text', text: 'And now?' }] }]);
    assert.equal((await runBlock('own-loop', 'isAnswered', { session }, ['isAnswered'])).isAnswered, false);
  });

  test('a loop over fetch runs no call that was imported, asks again after an error, and not after the answer', async () => {
    const { rethread, session, lane, provider } = await chat('loop-fetch', [
      { status: 429, error: { message: 'Slow down.' } },
      { calls: [{ name: 'send_mail', arguments: { to: 'bob' } }] },
      { text: 'Done.' },
    ]);
    const asking = { id: 'call_x', type: 'function', function: { name: 'send_mail', arguments: '{"to":"ann"}' } };
    const old = [
      { role: 'user', content: 'Write to Ann.' },
      { role: 'assistant', content: null, tool_calls: [asking] },
    ];
    await session.append({ messages: [...old, { role: 'user', content: 'hello?' }] }, 'openai-chat');
    const mails = [];
    const warnings = [];
    const values = {
      store: rethread,
      once,
      sendMail: ({ to }) => mails.push(to) && 'sent',
      url: provider.url,
      toolDefinitions: [{ type: 'function', function: { name: 'send_mail', parameters } }],
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-documents' },
      console: { warn: (...words) => warnings.push(words) },
    };
    const loop = () => runBlock('sent-twice', 'chat.render', values);
    await assert.rejects(loop(), /^Error: 429 /);
    await loop();
    const requests = await bodies(lane);
    assert.equal(requests.length, 3);
    assert.match(requests[0].messages[2].content, /may or may not have run/);
    assert.deepEqual(requests[1].messages, requests[0].messages, 'the question is there once');
    await loop();
    assert.equal((await lane.requests()).length, 3);
    assert.deepEqual(mails, ['bob']);
    assert.ok(
      warnings.length && warnings.every(([name, text]) => name === 'send_mail' && text.includes('Interrupted')),
    );
  });

  test('the stream of a loop of your own', async () => {
    const { session, lane, provider } = await chat('loop-stream', [
      { ...call('send_mail', { to: 'ann' }), text: 'I will.' },
      { status: 429, error: { message: 'Slow down.' } },
    ]);
    await session.append({ messages: [{ role: 'user', content: 'Write to Ann.' }] }, 'openai-chat');
    const written = [];
    const values = {
      session,
      url: provider.url,
      toolDefinitions: [{ type: 'function', function: { name: 'send_mail', parameters } }],
      headers: { 'content-type': 'application/json', authorization: 'Bearer sk-documents' },
      StreamAssembler,
      process: { stdout: { write: (text) => written.push(text) } },
    };
    await runBlock('own-loop', 'StreamAssembler', values);
    assert.equal(written.join(''), 'I will.');
    assert.deepEqual(await textsOf(session), ['user: Write to Ann.', 'assistant: I will. tool_call']);
    const [{ name, arguments: args }] = (await session.invocations({ payload: true })).items;
    assert.deepEqual([name, args], ['send_mail', { to: 'ann' }]);
    assert.equal((await bodies(lane))[0].stream, true);
    await assert.rejects(runBlock('own-loop', 'StreamAssembler', values), /^Error: 429 /);
    assert.equal((await session.messages()).items.length, 2);
  });

  test('messages from elsewhere', async () => {
    const { rethread, lane, provider } = await chat('elsewhere', [{ text: 'Blue.' }]);
    const stored = [];
    const auditLog = { insert: (id, messages) => stored.push([id, ...messages.map(({ role }) => role)]) };
    const search = async (input) => `The passage about ${input[0].parts[0].text}`;
    const { session } = await runBlock('history-providers', 'auditLog', { rethread, auditLog, search }, ['session']);
    await drive(await session.run({ input: 'the sky', provider })).result;
    assert.deepEqual(
      (await bodies(lane))[0].messages.map(({ content }) => content),
      ['The passage about the sky', 'the sky'],
    );
    assert.deepEqual(stored, [['chat-1', 'user', 'assistant']]);
    assert.deepEqual(await textsOf(session), ['user: the sky', 'assistant: Blue.']);
  });

  test('freshness and reducers', async () => {
    const { rethread, session } = await chat('freshness', []);
    const imported = {
      messages: [
        { role: 'user', content: 'Look.' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: 'c', type: 'function', function: { name: 'look', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: 'c', content: 'seen' },
        { role: 'assistant', content: 'Done.' },
      ],
    };
    await runBlock('freshness', 'toolFreshness', { rethread, session, imported });
    await runBlock('long-histories', 'reducers', {});
    assert.equal(
      decode((await session.render({ dialect: 'openai-chat', replay: { freshness: null } })).body).messages.length,
      4,
    );
  });

  for (const [name, text, base] of [
    ['a model', 'const { compacted, reason }', '/v1/chat/completions'],
    ['a service', '/responses/compact', '/v1'],
  ]) {
    test(`compaction by ${name}`, async () => {
      const dialect = base === '/v1' ? 'openai-responses' : 'openai-chat';
      const { session, lane } = await chat(`compact-${name.replace(' ', '-')}`, [{ text: 'The summary.' }]);
      const turn = (n) => [
        { role: 'user', content: `Question ${n}` },
        { role: 'assistant', content: `Answer ${n}` },
      ];
      await session.append({ messages: Array.from({ length: 10 }, (_, n) => turn(n)).flat() }, 'openai-chat');
      await session.render({ dialect, params: { model: 'm' } });
      const outputText = ({ output }) =>
        output
          .flatMap(({ content }) => content)
          .map(({ text: words }) => words)
          .join('');
      const headers = { 'content-type': 'application/json', authorization: 'Bearer sk-documents' };
      const block = await runBlock(
        'long-histories',
        text,
        { session, headers, url: lane.base + base, base: lane.base + base, outputText },
        [base === '/v1' ? 'summarize' : 'compacted, reason'],
      );
      const outcome = block.summarize ? await session.compact({ summarize: block.summarize }) : block;
      assert.deepEqual(outcome, { compacted: true, reason: 'threshold' });
      const body = new TextDecoder().decode((await session.render({ dialect, input: 'Next?' })).body);
      assert.ok(body.includes('The summary.') && !body.includes('Question 9'), body);
    });
  }

  test('a run that continues elsewhere', async () => {
    const steps = [call('look'), { text: 'Done.' }];
    const { session: first, provider } = await chat('elsewhere-run', steps);
    let ran = 0;
    const tools = {
      look: {
        parameters,
        execute: () => {
          ran += 1;
          return 'seen';
        },
      },
    };
    const run = await first.run({ input: 'What is there?', provider, tools });
    // The process hangs when the tool has run.
    await new Promise((resolve) => {
      drive(run, { fetch: (...args) => (ran ? new Promise(resolve) : fetch(...args)) });
    });
    const { session } = await chat('elsewhere-run', steps.slice(1));
    await runBlock('resume', 'run.snapshot()', { run, session, provider, tools });
    run[Symbol.dispose]();
    assert.deepEqual(
      [ran, await textsOf(session)],
      [1, ['user: What is there?', 'assistant: tool_call', 'assistant: Done.']],
    );
  });

  test('approvals', async () => {
    const { session, provider } = await chat('approvals', [
      { calls: [1, 2].map((n) => ({ name: 'pay', arguments: { n } })) },
      { text: 'Done.' },
    ]);
    const ran = [];
    const tools = { pay: { parameters, needsApproval: true, execute: ({ n }) => ran.push(n) } };
    const run = await session.run({ input: 'Pay.', provider, tools });
    const questions = [];
    const confirm = (question) => questions.push(question) === 1;
    const { result } = await runBlock('approvals', 'run.approvals()', { run, confirm }, ['result']);
    assert.deepEqual([result.status, ran, questions], ['finished', [1], ['pay {"n":1}?', 'pay {"n":2}?']]);
  });

  test('forms', async () => {
    const { session, lane, provider } = await chat('forms', [
      call('ask_name', { why: 'To greet.' }),
      { text: 'Hello, Ada.' },
    ]);
    const showForm = async ({ why }) => ({ why, name: 'Ada' });
    const { text } = await runBlock('approvals', 'showForm', { session, provider, input: 'Greet me.', showForm }, [
      'text',
    ]);
    assert.equal(text, 'Hello, Ada.');
    assert.match(JSON.stringify((await bodies(lane))[1].messages.at(-1)), /To greet.*Ada/);
  });

  test('handoffs', async () => {
    const { session, lane, provider } = await chat('handoffs', [call('transfer'), { text: 'Billing here.' }]);
    const { run } = await runBlock(
      'handoffs',
      'run.handoff',
      { session, provider, input: 'My invoice?', invoice: { parameters, execute: () => '' } },
      ['run'],
    );
    assert.equal((await drive(run).result).text, 'Billing here.');
    const sent = (await bodies(lane)).map(({ messages, tools }) => [
      messages[0].content,
      ...tools.map((tool) => tool.function.name),
    ]);
    assert.deepEqual(sent, [
      ['You are triage.', 'transfer'],
      ['You are billing.', 'invoice'],
    ]);
  });

  test('moving a session', async () => {
    const { rethread, session } = await chat('moving', []);
    await session.append({ messages: [{ role: 'user', content: 'Hello' }] }, 'openai-chat');
    const copies = await runBlock(
      'copies-and-backups',
      'exportSession',
      { rethread, session, otherStore: await open() },
      ['copy', 'imported'],
    );
    for (const copy of Object.values(copies)) assert.deepEqual(await textsOf(copy), ['user: Hello']);
  });
});

/** Deno KV in memory, as far as the driver uses it. */
function denoKvInMemory() {
  const stored = new Map();
  let versions = 0;
  const set = ([key], value) => stored.set(key, { value, versionstamp: String((versions += 1)).padStart(20, '0') });
  const remove = ([key]) => stored.delete(key);
  const get = ([key]) => stored.get(key) ?? { value: null, versionstamp: null };
  return {
    get,
    set,
    delete: remove,
    async *list({ start: [start], end: [end] }, { limit }) {
      const keys = [...stored.keys()].filter((key) => key >= start && key < end).sort();
      for (const key of keys.slice(0, limit)) yield { key: [key], ...stored.get(key) };
    },
    atomic() {
      const [checks, writes] = [[], []];
      return {
        check: (one) => checks.push(one),
        set: (key, value) => writes.push(() => set(key, value)),
        delete: (key) => writes.push(() => remove(key)),
        commit: async () => {
          const ok = checks.every(({ key, versionstamp }) => get(key).versionstamp === versionstamp);
          if (ok) for (const write of writes) write();
          return { ok };
        },
      };
    },
  };
}

test('docs/servers.md: ten lines store a chat with a tool, and continue the run that a process has left', async () => {
  const { lane, rethread, session, provider } = await chat('server-lines', [
    call('get_weather', { city: 'Oslo' }),
    { text: 'Warm.' },
    { text: 'Not today.' },
  ]);
  const printed = [];
  const ask = (question) =>
    runBlock('servers', 'get_weather', {
      sqlite: (file) => file,
      open: async () => rethread,
      process: { argv: ['node', 'chat.mjs', question], env: { OPENAI_API_KEY: 'sk-documents' } },
      drive: (run, options) => drive(run, { ...options, fetch: (_, init) => fetch(lane.chat, init) }),
      console: { log: (text) => printed.push(text) },
    });
  const left = await session.run({ input: 'Is it warm in Oslo?', provider });
  left[Symbol.dispose]();
  await ask('This waits for the run that was left.');
  await ask('Will it rain?');
  assert.deepEqual(printed, ['Warm.', 'Not today.']);
  const texts = await textsOf(session);
  assert.deepEqual(
    [texts[0], texts.at(-2), texts.at(-1)],
    ['user: Is it warm in Oslo?', 'user: Will it rain?', 'assistant: Not today.'],
  );
  assert.match(JSON.stringify((await bodies(lane))[1].messages), /Oslo: 21 degrees/);
});

test('docs/servers.md: the runs of a killed process are resumed when its lease has expired', async () => {
  const { resumeRuns } = await runBlock('servers', 'resumeRuns', { RethreadError }, ['resumeRuns']);
  const lane = laneOf(standIn.url, 'documents-lease');
  await lane.script([{ text: 'Done.' }]);
  const request = { provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' } } };
  const store = keyValueService();
  const owner = await open({ store, leaseMs: 1000 });
  await (await owner.session('s')).run({ input: 'Hello', ...request });
  const left = keyValueService(store.entries()); // as the process leaves it when it is killed
  await owner.close();
  const session = await (await open({ store: left, leaseMs: 1000 })).session('s');
  assert.equal((await session.pendingRuns())[0].state, 'live');
  await resumeRuns(session, request);
  assert.deepEqual(await textsOf(session), ['user: Hello', 'assistant: Done.']);
});

describe('docs/servers.md: the driver for Deno KV', async () => {
  const fromAsync = async (list) => {
    const all = [];
    for await (const one of list) all.push(one);
    return all;
  };
  const { denoKv } = await runBlock(
    'servers',
    'const denoKv',
    { Array: Object.assign(Object.create(Array), { fromAsync }) },
    ['denoKv'],
  );
  const kv = denoKvInMemory();
  for (const { name, run } of conformance(() => denoKv(kv))) test(name, run);
});
