// Values that no honest program gives: none of them panics, stops an instance, or leaves a promise open.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { RethreadError, StreamAssembler, convert, open, repair, validate } from 'rethread';
import { drive } from 'rethread/host';

const CHAT = 'https://model.example/v1/chat/completions';
const provider = { dialect: 'openai-chat', url: CHAT, params: { model: 'm' } };
const say = (content) => ({ messages: [{ role: 'user', content }] });
const answer = (message, finish_reason = 'stop') =>
  JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason }] });
const model =
  (...answers) =>
  async () =>
    new Response(answers.shift() ?? answer({ content: 'Done.' }), { headers: { 'content-type': 'application/json' } });

const thrower = () => {
  throw new Error('hostile');
};
const revoked = (target) => {
  const { proxy, revoke } = Proxy.revocable(target, {});
  revoke();
  return proxy;
};
const everyTrap = (target) => new Proxy(target, new Proxy({}, { get: () => thrower }));
const detached = () => {
  const bytes = new Uint8Array(8);
  structuredClone(bytes.buffer, { transfer: [bytes.buffer] });
  return bytes;
};
const cyclic = () => {
  const value = {};
  value.self = value;
  return value;
};
/** What is thrown: none has a message that is a string. */
const THROWN = {
  'an error whose message is a number': () => Object.assign(new Error('x'), { message: 42 }),
  'an error whose message is an object': () => Object.assign(new Error('x'), { message: {} }),
  'an error whose message throws': () => Object.defineProperty(new Error('x'), 'message', { get: thrower }),
  'an error whose code and name throw': () =>
    Object.defineProperties(new Error(''), { code: { get: thrower }, name: { get: thrower } }),
  'an error without a prototype': () => Object.setPrototypeOf(new Error('x'), null),
  'a null-prototype object': () => Object.create(null),
  'a revoked proxy': () => revoked(new Error('x')),
  'a proxy whose traps throw': () => everyTrap(new Error('x')),
  'a symbol': () => Symbol('x'),
  'a bigint': () => 1n,
  null: () => null,
  undefined: () => undefined,
  'a function': () => thrower,
  'half of a surrogate pair': () => new Error('\ud800'),
};
/** What is given where something else belongs. */
const VALUES = {
  ...THROWN,
  'a getter that throws': () => Object.defineProperty({}, 'messages', { get: thrower, enumerable: true }),
  'a revoked array': () => revoked([]),
  'an array whose traps throw': () => everyTrap([]),
  'bytes in name only': () => Object.create(Uint8Array.prototype),
  'a view that pretends to be bytes': () =>
    Object.setPrototypeOf(new DataView(new ArrayBuffer(4)), Uint8Array.prototype),
  'detached bytes': detached,
  'a cycle': cyclic,
  'a toJSON that throws': () => ({ toJSON: thrower }),
  'a toJSON that throws what is no error': () => ({
    toJSON: () => {
      throw Object.assign(new Error(), { message: 1 });
    },
  }),
  'a toJSON that gives a bigint': () => ({ toJSON: () => 1n }),
  'a long sparse array': () => ({ length: 2 ** 32 - 1, __proto__: Array.prototype }),
  'a thenable that throws': () => Object.defineProperty({}, 'then', { get: thrower }),
  'a Date that is none': () => new Date(NaN),
  NaN: () => NaN,
};

/** Calls, and says how it ended. */
async function ending(call) {
  try {
    await call();
    return null;
  } catch (error) {
    assert.ok(error instanceof RethreadError, `${String(error?.stack ?? error)} is no RethreadError`);
    assert.notEqual(error.code, 'internal', error.message);
    return error.code;
  }
}

/** The session takes a turn: nothing is busy, nothing hangs. */
async function works(session) {
  const before = (await session.messages()).items.length;
  await session.append(say('Hi'), 'openai-chat');
  const result = await drive(await session.run({ input: 'And?', provider }), { fetch: model() }).result;
  assert.equal(result.status, 'finished', JSON.stringify(result.error));
  assert.equal((await session.messages()).items.length, before + 3);
}

describe('r62 hostile arguments', { timeout: 60_000 }, () => {
  for (const [name, value] of Object.entries(VALUES)) {
    test(`r62 ${name}`, async () => {
      const calls = [
        () => validate(value(), 'openai-chat'),
        () => repair(value(), 'anthropic'),
        () => convert(value(), 'openai-chat', 'gemini'),
        () => repair(say('x'), 'openai-chat', value()),
        () => validate({}, value()),
        () => new StreamAssembler(value()),
        () => new StreamAssembler('openai-chat').push(value()),
        () => open(value()).then((client) => client.close()),
      ];
      const ends = [];
      for (const call of calls) ends.push(await ending(call));
      assert.ok(
        ends.includes('invalid_input') || ends.includes('config_invalid'),
        'at least a dialect of that kind is refused',
      );
      const client = await open({ store: 'memory' });
      const session = await client.session('s');
      const run = await session.run({ input: 'x', provider });
      const [effect] = run.effects();
      for (const call of [
        () => client.session(value()),
        () => client.session('t', value()),
        () => client.session('t', { replay: value(), metadata: value(), title: value() }),
        () => client.sessions(value()),
        () => client.deleteSession(value()),
        () => client.invocations(value()),
        () => client.invocations({ since: value() }),
        () => client.pendingRuns(value()),
        () => client.subscribe(value()),
        () => session.subscribe(value()),
        () => session.view().subscribe(value()),
        () => session.append(value(), 'openai-chat'),
        () => session.append(value()),
        () => session.append([value()]),
        () => session.append([{ role: 'user', parts: [value()] }]),
        () => session.append(say(value()), 'openai-chat'),
        () => session.append(say('x'), 'openai-chat', value()),
        () => session.append(say('x'), 'openai-chat', { at: value(), source: value() }),
        () => session.update(value()),
        () => session.update({ metadata: value() }),
        () => session.update({ title: value() }),
        () => session.messages(value()),
        () => session.messages({ cursor: value() }),
        () => session.answer(value(), value()),
        () => session.answer('c', value()),
        () => session.append(say('x'), 'openai-chat', { freshness: value() }),
        () => session.state.set('k', value()),
        () => session.state.set(value(), 1),
        () => session.state.get(value()),
        () => session.save(),
        () => session.render(value()),
        () => session.render({ dialect: 'gemini', input: value() }),
        () => session.render({ dialect: 'gemini', input: [value()] }),
        () => session.render({ dialect: 'gemini', params: value(), tools: value(), replay: { reducers: value() } }),
        () => session.render({ dialect: 'gemini', input: [{ type: 'image', data: value() }] }),
        () => session.render({ dialect: 'gemini', tools: { f: { parameters: value() } } }),
        () => session.run(value()),
        () => session.run({ input: value(), provider }),
        () => session.run({ input: 'x', provider: value() }),
        () => session.resume(value(), { provider }),
        () => session.discard(value()),
        () => run.answer(effect.id, value()),
        () => run.answer(value(), { type: 'waited' }),
        () => run.answer(effect.id, { type: value() }),
        () => run.answer(effect.id, { type: 'response', status: 200, body: value() }),
        () => run.answer(effect.id, { type: 'response_started', status: value(), headers: value() }),
        () => run.feed(effect.id, value()),
        () => run.answer(effect.id, { type: 'failed', error: value() }),
        () => drive(value()),
        () => drive(run, value()),
      ])
        await ending(call);
      await run.cancel();
      await works(await client.session('after'));
      if (session.revision) assert.ok((await session.messages()).items);
      await works(session);
      await client.close();
    });
  }
});

describe('r62 hostile thrown values', { timeout: 60_000 }, () => {
  const tools = (more) => ({ f: { parameters: { type: 'object', properties: {} }, execute: () => 'ok', ...more } });
  const calling = answer(
    { content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
    'tool_calls',
  );
  for (const [name, thrown] of Object.entries(THROWN)) {
    const fail = () => {
      throw thrown();
    };
    const turn = async (session, { host, ...request }) =>
      drive(await session.run({ input: 'x', provider, retry: { attempts: 1 }, ...request }), {
        fetch: model(calling),
        ...host,
      }).result;
    test(`r62 callbacks throw ${name}`, async () => {
      const client = await open({ store: 'memory', onWarning: fail, newId: fail, now: () => Date.now() });
      const session = await client.session('s');
      session.subscribe(fail);
      session.view().subscribe(fail);
      client.subscribe(fail);
      for (const [failing, want] of [
        [{ replay: { reducers: [{ type: 'token_budget', tokens: 10, count: fail }] } }, 'finished'],
        [{ replay: { reducers: [{ type: 'custom', reduce: fail }] } }, 'finished'],
        [{ replay: { reducers: [{ type: 'custom', reduce: async () => fail() }] } }, 'finished'],
        [{ replay: { reducers: [{ type: 'summarize', target: 1, summarize: fail }] } }, 'finished'],
        [{ tools: tools({ persist: fail }) }, 'finished'],
        [{ tools: tools({ execute: fail }) }, 'finished'],
        [{ tools: tools({ execute: async () => fail() }) }, 'finished'],
        [{ tools: tools({ execute: () => ({ toJSON: fail }) }) }, 'finished'],
        [{ tools: tools(), host: { fetch: fail } }, 'failed'],
        [{ tools: tools(), host: { fetch: async () => fail() } }, 'failed'],
        [{ tools: tools(), host: { headers: fail } }, 'failed'],
        [
          { tools: tools(), host: { fetch: async () => ({ status: 200, headers: [], body: { getReader: fail } }) } },
          'failed',
        ],
        [
          {
            tools: tools(),
            host: {
              fetch: async () => ({
                status: 200,
                headers: [],
                body: { getReader: () => ({ read: async () => fail(), cancel: fail }) },
              }),
            },
          },
          'failed',
        ],
      ]) {
        const { status, error } = await turn(session, failing);
        assert.equal(status, want, `${JSON.stringify(Object.keys(failing))} ${JSON.stringify(error)}`);
      }
      await works(session);
      await client.close();
    });
  }
});

test('r62 hostile return values of callbacks', { timeout: 60_000 }, async () => {
  for (const [name, value] of Object.entries(VALUES)) {
    const client = await open({ store: 'memory', newId: value, now: value });
    const session = await client.session('s');
    for (const reducer of [
      { type: 'token_budget', tokens: 10, count: value },
      { type: 'custom', reduce: value },
      { type: 'summarize', target: 1, summarize: value },
    ]) {
      await session.append(say(`${name}, appended`), 'openai-chat');
      const { status, error } = await drive(
        await session.run({ input: name, provider, replay: { reducers: [reducer] } }),
        { fetch: model() },
      ).result;
      assert.equal(status, 'finished', `${name}: ${JSON.stringify(error)}`);
    }
    const execute = value;
    const calling = answer(
      { content: null, tool_calls: [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] },
      'tool_calls',
    );
    const persist = () => ({ arguments: value(), result: value() });
    const ended = await drive(
      await session.run({
        input: name,
        provider,
        tools: { f: { parameters: { type: 'object', properties: {} }, execute, persist } },
      }),
      { fetch: model(calling) },
    ).result;
    assert.equal(ended.status, 'finished', `${name}: ${JSON.stringify(ended.error)}`);
    await works(session);
    await client.close();
  }
});
