// The second program, of SQL and key-value stores: how it is given, and what remains when it or the first one stops.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, test } from 'node:test';
import { init, open, validate } from 'rethread/slim';
import { keyValueService } from './key-value-service.mjs';
import { sleep, until } from './scenarios/kit.mjs';
import { withLittleMemory } from './scenarios/memory.mjs';

const MB = 1024 * 1024;
const read = (name) => readFileSync(new URL(`../../dist/${name}_bg.wasm`, import.meta.url));
const say = (content) => ({ messages: [{ role: 'user', content }] });
const texts = async (session) => (await session.messages()).items.map(({ parts }) => parts[0].text);
const uncaught = [];
const note = (error) => uncaught.push(error);

before(async () => {
  process.on('uncaughtException', note).on('unhandledRejection', note);
  // The first program has much memory, the second one little.
  await init(withLittleMemory(read('rethread'), 100 * MB));
});
after(async () => {
  await sleep(20);
  process.off('uncaughtException', note).off('unhandledRejection', note);
  assert.deepEqual(uncaught, []);
});

/** A service whose `close` is counted, and whose reads wait while `hold` is a promise. */
function countedService() {
  const service = keyValueService();
  const counted = {
    ...service,
    closed: 0,
    hold: null,
    get: async (key) => {
      await counted.hold;
      return service.get(key);
    },
    close: () => {
      counted.closed += 1;
    },
  };
  return counted;
}

test('r50 slim without the second program opens other stores, and says what to pass', async () => {
  const client = await open({ store: 'memory' });
  assert.equal((await (await client.session('s')).append(say('x'), 'openai-chat')).revision, 1);
  await client.close();
  await assert.rejects(open({ store: keyValueService() }), {
    name: 'RethreadError',
    code: 'not_initialized',
    message: /rethread\/stores\.wasm.*init\(source, \{ stores \}\)/,
  });
  await assert.rejects(open({ store: { get() {}, list() {}, put() {} } }), { code: 'not_initialized' });
  // A page that is offline, and comes back.
  await init(undefined, { stores: 'http://127.0.0.1:1/stores.wasm' });
  await assert.rejects(open({ store: keyValueService() }), {
    name: 'RethreadError',
    code: 'not_initialized',
    message: /could not be loaded from http:\/\/127\.0\.0\.1:1\/stores\.wasm: fetch failed: .+try again/,
  });
  await init(undefined, { stores: withLittleMemory(read('stores'), 8 * MB) });
  await assert.rejects(open({ store: { get() {}, list() {}, put() {} } }), {
    code: 'config_invalid',
    message: "`store`: a key-value driver's `delete` must be a function",
  });
  await (await open({ store: keyValueService() })).close();
});

test('r62 the second program stops: pending calls reject, other stores work, and it can be opened again', {
  timeout: 30_000,
}, async () => {
  const service = countedService();
  const [client, other] = [await open({ store: service }), await open({ store: keyValueService() })];
  const [session, quiet] = [await client.session('s'), await client.session('t')];
  const neighbour = await other.session('n');
  await session.append(say('kept'), 'openai-chat');
  await quiet.append(say('quiet'), 'openai-chat');

  let release;
  service.hold = new Promise((resolve) => {
    release = resolve;
  });
  const pending = assert.rejects(quiet.refresh(), { name: 'RethreadError', code: 'internal' });
  await assert.rejects(session.append(say('x'.repeat(9 * MB)), 'openai-chat'), {
    name: 'RethreadError',
    code: 'internal',
    message: /the WebAssembly instance has stopped .*open the store again/,
  });
  await pending;
  release();
  service.hold = null;
  await until(async () => service.closed === 1);

  for (const call of [
    () => session.append(say('x'), 'openai-chat'),
    () => client.session('u'),
    () => client.sessions(),
  ]) {
    await assert.rejects(call(), { name: 'RethreadError', code: 'internal' });
  }
  // The first program is as it was.
  assert.deepEqual(validate(say('x'), 'openai-chat'), []);
  assert.deepEqual(await texts(session), ['kept']);
  assert.equal((await neighbour.append(say('x'), 'openai-chat')).revision, 1);
  await assert.rejects(client.close(), { name: 'RethreadError', code: 'internal' });
  const again = await open({ store: service });
  const reopened = await again.session('s');
  assert.deepEqual(await texts(reopened), ['kept']);
  assert.equal((await reopened.append(say('next'), 'openai-chat')).revision, 2);
  await Promise.all([again.close(), other.close()]);
  assert.equal(service.closed, 2);
});

test('r62 the first program stops: the store in the second one is closed, and can be opened again', {
  timeout: 30_000,
}, async () => {
  const service = countedService();
  const client = await open({ store: service });
  const session = await client.session('s');
  await session.append(say('kept'), 'openai-chat');
  await assert.rejects(session.append(say('x'.repeat(120 * MB)), 'openai-chat'), { code: 'internal' });
  await until(async () => service.closed === 1);
  const again = await open({ store: service });
  assert.deepEqual(await texts(await again.session('s')), ['kept']);
  await again.close();
});

test('r62 what a driver throws is the same error as ever: code, message and details', async () => {
  const service = keyValueService();
  const failing = { failure: null };
  const driver = {
    ...service,
    name: 'redis',
    commit: (...args) => {
      if (failing.failure) throw failing.failure;
      return service.commit(...args);
    },
  };
  const client = await open({ store: driver });
  assert.equal((await client.status()).store, 'redis');
  const session = await client.session('s');
  const thrown = async (failure) => {
    failing.failure = failure;
    const { name, code, message, details, cause } = await session.append(say('x'), 'openai-chat').then(
      () => assert.fail('it was appended'),
      (error) => error,
    );
    return { name, code, message, details, cause };
  };
  assert.deepEqual(await thrown(Object.assign(new Error('full'), { code: 'quota_exceeded', details: { a: 1 } })), {
    name: 'RethreadError',
    code: 'quota_exceeded',
    message: 'the redis store: full',
    details: {},
    cause: undefined,
  });
  failing.failure = null;
  await client.close();
  const unreachable = Object.assign(new Error('gone'), { code: 'unavailable', details: { outcome: 'none' } });
  const sql = {
    dialect: 'postgres',
    transaction: () => {
      throw unreachable;
    },
  };
  await assert.rejects(open({ store: sql }), {
    name: 'RethreadError',
    code: 'unavailable',
    message: 'the postgres store: gone',
    details: { outcome: 'none' },
  });
});
