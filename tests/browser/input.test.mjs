// Wrong calls and damaged records, in Chromium with IndexedDB. What needs no database runs in Node as well
// (tests/bindings).

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { IDS } from '../bindings/scenarios/input.mjs';
import * as judge from '../bindings/scenarios/judge.mjs';
import { openWorld } from './page.mjs';

let world;
let page;
before(async () => {
  world = await openWorld();
  page = await world.page();
});
after(() => world?.close());

const envOf = (name, dialect = 'openai-chat') => {
  const { base, chat, messages } = world.lane(name);
  return { store: 'indexeddb', name, dialect, lane: { base, chat, messages } };
};

test('before init a synchronous function throws not_initialized', async () => {
  const facts = await page.evaluate(async () => {
    const codes = [
      await caught(() => rethread.validate({}, 'openai-chat')),
      await caught(() => rethread.repair({}, 'openai-chat')),
      await caught(() => new rethread.StreamAssembler('openai-chat')),
    ];
    await Promise.all([rethread.init(), rethread.init()]);
    return { codes, after: rethread.validate({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat') };
  });
  for (const fact of facts.codes) {
    assert.equal(fact.code, 'not_initialized');
    assert.equal(fact.name, 'RethreadError');
  }
  assert.deepEqual(facts.after, []);
});

test('every invalid call fails with a code and a message, and changes nothing', async () => {
  const { facts, same, listed } = await page.evaluate(async (env) => {
    await rethread.init();
    return scenarios.input.misuse({ rethread, drive }, env);
  }, envOf('misuse'));
  assert.deepEqual(
    facts.filter(({ right }) => !right).map(({ what, want, code, message }) => ({ what, want, code, message })),
    [],
  );
  assert.equal(same, true);
  assert.deepEqual(listed, ['s']);
});

test('r49 session ids can be any text and never reach another session', async () => {
  const { state, listed, paged, left, neighbours } = await page.evaluate(
    (env) => scenarios.input.ids({ rethread }, env),
    envOf('ids'),
  );
  for (const id of IDS) {
    assert.deepEqual(
      state[`id:${id}`],
      [true, 2, `of ${id.slice(0, 40)}`, 1, true, id.slice(0, 40), id.length, id.slice(0, 5), '__proto__,own'],
      JSON.stringify(id.slice(0, 40)),
    );
  }
  assert.deepEqual(listed, IDS.slice().sort());
  assert.deepEqual(paged, IDS.slice().sort());
  assert.equal(left, IDS.length - 1);
  assert.deepEqual(neighbours, [2, 2, 0]);
});

describe('stored input', () => {
  test('r45 returns byte for byte after a reload', async () => {
    const context = await world.context();
    const env = envOf('exact');
    const first = await world.page(context);
    await first.evaluate(async (env) => {
      await (await scenarios.replay.storeExact({ rethread }, env)).close();
    }, env);
    await first.close();
    const second = await world.page(context);
    judge.exact(await second.evaluate((env) => scenarios.replay.readExact({ rethread }, env), env));
  });

  for (const dialect of ['openai-chat', 'anthropic']) {
    test(`r01 r13 r20 r45 of a run, over ${dialect}`, async () => {
      const facts = await page.evaluate(
        async (envs) => {
          const kit = { rethread, drive };
          return {
            audit: await scenarios.replay.audit(kit, envs[0]),
            both: await scenarios.replay.streamedOrNot(kit, envs[1]),
            exact: await scenarios.replay.exactAnswer(kit, envs[2], true),
          };
        },
        ['audit', 'both', 'raw'].map((name) => envOf(`${name}-${dialect}`, dialect)),
      );
      judge.audit(facts.audit);
      judge.streamedOrNot(facts.both);
      judge.exactAnswer(facts.exact, dialect, true);
    });
  }

  test('r10 r55 render through the binding', async () => {
    const facts = await page.evaluate(
      async (envs) => ({
        freshness: await scenarios.replay.freshness({ rethread }, envs[0]),
        shapes: await scenarios.replay.shapes({ rethread }, envs[1]),
      }),
      [envOf('freshness'), envOf('shapes')],
    );
    judge.freshness(facts.freshness);
    judge.shapes(facts.shapes);
  });
});

/** A page with five appends stored, a reader that opens them anew, and a hand on the raw records. */
async function damaged(name) {
  await page.evaluate(async (name) => {
    const user = (n) => ({
      messages: [
        { role: 'user', content: `m${n}` },
        {
          role: 'assistant',
          content: null,
          tool_calls: [{ id: `call_${n}`, type: 'function', function: { name: 'f', arguments: '{}' } }],
        },
        { role: 'tool', tool_call_id: `call_${n}`, content: `r${n}` },
      ],
    });
    const client = await rethread.open({ name });
    const session = await client.session('s');
    for (let n = 0; n < 5; n += 1) await session.append(user(n), 'openai-chat');
    await (await client.session('neighbour')).append(user(9), 'openai-chat');
    await client.close();
    globalThis.user = user;

    /** Changes the bytes of one record where they lie. */
    globalThis.touch = (table, key, change) =>
      new Promise((resolve, reject) => {
        const opening = indexedDB.open(name);
        opening.onerror = () => reject(opening.error);
        opening.onsuccess = () => {
          const database = opening.result;
          const transaction = database.transaction(table, 'readwrite');
          const store = transaction.objectStore(table);
          const reading = store.get(key);
          reading.onsuccess = () => {
            const row = reading.result;
            if (row === undefined) return reject(new Error('no such record'));
            const value = change(row instanceof Uint8Array ? row : row.v);
            if (value === null) store.delete(key);
            else if (row instanceof Uint8Array) store.put(value, key);
            else store.put({ ...row, v: value }, key);
          };
          transaction.oncomplete = () => {
            database.close();
            resolve();
          };
          transaction.onabort = () => reject(transaction.error);
        };
      });
    globalThis.flipped = (bytes) => bytes.map((byte, at) => (at === bytes.length >> 1 ? byte ^ 0x40 : byte));
    globalThis.newer = (bytes) => bytes.map((byte, at) => (at === 0 ? byte + 1 : byte));
    globalThis.look = async () => {
      const warnings = [];
      const client = await rethread.open({ name, onWarning: (finding) => warnings.push(finding) });
      const session = await client.session('s');
      const texts = (await session.messages()).items.flatMap(({ parts }) =>
        parts.filter(({ type }) => type === 'text').map(({ text }) => text),
      );
      const rows = await caught(async () => (await client.invocations({ session: 's', payload: true })).items.length);
      const append = await caught(() => session.append(user(7), 'openai-chat'));
      const update = await caught(() => session.update({ title: 'T' }));
      const run = await caught(() =>
        session.run({ input: 'x', provider: { dialect: 'openai-chat', url: 'http://127.0.0.1:9/', params: {} } }),
      );
      const rendered = await caught(async () =>
        new TextDecoder().decode(
          (await session.render({ dialect: 'openai-chat', params: { model: 'm' }, replay: { freshness: Infinity } }))
            .body,
        ),
      );
      const listed = await caught(async () => (await client.sessions()).items.map(({ id }) => id).join());
      const neighbour = (await (await client.session('neighbour')).messages()).items.length;
      const status = await client.status();
      await client.close();
      return { warnings, texts, rows, append, update, run, rendered, listed, neighbour, status };
    };
  }, name);
}

describe('damage', () => {
  test('a log record that cannot be decoded is reported, other records are read, and the session stays usable', async () => {
    await damaged('flip-log');
    const facts = await page.evaluate(async () => {
      await touch('log', ['s', 2], flipped);
      return look();
    });
    assert.deepEqual(facts.texts, ['m0', 'm1', 'm3', 'm4']);
    assert.equal(facts.warnings[0].code, 'malformed');
    assert.match(facts.warnings[0].message, /log record 2/);
    assert.equal(facts.status.state, 'degraded');
    assert.deepEqual(facts.status.findings[0], facts.warnings[0]);
    assert.equal(facts.append.code, null);
    assert.equal(facts.neighbour, 2);
    assert.match(facts.rendered.value, /"m4"/);
    assert.doesNotMatch(facts.rendered.value, /"m2"/);
  });

  test('a log record that is missing or not bytes is reported', async () => {
    await damaged('gone-log');
    const facts = await page.evaluate(async () => {
      await touch('log', ['s', 1], () => null);
      await touch('log', ['s', 3], () => new Uint8Array());
      return look();
    });
    assert.deepEqual(facts.texts, ['m0', 'm2', 'm4']);
    assert.equal(facts.warnings.filter(({ code }) => code === 'malformed').length >= 2, true);
    assert.equal(facts.append.code, null);
  });

  test('an audit row that cannot be decoded is reported, other rows are read', async () => {
    await damaged('flip-audit');
    const facts = await page.evaluate(async () => {
      await touch('tool_invocations', ['s', 2], flipped);
      return look();
    });
    assert.equal(facts.rows.value, '4');
    assert.ok(facts.warnings.some(({ code, message }) => code === 'malformed' && /audit row 2/.test(message)));
    assert.equal(facts.status.state, 'degraded');
    assert.equal(facts.status.findings.length, 1, 'each once');
    assert.deepEqual(facts.texts, ['m0', 'm1', 'm2', 'm3', 'm4']);
  });

  test('r07 a head that cannot be decoded is rebuilt from its log, and the session stays usable', async () => {
    await damaged('flip-head');
    const facts = await page.evaluate(async () => {
      await touch('heads', 's', flipped);
      return look();
    });
    assert.deepEqual(facts.texts, ['m0', 'm1', 'm2', 'm3', 'm4']);
    assert.ok(facts.warnings.some(({ code }) => code === 'malformed'));
    for (const fact of [facts.append, facts.update, facts.run]) assert.equal(fact.code, null);
    assert.equal(facts.status.state, 'degraded');
    assert.deepEqual(facts.listed.value.split(',').sort(), ['neighbour', 's']);
    assert.equal(facts.neighbour, 2);
  });

  for (const [what, table, key] of [
    ['head', 'heads', 's'],
    ['log record', 'log', ['s', 3]],
  ]) {
    test(`a ${what} of a newer schema opens read-only`, async () => {
      await damaged(`newer-${table}`);
      const facts = await page.evaluate(
        async ([table, key]) => {
          await touch(table, key, newer);
          return look();
        },
        [table, key],
      );
      assert.deepEqual(facts.texts, table === 'heads' ? ['m0', 'm1', 'm2', 'm3', 'm4'] : ['m0', 'm1', 'm2', 'm4']);
      for (const fact of [facts.append, facts.update, facts.run]) {
        assert.equal(fact.code, 'unsupported_version');
        assert.match(fact.message, /update/);
      }
      assert.ok(facts.warnings.length > 0);
      assert.equal(facts.status.state, 'read_only');
      assert.equal(facts.rendered.code, null);
      assert.equal(facts.neighbour, 2);
    });
  }
});

test('the pages reported no error', () => assert.deepEqual(page.complaints, []));
