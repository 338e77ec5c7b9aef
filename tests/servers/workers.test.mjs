// r46 r47 r48: rethread/cloudflare in workerd: the SQLite storage of a Durable Object, D1, and Workers KV.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { assertConstant, LENGTHS, TURNS_AT_ONCE } from './constant-costs.mjs';
import { startWorker } from './workerd.mjs';

let worker;
before(() => {
  worker = startWorker();
});
after(() => worker.end());

const ask = (address, body) => worker.ask(address, body);
const frozen = (name) => fileURLToPath(new URL(`../frozen/${name}`, import.meta.url));
const expected = JSON.parse(readFileSync(frozen('chat-1.expected.json'), 'utf8'));

/** What is in a SQLite file, as statements. */
function statementsOf(file) {
  const database = new DatabaseSync(file, { readOnly: true });
  const objects = database
    .prepare("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL ORDER BY type = 'index'")
    .all();
  const statements = objects.map(({ sql }) => ({ sql, params: [] }));
  for (const { name } of objects.filter(({ type }) => type === 'table')) {
    for (const row of database.prepare(`SELECT * FROM ${name}`).all()) {
      const params = Object.values(row).map((value) =>
        value instanceof Uint8Array ? { bytes: Buffer.from(value).toString('base64') } : value,
      );
      statements.push({ sql: `INSERT INTO ${name} VALUES (${params.map(() => '?').join(', ')})`, params });
    }
  }
  database.close();
  return statements;
}

for (const store of ['d1', 'object']) {
  describe(store, () => {
    test('a chat is written and read', async () => {
      assert.deepEqual(await ask(`${store}/chat`), { store: 'sqlite' });
    });

    test('r46 it conforms', async () => {
      const results = await ask(`${store}/suite`);
      assert.ok(results.length >= 24, `only ${results.length} checks ran`);
      assert.deepEqual(
        results.filter(({ error }) => error),
        [],
      );
    });

    test('r47 two requests at once lose nothing', async () => {
      await Promise.all([ask(`${store}/write?writer=0`), ask(`${store}/write?writer=1`)]);
      assert.deepEqual(await ask(`${store}/written`), {});
    });

    test('r46 a turn costs the same at any length', async () => {
      assertConstant(await ask(`${store}/costs`, { lengths: LENGTHS, turnsAtOnce: TURNS_AT_ONCE }));
    });

    test('r48 what version 1 wrote', async () => {
      assert.deepEqual(await ask(`${store}/frozen`, statementsOf(frozen('chat-1.sqlite'))), expected);
    });

    test('strict durability is guaranteed', async () => {
      assert.deepEqual(await ask(`${store}/strict`), { code: null });
    });

    test('r48 an unusable store is rejected', async () => {
      assert.deepEqual(await ask(`${store}/wrong`), {
        codes: ['config_invalid', 'config_invalid', 'unsupported_version'],
      });
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
    assert.deepEqual(
      results.filter(({ error }) => error),
      [],
    );
  });

  test('r46 a turn costs the same at any length', async () => {
    assertConstant(await ask('kv/costs', { lengths: LENGTHS, turnsAtOnce: TURNS_AT_ONCE }), { listsAppends: true });
  });

  test('r48 what version 1 wrote', async () => {
    assert.deepEqual(
      await ask('kv/frozen', JSON.parse(readFileSync(frozen('chat-1.unstorage.json'), 'utf8'))),
      expected,
    );
  });

  test('r47 a second writer is reported, both sides are kept, every reader chooses the same one', async () => {
    const { before, readers } = await ask('kv/fork');
    assert.deepEqual(before, ['first', 'there']);
    for (const reader of readers)
      assert.deepEqual(reader, {
        texts: ['first', 'here', 'here too'],
        branches: [
          ['main', 3],
          ['conflict', 2],
        ],
      });
  });

  test('r48 row 8 refused writes are repeated; in the end it is `rate_limited` and nothing was written', async () => {
    const { texts, refused, tries, code, branches } = await ask('kv/limits');
    assert.deepEqual(
      texts,
      Array.from({ length: 151 }, (_, number) => String(number)),
    );
    assert.ok(refused >= 3, `${refused} writes were refused`);
    assert.deepEqual([code, tries, branches], ['rate_limited', 6, 1]);
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
