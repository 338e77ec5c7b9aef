// Sessions that an application has opened and holds no more: they leave memory.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { open } from 'rethread';

setFlagsFromString('--expose-gc');
const collect = runInNewContext('gc');

/** Collects garbage. Finalizers run in tasks of their own. */
async function collected() {
  for (let round = 0; round < 3; round += 1) {
    collect();
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  }
}

const dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');

/** Calls `work` with a function that returns the size of the wasm's linear memory in megabytes. */
async function withLinearMemory(work) {
  const memories = [];
  const { instantiate } = WebAssembly;
  WebAssembly.instantiate = async (...given) => {
    const made = await instantiate(...given);
    if (made.exports?.memory) memories.push(made.exports.memory);
    return made;
  };
  try {
    await work(() => memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0) / 2 ** 20);
  } finally {
    WebAssembly.instantiate = instantiate;
  }
}

test('r62 of 1,000 sessions, opened and closed, those that nothing holds leave memory', { timeout: 170_000 }, () =>
  withLinearMemory(async (linear) => {
    const client = await open({ store: 'memory' });
    const messages = Array.from({ length: 40 }, (_, at) => ({
      role: at % 2 ? 'assistant' : 'user',
      content: `text ${at}`,
    }));
    const each = async (work) => {
      for (let at = 0; at < 1_000; at += 1) await work(await client.session(`s${at}`), at);
    };
    await each(async (session) => {
      await session.append({ messages }, 'openai-chat');
      session[dispose]();
    });
    const full = linear();
    await each(async (session) => {
      assert.equal((await session.messages({ limit: 1 })).items.length, 1);
      session[dispose]();
      assert.equal(session.revision, 1);
      assert.throws(() => session.state, { code: 'closed' });
    });
    const closed = linear() - full;
    await each(async (session, at) => {
      session.view().getSnapshot();
      if (at % 50 === 0) await collected();
    });
    const forgotten = linear() - full;
    const held = [];
    await each((session) => held.push(session));
    const opened = linear() - full;
    assert.ok(closed < 1, `1,000 closed sessions hold ${closed} MB`);
    assert.ok(
      opened > 5 && forgotten < opened / 2,
      `1,000 forgotten sessions hold ${forgotten} MB, and open ones ${opened} MB`,
    );
    await client.close();
  }),
);

test('r62 a session with listeners or unsaved values stays in memory', async () => {
  const client = await open({ store: 'memory' });
  let changes = 0;
  const end = (await client.session('heard')).subscribe(() => {
    changes += 1;
  });
  (await client.session('unsaved')).state.set('key', 'value');
  await collected();
  await (await client.session('heard')).append({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat');
  assert.equal(changes, 1);
  end();
  const unsaved = await client.session('unsaved');
  assert.equal(unsaved.state.get('key'), 'value');
  await unsaved.save();
  unsaved[dispose]();
  assert.equal((await client.session('unsaved')).state.get('key'), 'value');
  await client.close();
});
