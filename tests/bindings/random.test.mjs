// Randomness: ids need it, so a store does not open without it.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';

test('without a source of randomness `open` rejects with store_error, and works once there is one', async () => {
  const crypto = Object.getOwnPropertyDescriptor(globalThis, 'crypto');
  const broken = {
    getRandomValues() {
      throw new Error('broken');
    },
  };
  try {
    for (const value of [undefined, {}, broken]) {
      Object.defineProperty(globalThis, 'crypto', { configurable: true, value });
      await assert.rejects(open({ store: 'memory' }), {
        name: 'RethreadError',
        code: 'store_error',
        message: /no source of random numbers.*getRandomValues/,
      });
    }
  } finally {
    Object.defineProperty(globalThis, 'crypto', crypto);
  }
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const ids = new Set();
  for (let n = 0; n < 200; n += 1) {
    for (const id of (await session.append({ messages: [{ role: 'user', content: `${n}` }] }, 'openai-chat'))
      .messageIds)
      ids.add(id);
  }
  assert.equal(ids.size, 200);
  await client.close();
});
