// A turn on a key-value store without commits costs the same at any length, and a long session is opened with few
// requests; counted. The native test of packs counts 10,000 appends; this one with `npm test -- --long`.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';

const LENGTH = process.env.RETHREAD_LONG ? 10_000 : 1_500;

/** A storage of unstorage that counts the requests to it. */
function counted() {
  const storage = createStorage();
  let requests = 0;
  const count =
    (method) =>
    (...args) => {
      requests += 1;
      return storage[method](...args);
    };
  const counting = Object.fromEntries(
    ['getItemRaw', 'setItemRaw', 'getKeys', 'removeItem'].map((method) => [method, count(method)]),
  );
  const take = () => {
    const taken = requests;
    requests = 0;
    return taken;
  };
  return { storage: counting, take };
}

test('r46 a turn takes two requests at any length, and opening takes fewer than 100', async () => {
  const { storage, take } = counted();
  const session = await (await open({ store: unstorage(storage) })).session('s');
  const turn = (number) => ({
    messages: [
      { role: 'user', content: `question ${number}` },
      { role: 'assistant', content: 'an answer' },
    ],
  });
  const costs = [];
  take();
  for (let number = 0; number < LENGTH; number += 1) {
    await session.append(turn(number), 'openai-chat');
    costs.push(take());
  }
  assert.deepEqual([costs[100], costs[LENGTH - 3]], [2, 2]);
  const all = costs.reduce((sum, cost) => sum + cost, 0);
  assert.ok(all < LENGTH * 2.5, `${all} requests for ${LENGTH} turns`);
  const second = await open({ store: unstorage(storage) });
  take();
  const opened = await second.session('s');
  const { items } = await opened.messages({ limit: 3 * LENGTH });
  const requests = take();
  assert.equal(items.length, 2 * LENGTH);
  assert.ok(requests < 100, `${requests} requests to open ${LENGTH} appends`);
  console.log(`${LENGTH} turns: ${all} requests; ${requests} to open the session`);
});

test('r62 sessions that nothing holds leave memory', async () => {
  const memories = [];
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...args) => {
    const instance = await instantiate(...args);
    if (instance.exports?.memory) memories.push(instance.exports.memory);
    return instance;
  };
  const linear = () => memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0) / 2 ** 20;
  const dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
  try {
    const store = await open({ store: unstorage(createStorage()) });
    const messages = Array.from({ length: 40 }, (_, at) => ({
      role: at % 2 ? 'assistant' : 'user',
      content: 'x'.repeat(5_000),
    }));
    const each = async (work) => {
      for (let number = 0; number < 150; number += 1) {
        const session = await store.session(`s${number}`);
        await work(session);
        session[dispose]();
      }
    };
    const before = linear();
    assert.ok(before > 0, 'no memory was seen');
    // 30 MB.
    await each((session) => session.append({ messages }, 'openai-chat'));
    assert.ok(linear() - before < 15, `${linear() - before} MB after writing`);
    await each(async (session) => assert.equal((await session.messages()).items.length, 40));
    assert.equal((await store.sessions({ limit: 200 })).items.length, 150);
    assert.ok(linear() - before < 15, `${linear() - before} MB after reading`);
  } finally {
    WebAssembly.instantiate = instantiate;
  }
});
