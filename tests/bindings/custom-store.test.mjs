// r46 r48: `open` with a LogStore of the application: used, checked, and refused by what it lacks.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const METHODS = ['capabilities', 'head', 'append', 'read', 'sessions', 'invocations', 'deleteSession'];
const question = [{ role: 'user', parts: [{ type: 'text', text: 'q' }] }];
const exchange = [
  ...question,
  {
    role: 'assistant',
    parts: [
      { type: 'tool', callId: 'c', name: 'look', arguments: {}, result: 1 },
      { type: 'text', text: 'A cat.' },
    ],
  },
];

/** A chat that is written by one `open` and read by another. */
async function chat(store) {
  const first = await open({ store });
  await (await first.session('s', { channel: 'web' })).append(exchange);
  assert.equal((await first.status()).store, 'custom');
  const second = await open({ store });
  const session = await second.session('s');
  await session.append(question, { expectedRevision: session.revision });
  assert.equal((await session.messages()).items.length, 4);
  const rows = await second.invocations({ tool: 'look', payload: true });
  assert.deepEqual(
    rows.items.map(({ callId }) => callId),
    ['c'],
  );
  assert.deepEqual(
    (await second.sessions()).items.map(({ id }) => id),
    ['s'],
  );
  await second.deleteSession('s');
  assert.deepEqual((await second.sessions()).items, []);
  await first.close();
  await second.close();
}

test('r46 a chat in a store of the application', () => chat(new MemoryLogStore()));

test('a store that writes the `put` records of a batch unconditionally', async () => {
  const store = new MemoryLogStore();
  const { append } = store;
  store.append = async (id, expected, { head, put, remove }, operation) => {
    const batch = {
      head,
      channel: 'web',
      atLeast: 0,
      remove,
      put: put.map((record) => ({ ...record, replace: true })),
    };
    return append.call(store, id, expected, batch, operation);
  };
  await chat(store);
});

test('the store in docs/stores.md is the one tested here', () => {
  const page = readFileSync(new URL('../../docs/stores.md', import.meta.url), 'utf8');
  const file = readFileSync(new URL('../packaging/projects/store/memory-log-store.js', import.meta.url), 'utf8');
  assert.ok(page.includes(`\`\`\`js\n${file}\`\`\``));
});

describe('r48 a store is rejected that', () => {
  for (const method of METHODS) {
    test(`has no ${method}`, async () => {
      for (const wrong of [undefined, 7, {}]) {
        const store = Object.assign(new MemoryLogStore(), { [method]: wrong });
        await assert.rejects(open({ store }), {
          code: 'config_invalid',
          message: new RegExp(`custom store.*\`${method}\``),
        });
      }
    });
  }

  for (const [what, more] of Object.entries({
    compareAndAppend: false,
    atomicBatch: false,
    readYourWrites: false,
    maxValueBytes: 100,
    durable: 'yes',
  })) {
    test(`reports ${what}: ${more}`, async () => {
      for (const wrong of [more, null, 'x']) {
        const store = new MemoryLogStore();
        const capabilities = { ...store.capabilities(), [what]: wrong };
        store.capabilities = () => capabilities;
        await assert.rejects(open({ store }), { code: 'config_invalid', message: new RegExp(`custom store.*${what}`) });
      }
    });
  }

  test('throws, or lacks a requested guarantee', async () => {
    const throwing = Object.assign(new MemoryLogStore(), {
      capabilities: () => {
        throw new Error('no');
      },
    });
    await assert.rejects(open({ store: throwing }), {
      code: 'config_invalid',
      message: /custom store: `capabilities` threw: no/,
    });
    await assert.rejects(open({ store: new MemoryLogStore(), durability: 'strict' }), {
      code: 'config_invalid',
      message: /custom store.*strict/,
    });
    const strict = new MemoryLogStore();
    strict.capabilities = () => ({ ...MemoryLogStore.prototype.capabilities(), strict: true });
    await (await open({ store: strict, durability: 'strict' })).close();
    for (const wrong of [{}, { get: 1 }, []]) await assert.rejects(open({ store: wrong }), { code: 'config_invalid' });
  });
});

test('closing waits for the store, and reports its failure', async () => {
  const events = [];
  const store = Object.assign(new MemoryLogStore(), {
    close: async () => {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      events.push('closed');
    },
  });
  const opened = await open({ store });
  await opened.close();
  assert.deepEqual(events, ['closed']);
  await opened.close();
  assert.deepEqual(events, ['closed'], 'closed twice');
  store.close = () => Promise.reject(Object.assign(new Error('the socket hangs'), { code: 'unavailable' }));
  const failing = await open({ store });
  await assert.rejects(failing.close(), { code: 'unavailable', message: /custom store: `close`.*the socket hangs/ });
  await assert.rejects(failing.session('s'), { code: 'closed' });
});

const throwing = new Proxy(
  {},
  {
    get: () => {
      throw new Error('no');
    },
    getPrototypeOf: () => {
      throw new Error('no');
    },
  },
);
const { proxy: revoked, revoke } = Proxy.revocable({}, {});
revoke();
const WRONG = {
  undefined,
  seven: 7,
  text: 'x',
  array: [7],
  'an empty object': {},
  'a proxy that throws': throwing,
  'a revoked proxy': revoked,
  'wrong members': { revision: 1.5, value: 'x', items: 'x', cursor: 7 },
  'a negative revision': { revision: -1, value: new Uint8Array(1) },
  'items that throw': { items: [throwing], cursor: null },
  'a list that throws': { items: throwing, cursor: null },
  'a rejection': Promise.reject(new Error('no')),
};
WRONG['a rejection'].catch(() => {});

describe('r48 what a store returns is checked', () => {
  const calls = {
    head: (opened) => opened.session('s'),
    read: (opened) => opened.session('s'),
    append: async (opened) => (await opened.session('new')).append(question),
    sessions: (opened) => opened.sessions(),
    invocations: (opened) => opened.invocations(),
  };
  for (const [method, call] of Object.entries(calls)) {
    for (const [name, value] of Object.entries(WRONG)) {
      // No head is an absent session.
      if (method === 'head' && value === undefined) continue;
      test(`${method}: ${name}`, async () => {
        const store = new MemoryLogStore();
        const opened = await open({ store });
        await (await opened.session('s')).append(exchange);
        const second = await open({ store });
        store[method] = () => value;
        await assert.rejects(call(second), (error) => {
          assert.equal(error.name, 'RethreadError', String(error));
          assert.equal(error.code, 'store_error', error.message);
          assert.ok(error.message.startsWith(`the custom store: \`${method}\``), error.message);
          return true;
        });
      });
    }
  }

  const records = async (change) => {
    const store = new MemoryLogStore();
    const opened = await open({ store });
    await (await opened.session('s')).append(exchange);
    const { read } = store;
    store.read = (...query) => change(read.apply(store, query));
    await assert.rejects((await open({ store })).session('s'), {
      code: 'store_error',
      message: /custom store: `read` returned/,
    });
  };
  test('records that were not requested, or in another order', async () => {
    await records((list) => list.map((record) => ({ ...record, table: 'runs' })));
    await records((list) => list.map((record) => ({ ...record, key: 2 ** 52 })));
    await records((list) => list.map((record) => ({ ...record, key: -1 })));
    await records((list) => list.map((record) => ({ ...record, lastKey: record.key - 1 })));
    await records((list) => [...list, ...list]);
    await records((list) => list.map((record) => ({ ...record, value: [...record.value] })));
  });

  test('rows that were not requested, pages that never end', async () => {
    const store = new MemoryLogStore();
    const opened = await open({ store });
    await (await opened.session('s')).append(exchange);
    const { invocations, sessions } = store;
    store.invocations = ({ tool, ...query }) => invocations.call(store, query);
    await assert.rejects(opened.invocations({ tool: 'other' }), {
      code: 'store_error',
      message: /`invocations` returned a row/,
    });
    store.sessions = (query) => ({ ...sessions.call(store, { ...query, cursor: null }), cursor: 'same' });
    await assert.rejects(opened.pendingRuns(), { code: 'store_error', message: /`sessions` returned the cursor/ });
    const { state, findings } = await opened.status();
    assert.deepEqual([state, findings.map(({ code }) => code)], ['degraded', ['read_failed']]);
    assert.match(findings[0].message, /`sessions` returned the cursor/);
    await (await opened.session('t')).append(question);
    store.sessions = (query) => {
      const { items } = sessions.call(store, query);
      return { items: Array(query.limit + 1).fill(items[0]), cursor: null };
    };
    await assert.rejects(opened.sessions({ limit: 1 }), {
      code: 'store_error',
      message: /`sessions` returned a page of 201/,
    });
    store.append = (id, expected) => ({ conflict: expected });
    await assert.rejects((await opened.session('u')).append(question), {
      code: 'store_error',
      message: /`append` returned a conflict/,
    });
  });

  test('an error that a store throws keeps its code', async () => {
    for (const code of [
      'busy',
      'quota_exceeded',
      'closed',
      'too_large',
      'unavailable',
      'evicted',
      'corrupt_record',
      'unsupported_version',
    ]) {
      const store = Object.assign(new MemoryLogStore(), {
        head: () => {
          throw Object.assign(new Error('no'), { code });
        },
      });
      await assert.rejects((await open({ store })).session('s'), {
        code,
        message: 'the custom store: `head` failed: no',
      });
    }
    for (const thrown of [
      undefined,
      null,
      'x',
      throwing,
      revoked,
      Object.assign(new Error('no'), { code: 'aborted' }),
    ]) {
      const store = Object.assign(new MemoryLogStore(), {
        head: () => {
          throw thrown;
        },
      });
      await assert.rejects((await open({ store })).session('s'), {
        code: 'store_error',
        message: /custom store: `head` failed/,
      });
    }
  });
});

describe('r48 a lost reply', () => {
  /** A store whose next append fails after it was written, or before. */
  const losing = (outcome, hasWritten, times = 1) => {
    const store = new MemoryLogStore();
    const { append } = store;
    let left = times;
    store.append = (...batch) => {
      const appended = left === 0 || hasWritten ? append.apply(store, batch) : null;
      if (left === 0) return appended;
      left -= 1;
      throw Object.assign(new Error('connection lost'), { code: 'unavailable', details: { outcome } });
    };
    return store;
  };

  for (const hasWritten of [true, false]) {
    test(`of an append that was ${hasWritten ? '' : 'not '}written: repeated, once in history`, async () => {
      const opened = await open({ store: losing('unknown', hasWritten) });
      const session = await opened.session('s');
      await session.append(question);
      assert.equal((await session.messages()).items.length, 1);
    });
  }

  test('that stays lost, or of an append that certainly failed, is reported to the caller', async () => {
    for (const [store, outcome] of [
      [losing('unknown', false, 2), 'unknown'],
      [losing('none', false), 'none'],
    ]) {
      const session = await (await open({ store })).session('s');
      await assert.rejects(session.append(question), (error) => {
        assert.deepEqual([error.code, error.details], ['unavailable', { outcome }]);
        return true;
      });
      await session.append(question);
      assert.equal((await session.messages()).items.length, 1);
    }
  });
});
