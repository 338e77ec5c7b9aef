// r46 r47 r48: rethread/cloudflare in workerd: the SQLite storage of a Durable Object, D1, and Workers KV.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { Miniflare } from 'miniflare';

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-workers-'));
let worker;
before(() => {
  worker = new Miniflare({
    cf: false,
    compatibilityDate: '2026-04-01',
    compatibilityFlags: ['nodejs_compat'],
    modules: true,
    modulesRoot: fileURLToPath(new URL('../..', import.meta.url)),
    scriptPath: fileURLToPath(new URL('worker.js', import.meta.url)),
    modulesRules: [
      { type: 'ESModule', include: ['**/*.js', '**/*.mjs'] },
      { type: 'CompiledWasm', include: ['**/*.wasm'] },
    ],
    d1Databases: { DB: 'chats', FOREIGN: 'foreign' },
    d1Persist: path.join(folder, 'd1'),
    kvNamespaces: { KV: 'chats' },
    kvPersist: path.join(folder, 'kv'),
    durableObjects: { CHATS: { className: 'Chats', useSQLite: true } },
    durableObjectsPersist: path.join(folder, 'objects'),
  });
});
after(async () => {
  await worker.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const ask = async (address) => {
  const response = await worker.dispatchFetch(`http://worker/${address}`);
  const text = await response.text();
  assert.equal(response.status, 200, text);
  return JSON.parse(text);
};

for (const store of ['d1', 'object']) {
  describe(store, () => {
    test('a chat is written and read', async () => {
      assert.deepEqual(await ask(`${store}/chat`), { store: 'sqlite' });
    });

    test('r46 it conforms', async () => {
      const results = await ask(`${store}/suite`);
      assert.ok(results.length >= 24, `only ${results.length} checks ran`);
      assert.deepEqual(results.filter(({ error }) => error), []);
    });

    test('r47 two requests at once lose nothing', async () => {
      await Promise.all([ask(`${store}/write?writer=0`), ask(`${store}/write?writer=1`)]);
      assert.deepEqual(await ask(`${store}/written`), {});
    });

    test('strict durability is guaranteed', async () => {
      assert.deepEqual(await ask(`${store}/strict`), { code: null });
    });

    test('r48 an unusable store is rejected', async () => {
      assert.deepEqual(await ask(`${store}/wrong`), { codes: ['config_invalid', 'config_invalid', 'unsupported_version'] });
      assert.deepEqual(await ask(`${store}/foreign`), { code: 'config_invalid', tables: ['rethread_log'] });
    });
  });
}

describe('kv', () => {
  test('a chat is written and read', async () => {
    assert.deepEqual(await ask('kv/chat'), { store: 'workers-kv' });
  });

  test('r46 it conforms, and both sides of two writers are kept', async () => {
    const results = await ask('kv/suite');
    assert.ok(results.length >= 24, `only ${results.length} checks ran`);
    assert.deepEqual(results.filter(({ error }) => error), []);
  });

  test('r47 a second writer is reported, both sides are kept, every reader chooses the same one', async () => {
    const { before, readers } = await ask('kv/fork');
    assert.deepEqual(before, ['first', 'there']);
    for (const reader of readers) assert.deepEqual(reader, { texts: ['first', 'here', 'here too'], branches: [['main', 3], ['conflict', 2]] });
  });

  test('r48 row 8 refused writes are repeated; in the end it is `rate_limited` and nothing was written', async () => {
    const { texts, refused, last, code, branches } = await ask('kv/limits');
    assert.deepEqual(texts, Array.from({ length: 151 }, (_, number) => String(number)));
    assert.ok(refused >= 3, `${refused} writes were refused`);
    assert.deepEqual([code, last, branches], ['rate_limited', 6, 1]);
  });

  test('r48 row 9 a reader far away never sees a shorter chat than before', async () => {
    const seen = await ask('kv/stale');
    for (const { written, whole, known } of seen) assert.deepEqual([whole, known], [written, written]);
    const sum = (name) => seen.reduce((all, one) => all + one[name], 0);
    assert.ok(sum('stale') > 2 && sum('old') > 2, JSON.stringify(seen));
  });

  test('r48 an unusable store is rejected and unchanged', async () => {
    const codes = ['config_invalid', 'config_invalid', 'unsupported_version', 'config_invalid', 'config_invalid'];
    assert.deepEqual(await ask('kv/wrong'), { codes, keys: 1 });
  });
});
