// r48: rows 8 and 9 of faults.md on unstorage, over its drivers for memory and files. Workers KV: workers.test.mjs.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, describe, test } from 'node:test';
import { open } from 'rethread';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import fsDriver from 'unstorage/drivers/fs';
import memoryDriver from 'unstorage/drivers/memory';
import { withRateLimitErrors } from '../../js/stores/rate-limits.js';
import { httpLimit, kvLimit, lagging, limited, randomNumbers, readFromFarAway } from './weak-services.mjs';

const folders = [];
after(() => {
  for (const folder of folders) rmSync(folder, { recursive: true, force: true });
});
const files = () => {
  folders.push(mkdtempSync(path.join(tmpdir(), 'rethread-weak-')));
  return fsDriver({ base: folders.at(-1) });
};

const message = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];
const textsOf = async (session) => (await session.messages()).items.map(({ parts }) => parts[0].text);
const openOn = (driver) => open({ store: unstorage(createStorage({ driver })) });

for (const [name, make] of Object.entries({ memory: memoryDriver, fs: files })) {
  describe(`unstorage on ${name}`, () => {
    test('r48 row 8 refused writes are repeated, and each turn is there once', async () => {
      const driver = make();
      let writes = 0;
      const session = await (
        await openOn(limited(driver, () => ((writes += 1) % 4 === 0 ? httpLimit(0) : null)))
      ).session('s');
      for (const text of ['a', 'b', 'c', 'd', 'e']) await session.append(message(text));
      assert.ok(writes > 7, `${writes} writes`);
      assert.deepEqual(await textsOf(await (await openOn(driver)).session('s')), ['a', 'b', 'c', 'd', 'e']);
    });

    test('r48 row 8 in the end it is `rate_limited`, and nothing was written', async () => {
      const driver = make();
      let limit = null;
      const session = await (await openOn(limited(driver, () => limit))).session('s');
      await session.append(message('a'));
      limit = httpLimit(3600);
      const error = await session.append(message('b')).catch((thrown) => thrown);
      assert.deepEqual([error.code, error.details.retryAfterMs], ['rate_limited', 3_600_000]);
      assert.match(error.message, /unstorage/);
      limit = null;
      assert.deepEqual(await textsOf(await (await openOn(driver)).session('s')), ['a']);
      await session.append(message('c'));
      assert.deepEqual(await textsOf(session), ['a', 'c']);
      assert.equal((await session.branches()).length, 1);
    });

    test('r48 row 9 a reader far away never sees a shorter chat than before', async () => {
      let stale = 0;
      let old = 0;
      for (let seed = 1; seed <= 10; seed += 1) {
        const driver = make();
        const far = lagging(driver, randomNumbers(seed));
        const seen = await readFromFarAway(
          () => openOn(driver),
          () => openOn(far.view),
          far,
          8,
        );
        assert.deepEqual([seen.whole, seen.known], [seen.written, seen.written], `seed ${seed}`);
        stale += seen.stale;
        old += seen.old;
      }
      assert.ok(stale > 5 && old > 5, `${stale} stale views, ${old} old ones`);
    });
  });
}

test('r48 row 8 a 429 in a key is no rate limit', async () => {
  const codeOf = (error) =>
    withRateLimitErrors(() => Promise.reject(error)).catch((thrown) => (thrown === error ? 'unchanged' : thrown.code));
  assert.deepEqual(await Promise.all([kvLimit(), httpLimit()].map(codeOf)), ['rate_limited', 'rate_limited']);
  const others = [
    new Error('the write of append:user-429:1 timed out'),
    new Error('KV PUT failed: 503 for user-429'),
    undefined,
  ];
  assert.deepEqual(await Promise.all(others.map(codeOf)), ['unchanged', 'unchanged', 'unchanged']);
});
