// Instances that stop: no memory left, no stack left. The page goes on.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { after, before, describe, test } from 'node:test';
import { StreamAssembler, convert, init, open, repair, validate } from 'rethread/slim';
import { drive } from 'rethread/host';
import { sleep, until } from './scenarios/kit.mjs';
import { withLittleMemory } from './scenarios/memory.mjs';

const MB = 1024 * 1024;
const wasm = readFileSync(new URL('../../dist/rethread_bg.wasm', import.meta.url));
const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' }, stream: true };
const say = (content) => ({ messages: [{ role: 'user', content }] });
const large = (size) => say('x'.repeat(size));
const neutral = (size) => [{ role: 'user', parts: [{ type: 'text', text: 'x'.repeat(size) }] }];
const silent = async () => new Response(new ReadableStream({}), { headers: { 'content-type': 'text/event-stream' } });
const uncaught = [];
const note = (error) => uncaught.push(error);

before(async () => {
  await init(withLittleMemory(wasm, 8 * MB));
  process.on('uncaughtException', note).on('unhandledRejection', note);
});
after(async () => {
  await sleep(20);
  process.off('uncaughtException', note).off('unhandledRejection', note);
  assert.deepEqual(uncaught, []);
});

test('r62 validate, repair and convert recover after their memory ran out', () => {
  for (let times = 0; times < 5; times += 1) {
    for (const call of [
      () => validate(large(9 * MB), 'openai-chat'),
      () => repair(large(9 * MB), 'anthropic'),
      () => convert(large(5 * MB), 'openai-chat', 'gemini'),
    ]) {
      assert.throws(call, { name: 'RethreadError', code: 'internal' });
    }
    assert.deepEqual(validate(say('x'), 'openai-chat'), []);
    assert.equal(repair(say('x'), 'openai-chat').report.length, 0);
  }
});

test('r62 an assembler that ran out of memory stops nothing else', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const one = new StreamAssembler('openai-chat');
  const other = new StreamAssembler('openai-chat');
  assert.throws(() => one.push(new Uint8Array(9 * MB).fill(120)), { code: 'internal' });
  for (const stopped of [one, other])
    assert.throws(() => stopped.finish(), { code: 'internal', message: /make a new assembler/ });
  one[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
  assert.equal(new StreamAssembler('openai-chat').finish().status, 'truncated');
  assert.equal((await session.append(say('x'), 'openai-chat')).revision, 1);
  await client.close();
});

describe('r62 a store whose memory ran out', { timeout: 30_000 }, () => {
  const ways = {
    'in the call itself': (session) => session.append(large(9 * MB), 'openai-chat'),
    'later, in work that goes on': (session) => session.append(neutral(3 * MB)),
  };
  for (const [name, exhaust] of Object.entries(ways)) {
    test(`r62 ${name}: pending calls reject, other stores work, and it can be opened again`, async () => {
      const [client, other] = [await open({ store: 'memory' }), await open({ store: 'memory' })];
      const [session, neighbour] = [await client.session('s'), await other.session('s')];
      await session.append(say('kept'), 'openai-chat');
      const view = session.view();
      let calls = 0;
      view.subscribe(() => {
        calls += 1;
      });
      const run = await session.run({ input: 'x', provider });
      const driven = drive(run, { fetch: silent });
      const types = (async () => {
        for await (const { type } of driven) assert.notEqual(type, 'finished');
      })();
      await until(async () => run.effects().length === 1);
      const before = view.getSnapshot();
      assert.equal(before.run.status, 'running');
      const queued = session.run({ input: 'y', provider, whenBusy: 'queue' });
      const ends = [
        assert.rejects(driven.result, { code: 'internal' }),
        assert.rejects(queued, { code: 'internal' }),
        types,
      ];
      const called = calls;
      await assert.rejects(exhaust(session), {
        name: 'RethreadError',
        code: 'internal',
        message: /open the store again/,
      });
      await Promise.all(ends);
      assert.equal(run.status, 'failed');
      for (const call of [
        () => session.append(say('x'), 'openai-chat'),
        () => session.messages(),
        () => run.cancel(),
        () => client.session('t'),
        () => client.pendingRuns(),
        () => client.close(),
      ]) {
        await assert.rejects(call(), { code: 'internal' });
      }
      assert.throws(() => run.effects(), { code: 'internal' });
      run[Symbol.dispose ?? Symbol.for('Symbol.dispose')]();
      await until(async () => calls > called);
      const after = view.getSnapshot();
      assert.deepEqual([after.run.status, after.run.error.code], ['failed', 'internal']);
      assert.equal(after.messages, before.messages);
      assert.equal(view.getSnapshot(), after);
      assert.equal((await neighbour.append(say('x'), 'openai-chat')).revision, 1);
      assert.deepEqual(validate(say('x'), 'openai-chat'), []);
      const again = await open({ store: 'memory' });
      assert.equal((await (await again.session('s')).append(say('x'), 'openai-chat')).revision, 1);
      await Promise.all([again.close(), other.close()]);
    });
  }
});

describe('r62 a stack overflow', { timeout: 60_000 }, () => {
  /** Calls from each depth of an exhausted stack, from the deepest on. */
  function fromEachDepth(call) {
    const ends = { done: 0 };
    const deeper = () => {
      try {
        deeper();
      } catch (error) {
        try {
          call();
          ends.done += 1;
        } catch (thrown) {
          const kind = thrown.code ?? thrown.name;
          ends[kind] = (ends[kind] ?? 0) + 1;
        }
        throw error;
      }
    };
    assert.throws(deeper, RangeError);
    return ends;
  }

  test('r62 in getSnapshot: the session and the next snapshot work afterwards', async () => {
    const client = await open({ store: 'memory' });
    const session = await client.session('s');
    const view = session.view();
    for (let n = 1; n <= 20; n += 1) {
      await session.append(say(`${n}`), 'openai-chat');
      const ends = fromEachDepth(view.getSnapshot);
      assert.ok(ends.RangeError > 0 && ends.done > 0, JSON.stringify(ends));
      assert.equal(ends.internal, undefined);
      assert.equal(view.getSnapshot().messages.length, n);
    }
    await client.close();
  });

  test('r62 in validate, repair and convert: the next call works', () => {
    const ends = fromEachDepth(() => validate('{"messages":[]}', 'openai-chat'));
    assert.ok(ends.done > 0);
    assert.deepEqual(validate(say('x'), 'openai-chat'), []);
  });
});
