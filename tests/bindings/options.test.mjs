// Options: an unknown or wrong one is `config_invalid`, names its path, and quotes no value of the wrong type.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { convert, open, repair } from 'rethread';

const body = { messages: [{ role: 'user', content: 'x' }] };
const provider = { dialect: 'openai-chat', url: 'https://model.example/v1/chat/completions', params: { model: 'm' } };
const SECRET = 'sk-verysecret123456';

let client;
let session;
before(async () => {
  client = await open({ store: 'memory' });
  session = await client.session('s');
});
after(() => client.close());

const run = (more) => () => session.run({ input: 'x', provider, ...more });
const to = (more) => run({ provider: { ...provider, ...more } });

/** [path, call]: options that no method knows. */
const UNKNOWN = [
  ['storage', () => open({ storage: 'memory' })],
  ['replay.freshnes', () => open({ store: 'memory', replay: { freshnes: 1 } })],
  ['channels.web.onstale', () => open({ store: 'memory', channels: { web: { onstale: 'omit' } } })],
  [
    'replay.reducers[1].turn',
    () =>
      open({
        store: 'memory',
        replay: {
          reducers: [
            { type: 'sliding_turns', turns: 1 },
            { type: 'sliding_turns', turns: 1, turn: 2 },
          ],
        },
      }),
  ],
  ['titel', () => client.session('s', { titel: 'x' })],
  ['owner.conversation', () => client.session('s', { owner: { kind: 'session', conversation: 'c' } })],
  ['chanel', () => client.sessions({ chanel: 'web' })],
  ['messageID', () => client.invocations({ messageID: 'm' })],
  ['tools', () => session.invocations({ tools: 'f' })],
  ['id', () => client.pendingRuns({ id: 's' })],
  ['metdata', () => session.update({ metdata: {} })],
  ['freshnes', () => session.append(body, 'openai-chat', { freshnes: 1 })],
  ['source.kind', () => session.append([], { source: { kind: 'context' } })],
  ['expected', () => session.answer('c', { type: 'tool_result', content: 1 }, { expected: 1 })],
  ['before', () => session.messages({ before: 5 })],
  ['model', () => session.render({ dialect: 'gemini', model: 'm' })],
  ['replay.citation', () => session.render({ dialect: 'gemini', replay: { citation: 'off' } })],
  ['maxTurn', run({ maxTurn: 1 })],
  ['retry.attempt', run({ retry: { attempt: 1 } })],
  ['tools.f.executes', run({ tools: { f: { executes() {} } } })],
  ['provider.apiKey', to({ apiKey: SECRET })],
  ['provider.compat.streamUsge', to({ compat: { streamUsge: true } })],
  ['input', () => session.resume('r', { input: 'x', provider })],
  ['keeps', () => session.discard('r', { keeps: true })],
  ['dangling', () => repair(body, 'openai-chat', { dangling: 'omit' })],
  ['danglingcalls', () => convert(body, 'openai-chat', 'gemini', { danglingcalls: 'omit' })],
];

/** [path, call]: options with values that they cannot have. */
const WRONG = [
  ['name', () => open({ store: 'memory', name: { secret: SECRET } })],
  ['now', () => open({ store: 'memory', now: SECRET })],
  ['replay', () => open({ store: 'memory', replay: SECRET })],
  ['replay.toolFreshness.f', () => open({ store: 'memory', replay: { toolFreshness: { f: SECRET } } })],
  ['replay.toolFreshness.f', () => open({ store: 'memory', replay: { toolFreshness: { f: -1 } } })],
  ['replay.reducers', () => open({ store: 'memory', replay: { reducers: SECRET } })],
  ['replay.reducers[0]', () => open({ store: 'memory', replay: { reducers: [SECRET] } })],
  ['replay.reducers[0].type', () => open({ store: 'memory', replay: { reducers: [{ turns: 1 }] } })],
  ['replay.reducers[0].turns', () => open({ store: 'memory', replay: { reducers: [{ type: 'sliding_turns' }] } })],
  [
    'replay.reducers[0].summarize',
    () => open({ store: 'memory', replay: { reducers: [{ type: 'summarize', target: 1, summarize: SECRET }] } }),
  ],
  ['replay.sameMakers', () => open({ store: 'memory', replay: { sameMakers: SECRET } })],
  ['replay.sameMakers[0]', () => open({ store: 'memory', replay: { sameMakers: [SECRET] } })],
  ['replay.sameMakers[1]', () => open({ store: 'memory', replay: { sameMakers: [['localhost'], []] } })],
  [
    'replay.sameMakers[0]',
    () => open({ store: 'memory', replay: { sameMakers: [['api.example.com', `https://${SECRET}`]] } }),
  ],
  ['provider', () => session.run({ input: 'x' })],
  ['provider.url', to({ url: { key: SECRET } })],
  ['provider.headers', to({ headers: SECRET })],
  ['provider.headers.x', to({ headers: { x: [SECRET] } })],
  ['provider.allowHeaders[1]', to({ allowHeaders: ['x', { SECRET }] })],
  ['provider.stream', to({ stream: SECRET })],
  ['tools.f.persist', run({ tools: { f: { persist: SECRET } } })],
  ['tools.f', run({ tools: { f: SECRET } })],
  ['at', () => session.append(body, 'openai-chat', { at: SECRET })],
  ['expectedRevision', () => session.append(body, 'openai-chat', { expectedRevision: 0.5 })],
  ['limit', () => client.sessions({ limit: 0 })],
  ['status', () => client.invocations({ status: 'fine' })],
  ['keep', () => session.discard('r', { keep: SECRET })],
  ['danglingText', () => repair(body, 'openai-chat', { danglingText: [SECRET] })],
];

const failed = async (call) => {
  try {
    await call();
    return assert.fail('it was accepted');
  } catch (error) {
    return error;
  }
};

for (const [kind, cases] of Object.entries({ unknown: UNKNOWN, wrong: WRONG })) {
  test(`an option that is ${kind} is config_invalid and names its path`, async () => {
    for (const [path, call] of cases) {
      const { code, message } = await failed(call);
      assert.equal(code, 'config_invalid', `${path}: ${message}`);
      assert.ok(message.startsWith(`\`${path}\` `), `${path}: ${message}`);
      assert.ok(!message.includes(SECRET), message);
    }
    assert.equal(session.revision, 0);
  });
}

test('r48 the memory store rejects `durability: "strict"`', async () => {
  for (const store of ['memory', undefined]) {
    await assert.rejects(open({ store, durability: 'strict' }), {
      code: 'config_invalid',
      message: /`durability`: the memory store/,
    });
  }
  await (await open({ store: 'memory', durability: 'relaxed' })).close();
});

test('options can be inherited, undefined, null, or members of a class instance', async () => {
  const other = await client.session('inherited', Object.create({ title: 'T' }, { channel: { value: 'web' } }));
  assert.equal(other.title, 'T');
  await client.session('undefined', { title: undefined, channel: null, unknown: undefined });
  class Tool {
    cache = new Map();
    get description() {
      return 'From a getter.';
    }
    parameters = { type: 'object', properties: {} };
    execute() {}
  }
  const { body: rendered } = await session.render({
    dialect: 'openai-chat',
    params: { model: 'm' },
    input: 'x',
    tools: { f: new Tool() },
  });
  assert.equal(JSON.parse(new TextDecoder().decode(rendered)).tools[0].function.description, 'From a getter.');
  await assert.rejects(
    session.run({ input: 'x', provider, tools: { f: Object.assign(new Tool(), { needsApproval: 'always' }) } }),
    { code: 'config_invalid', message: /tools\.f\.needsApproval/ },
  );
});

test('a getter is read once, and one that throws is reported', async () => {
  let reads = 0;
  await client.session('getter', {
    get title() {
      return `T${(reads += 1)}`;
    },
  });
  assert.equal(reads, 1);
  const thrown = {
    get freshness() {
      throw new Error('hostile');
    },
  };
  await assert.rejects(client.session('thrown', { replay: thrown }), {
    code: 'invalid_input',
    message: /freshness.*hostile/,
  });
});
