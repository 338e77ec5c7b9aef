// Reducers and `persist`, with the callbacks of an application, in Node.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const TURNS = 4;
const talk = () => ({
  messages: [
    { role: 'system', content: 's' },
    ...Array.from({ length: TURNS }, (_, n) => [
      { role: 'user', content: `u${n}` },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: `c${n}`, type: 'function', function: { name: 'f', arguments: `{"n":${n}}` } }],
      },
      { role: 'tool', tool_call_id: `c${n}`, content: `r${n} ${'x'.repeat(2000)}` },
      { role: 'assistant', content: `a${n}` },
    ]).flat(),
  ],
});

async function filled(options = {}) {
  const warnings = [];
  const client = await open({ store: 'memory', onWarning: (warning) => warnings.push(warning), ...options });
  const session = await client.session('s');
  await session.append(talk(), 'openai-chat');
  return { client, session, warnings };
}

/** The chat messages that go out, in short. */
async function shown(session, ...reducers) {
  const { body, report } = await session.render({
    dialect: 'openai-chat',
    params: { model: 'm' },
    replay: { reducers },
  });
  const { messages } = JSON.parse(new TextDecoder().decode(body));
  const short = messages.map(({ role, content, tool_calls: calls }) =>
    calls ? `call${calls.length}` : role === 'tool' ? `result:${content.length}` : content,
  );
  return { short, report, messages };
}

test('r36 the reducers without callbacks', async () => {
  const { session } = await filled();
  assert.deepEqual((await shown(session, { type: 'sliding_turns', turns: 1 })).short, [
    's',
    'u3',
    'call1',
    'result:2003',
    'a3',
  ]);
  assert.deepEqual((await shown(session, { type: 'message_count', count: 4 })).short, [
    's',
    'a2',
    'u3',
    'call1',
    'result:2003',
    'a3',
  ]);
  assert.deepEqual(
    (await shown(session, { type: 'message_count', count: 3, keepTools: false, systems: 'first' })).short,
    ['s', 'u3', 'call1', 'result:2003', 'a3'],
  );
  const cut = await shown(session, { type: 'tool_results', keepNewestTurns: 1, maxBytes: 100 });
  assert.deepEqual(
    cut.short.filter((word) => word.startsWith('result')),
    ['result:100', 'result:100', 'result:100', 'result:2003'],
  );
  assert.ok(cut.report.filter(({ code, action }) => code === 'reduced' && action === 'rewritten').length === 3);
  assert.deepEqual(
    (await shown(session, { type: 'token_budget', tokens: 900 })).short.filter((word) => word.startsWith('u')),
    ['u1', 'u2', 'u3'],
  );
  // Nothing stored has changed.
  assert.equal((await session.messages({ limit: 100 })).items.length, 1 + 3 * TURNS);
});

test('r36 settings of `open` apply to every session; those of a call replace them', async () => {
  const { session } = await filled({ replay: { reducers: [{ type: 'sliding_turns', turns: 1 }] } });
  const render = async (replay) =>
    JSON.parse(new TextDecoder().decode((await session.render({ dialect: 'openai-chat', replay })).body)).messages
      .length;
  assert.equal(await render(undefined), 5);
  assert.equal(await render({ reducers: [] }), 17);
});

test('r14 a counter gets one batch per render, and no text twice', async () => {
  const { session } = await filled();
  const batches = [];
  const count = async (texts) => {
    batches.push(texts);
    return texts.map((text) => text.length / 4);
  };
  const first = await shown(session, { type: 'token_budget', tokens: 1200, count });
  assert.equal(batches.length, 1);
  assert.ok(batches[0].includes('f\n{"n":0}'), 'arguments count');
  assert.deepEqual((await shown(session, { type: 'token_budget', tokens: 1200, count })).short, first.short);
  assert.equal(batches.length, 1);
  await session.append({ messages: [{ role: 'user', content: 'new' }] }, 'openai-chat');
  await shown(session, { type: 'token_budget', tokens: 1200, count });
  assert.deepEqual(batches.slice(1), [['new']]);
});

test('r36 a summary is requested with a body, and replaces the messages that it covers', async () => {
  const { session } = await filled();
  const bodies = [];
  const summarize = async (body) => {
    assert.ok(body instanceof Uint8Array);
    bodies.push(JSON.parse(new TextDecoder().decode(body)));
    return 'they talked';
  };
  const reducer = { type: 'summarize', target: 3, threshold: 0, summarize };
  const once = await shown(session, reducer);
  assert.deepEqual(once.short, [
    's',
    'Summary of the conversation before this:\nthey talked',
    'u3',
    'call1',
    'result:2003',
    'a3',
  ]);
  assert.deepEqual(
    [bodies.length, bodies[0].model, bodies[0].messages.filter(({ role }) => role === 'tool').length],
    [1, 'm', 3],
  );
  assert.equal(bodies[0].messages.at(-1).role, 'user');
  await shown(session, reducer);
  assert.equal(bodies.length, 1);
});

test('r36 custom: the application chooses, but cannot drop the newest question', async () => {
  const { session } = await filled();
  const reduce = (messages) => {
    assert.equal(messages.length, 1 + 3 * TURNS);
    const last = messages.at(-1);
    return [
      { role: 'user', parts: [{ type: 'text', text: 'first' }] },
      { ...last, parts: [{ type: 'text', text: 'shorter' }] },
    ];
  };
  assert.deepEqual((await shown(session, { type: 'custom', reduce })).short, ['first', 'u3', 'shorter']);
});

test('r36 a callback that throws is reported, and nothing is lost', async () => {
  const { session, warnings } = await filled();
  const boom = () => {
    throw new Error('boom');
  };
  for (const reducer of [
    { type: 'custom', reduce: boom },
    { type: 'custom', reduce: () => 'x' },
    { type: 'custom', reduce: async () => boom() },
    { type: 'summarize', target: 1, summarize: boom },
    { type: 'summarize', target: 1, summarize: async () => 5 },
    { type: 'token_budget', tokens: 1, count: boom },
    { type: 'token_budget', tokens: 1, count: () => [1] },
    { type: 'token_budget', tokens: 1, count: (texts) => texts.map(() => NaN) },
  ]) {
    const { short, report } = await shown(session, reducer);
    assert.equal(short.length, 17, reducer.type);
    assert.equal(report.filter(({ code }) => code === 'callback_failed').length, 1);
    assert.equal(warnings.splice(0).filter(({ code }) => code === 'callback_failed').length, 1);
  }
});

test('r36 r71 in a run: called once, for its first model call, and cancelled while pending', {
  timeout: 10_000,
}, async () => {
  const lane = laneOf(standIn.url, 'reduce-run');
  await lane.script([{ calls: [{ name: 'f', arguments: {} }] }, { text: 'Done.' }]);
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  const tools = { f: { execute: () => 'r' } };
  let asked = 0;
  const reduce = async (messages) => {
    asked += 1;
    return messages;
  };
  const { status, turns } = await drive(
    await session.run({ input: 'x', provider, tools, replay: { reducers: [{ type: 'custom', reduce }] } }),
  ).result;
  assert.deepEqual([status, turns, asked], ['finished', 2, 1]);
  const never = { type: 'custom', reduce: () => new Promise(() => {}) };
  const run = await session.run({ input: 'y', provider, tools, replay: { reducers: [never] } });
  const driven = drive(run);
  await run.cancel();
  assert.equal((await driven.result).status, 'cancelled');
});

const SECRET = 'hunter2-secret';

async function secretive(name, persist) {
  const lane = laneOf(standIn.url, name);
  await lane.script([
    {
      calls: [
        { name: 'login', arguments: { user: 'eva', password: SECRET } },
        { name: 'other', arguments: { n: 1 } },
      ],
    },
    { text: 'Done.' },
  ]);
  const warnings = [];
  const client = await open({ store: 'memory', onWarning: (warning) => warnings.push(warning) });
  const session = await client.session('s');
  const asked = [];
  const tools = {
    login: {
      execute: () => ({ token: SECRET }),
      persist(invocation, result) {
        asked.push([invocation, result]);
        return persist.call(this, invocation, result);
      },
    },
    other: { execute: () => 'fine' },
  };
  const provider = { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true };
  const { status } = await drive(await session.run({ input: 'x', provider, tools })).result;
  assert.equal(status, 'finished');
  const [, second] = await lane.requests();
  assert.equal(second.bodyText.split(SECRET).length, 3, 'the model gets arguments and result as they are');
  const stored = [
    await session.messages({ limit: 100 }),
    await session.invocations({ payload: true }),
    session.view().getSnapshot(),
  ];
  const { body, report } = await session.render({ dialect: 'openai-chat' });
  const text = new TextDecoder().decode(body);
  return { asked, warnings, stored: JSON.stringify(stored), rows: stored[1].items, text, report };
}

test('r12 persist replaces arguments and result', async () => {
  const persist = ({ name, arguments: own }, result) => ({
    arguments: { ...own, password: `(${name})` },
    ...(result && { result: { token: '(gone)' } }),
  });
  const { asked, stored, rows, text, warnings } = await secretive('persist-replace', persist);
  assert.deepEqual(asked, [
    [{ name: 'login', arguments: { user: 'eva', password: SECRET } }, undefined],
    [{ name: 'login', arguments: { user: 'eva', password: SECRET } }, { token: SECRET }],
  ]);
  assert.doesNotMatch(stored + text, new RegExp(SECRET));
  assert.match(text, /\(login\)/);
  assert.match(text, /\(gone\)/);
  const row = rows.find(({ name }) => name === 'login');
  assert.deepEqual(
    [row.redacted, row.status, row.arguments, row.result.content],
    [true, 'ok', { user: 'eva', password: '(login)' }, { token: '(gone)' }],
  );
  assert.deepEqual(warnings, []);
});

for (const [name, persist, warns] of [
  ['null', () => null, false],
  [
    'throws',
    () => {
      throw new Error('boom');
    },
    true,
  ],
  ['undefined', () => undefined, true],
  ['a promise', async () => ({ arguments: {} }), true],
  ['what JSON cannot say', () => ({ arguments: 1n }), true],
  ['another member', () => ({ args: {}, result: null }), true],
  ['a list', () => [{ arguments: {} }], true],
  ['a text', () => '{"arguments":{}}', true],
  [
    'a proxy that was revoked',
    () => {
      const { proxy, revoke } = Proxy.revocable({}, {});
      revoke();
      return proxy;
    },
    true,
  ],
  [
    'a getter that throws',
    () => ({
      get arguments() {
        throw new Error('no');
      },
    }),
    true,
  ],
  [
    'a proxy that throws',
    () =>
      new Proxy(
        {},
        {
          get() {
            throw new Error('no');
          },
        },
      ),
    true,
  ],
  [
    'a proxy that shows no members',
    () =>
      new Proxy(
        {},
        {
          ownKeys() {
            throw new Error('no');
          },
        },
      ),
    true,
  ],
  [
    'a member whose toJSON throws',
    () => ({
      arguments: {
        toJSON() {
          throw new Error('no');
        },
      },
    }),
    true,
  ],
]) {
  test(`r12 persist returns ${name}: nothing of the call is stored, its sibling is kept`, async () => {
    const { stored, rows, text, report, warnings } = await secretive(`persist-${name.replaceAll(' ', '-')}`, persist);
    assert.doesNotMatch(stored + text, new RegExp(SECRET));
    assert.doesNotMatch(text, /login/);
    assert.match(text, /other/);
    assert.equal(rows.find((row) => row.name === 'login').redacted, true);
    assert.equal(report.filter(({ code }) => code === 'redacted').length, 1);
    assert.equal(warnings.filter(({ code }) => code === 'callback_failed').length, warns ? 1 : 0);
  });
}
