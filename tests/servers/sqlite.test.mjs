// r46 r47 r48: rethread/sqlite on node:sqlite and libSQL.

import assert from 'node:assert/strict';
import { chmodSync, copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { createClient } from '@libsql/client';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { openDriver } from './drivers.mjs';
import { twoProcesses } from './processes.mjs';
import { assertAllPassed, chat, startTesting } from './testing.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-servers-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const place = (name) => path.join(folder, `${name.replace(/\W/g, '-')}.sqlite`);

let testing;
before(async () => {
  testing = await startTesting();
});

const STORES = ['node:sqlite', 'DatabaseSync', '@libsql/client'];

for (const store of STORES) {
  describe(store, () => {
    const ends = [];
    after(() => Promise.all(ends.map((end) => end())));
    const driver = async (name) => {
      const opened = await openDriver(store, place(name));
      ends.push(opened.end);
      return opened.driver;
    };

    test('r46 it conforms', async () => {
      assertAllPassed(await testing.checkStore(() => driver(`${store} suite`), 'suite'));
    });

    test('a chat is written and read', async () => {
      const drivers = [await driver(`${store} chat`), await driver(`${store} chat`)];
      assert.equal(await chat(open, () => drivers.shift()), 'sqlite');
    });

    test('r47 two processes lose nothing', async () => {
      const file = place(`${store} processes`);
      await twoProcesses(store, file, 's', 200);
      await testing.nothingLost(await driver(`${store} processes`), 's', 200);
    });
  });
}

test('a file of schema version 1 is opened', async () => {
  const file = place('version-1');
  copyFileSync(fileURLToPath(new URL('fixtures/schema-1.sqlite', import.meta.url)), file);
  const store = await open({ store: sqlite(file) });
  // Its head says nothing that this version reads: it is a fixture of the tables, not of a chat.
  assert.equal((await store.status()).state, 'degraded');
  await store.close();
});

const question = [{ role: 'user', parts: [{ type: 'text', text: 'q' }] }];
const refused = async (driver, expected) => {
  const error = await open({ store: driver }).then(
    () => assert.fail('it was opened'),
    (thrown) => thrown,
  );
  assert.equal(error.name, 'RethreadError');
  assert.equal(error.code, expected, error.message);
  assert.match(error.message, /sqlite/);
};

/** Acts as a user who is not root, whom file modes do not restrict. */
async function asNobody(action) {
  const isRoot = process.geteuid() === 0;
  if (isRoot) process.seteuid(65534);
  try {
    return await action();
  } finally {
    if (isRoot) process.seteuid(0);
  }
}

for (const name of STORES) {
  describe(`r48 ${name}: an unusable store is rejected and unchanged`, () => {
    const using = async (file, action) => {
      const { driver, end } = await openDriver(name, file);
      try {
        return await action(driver);
      } finally {
        await end();
      }
    };
    const execute = (file, sql) => {
      const database = new DatabaseSync(file);
      database.exec(sql);
      database.close();
    };

    test('another version of the schema', async () => {
      const file = place(`${name} versions`);
      await using(file, async (driver) => (await open({ store: driver })).close());
      for (const [version, code] of [
        [4, 'unsupported_version'],
        [1e9, 'unsupported_version'],
        [-1, 'config_invalid'],
        [0.5, 'store_error'],
      ]) {
        execute(file, `UPDATE rethread_schema SET version = ${version}`);
        const before = readFileSync(file);
        await using(file, (driver) => refused(driver, code));
        assert.ok(before.equals(readFileSync(file)), `version ${version} was written`);
      }
    });

    test('a schema of another application', async () => {
      const schemas = [
        'CREATE TABLE rethread_log (id INTEGER)',
        'CREATE TABLE rethread_schema (id INTEGER)',
        'CREATE VIEW rethread_heads AS SELECT 1',
      ];
      for (const [at, sql] of schemas.entries()) {
        const file = place(`${name} foreign ${at}`);
        execute(file, sql);
        const before = readFileSync(file);
        await using(file, (driver) => refused(driver, 'config_invalid'));
        assert.ok(before.equals(readFileSync(file)), `${sql} was changed`);
      }
    });

    test('a closed client', async () => {
      const file = place(`${name} closed`);
      const { driver, end } = await openDriver(name, file);
      const store = await open({ store: driver });
      const session = await store.session('s');
      await session.append(question);
      // A file that was opened by its path is closed with the store, and opened again by the next one.
      await (name === 'node:sqlite' ? store.close() : end());
      await assert.rejects(session.append(question), { code: 'closed' });
      if (name !== 'node:sqlite') await refused(driver, 'closed');
      await using(file, async (again) => {
        const { items } = await (await (await open({ store: again })).session('s')).messages();
        assert.equal(items.length, 1);
      });
    });

    test('a read-only file', async () => {
      const file = place(`${name} mode`);
      await using(file, async (driver) => (await (await open({ store: driver })).session('s')).append(question));
      chmodSync(folder, 0o777); // a reader of a file in WAL mode has files of its own beside it
      chmodSync(file, 0o444);
      const before = readFileSync(file);
      await asNobody(() =>
        using(file, async (driver) => {
          const session = await (await open({ store: driver })).session('s');
          assert.equal((await session.messages()).items.length, 1);
          await assert.rejects(
            session.append(question),
            (error) => error.code === 'store_error' && /sqlite.*readonly/i.test(error.message),
          );
        }),
      );
      assert.ok(before.equals(readFileSync(file)));

      const empty = place(`${name} empty`);
      writeFileSync(empty, '');
      chmodSync(empty, 0o444);
      await asNobody(() => using(empty, (driver) => refused(driver, 'store_error')));
      assert.equal(readFileSync(empty).length, 0);
    });

    test('no database', async () => {
      const text = place(`${name} text`);
      writeFileSync(text, 'This is no database. '.repeat(100));
      const before = readFileSync(text);
      await assert.rejects(using(text, (driver) => open({ store: driver })));
      assert.ok(before.equals(readFileSync(text)));
    });
  });
}

describe('r48 an unusable store is rejected and unchanged', () => {
  test('a read-only database', async () => {
    const file = place('read-only');
    const writable = await open({ store: sqlite(file) });
    await (await writable.session('s')).append([{ role: 'user', parts: [{ type: 'text', text: 'q' }] }]);
    await writable.close();
    const store = await open({ store: sqlite(new DatabaseSync(file, { readOnly: true })) });
    const session = await store.session('s');
    assert.equal((await session.messages()).items.length, 1);
    await assert.rejects(
      session.append([{ role: 'user', parts: [{ type: 'text', text: 'r' }] }]),
      (error) => error.code === 'store_error' && /sqlite.*readonly/.test(error.message),
    );
  });

  test('no database', async () => {
    writeFileSync(place('text'), readFileSync(fileURLToPath(import.meta.url)));
    await refused(sqlite(place('text')), 'store_error');
    await refused(sqlite(path.join(folder, 'no', 'folder')), 'store_error');
    for (const wrong of [undefined, null, 7, {}, []]) assert.throws(() => sqlite(wrong), { code: 'config_invalid' });
  });

  test('another connection that holds the lock', async () => {
    const file = place('busy');
    const store = await open({ store: sqlite(new DatabaseSync(file)) });
    const session = await store.session('s');
    const other = new DatabaseSync(file);
    other.exec('BEGIN IMMEDIATE');
    await assert.rejects(session.append([{ role: 'user', parts: [{ type: 'text', text: 'q' }] }]), { code: 'busy' });
    other.exec('ROLLBACK');
    other.close();
    await session.append([{ role: 'user', parts: [{ type: 'text', text: 'q' }] }]);
  });
});

test('durability', async () => {
  const file = place('durability');
  const level = (database) => database.prepare('PRAGMA synchronous').get().synchronous;
  const database = new DatabaseSync(file);
  database.exec('PRAGMA synchronous = OFF');
  await (await open({ store: sqlite(database) })).close();
  assert.equal(level(database), 0, 'what the application set was changed');
  await (await open({ store: sqlite(database), durability: 'strict' })).close();
  assert.equal(level(database), 2);
  database.close();
  for (const [durability, expected] of [
    ['relaxed', 1],
    ['strict', 2],
    [undefined, 1],
  ]) {
    const driver = sqlite(file);
    const store = await open({ store: driver, ...(durability && { durability }) });
    await (await store.session('s')).append(question);
    const [[row]] = await driver.transaction([{ sql: 'SELECT synchronous FROM pragma_synchronous', params: [] }]);
    assert.equal(row.synchronous, expected, durability);
    driver.close();
  }
  const { driver, end } = await openDriver('@libsql/client', place('libsql durability'));
  await (await open({ store: driver, durability: 'strict' })).close();
  await end();
  const remote = createClient({ url: 'http://127.0.0.1:1' });
  await assert.rejects(open({ store: sqlite(remote), durability: 'strict' }), {
    code: 'config_invalid',
    message: /sqlite.*libSQL/,
  });
  await assert.rejects(open({ store: sqlite(remote) }), { code: 'unavailable', message: /sqlite/ });
  const ownDriver = { dialect: 'sqlite', transaction: () => [] };
  await assert.rejects(open({ store: ownDriver, durability: 'strict' }), {
    code: 'config_invalid',
    message: /sqlite.*setDurability/,
  });
});

test('closing waits for the driver, and reports its failure', async () => {
  const file = place('closing');
  const events = [];
  const { dialect, transaction, close } = sqlite(file);
  const driver = {
    dialect,
    transaction,
    async close() {
      await new Promise((resolve) => {
        setImmediate(resolve);
      });
      close();
      events.push('closed');
    },
  };
  await (await open({ store: driver })).close();
  assert.deepEqual(events, ['closed']);
  const failing = await open({ store: { dialect, transaction, close: () => Promise.reject(new Error('it hangs')) } });
  await assert.rejects(failing.close(), { code: 'store_error', message: /sqlite store: it hangs/ });
});

describe('invalid drivers are errors, never traps', () => {
  const odd = async (driver, code) => {
    await assert.rejects(
      async () => open({ store: driver }),
      (error) => {
        assert.equal(error.name, 'RethreadError', String(error));
        assert.equal(error.code, code, error.message);
        return true;
      },
    );
  };
  const members = (more) => ({ dialect: 'sqlite', transaction: () => [], ...more });
  const throwing = new Proxy(
    {},
    {
      get: () => {
        throw new Error('no');
      },
    },
  );
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();

  for (const [name, driver] of Object.entries({
    'an empty object': {},
    'an unknown dialect': members({ dialect: 'mysql' }),
    'no dialect': members({ dialect: 7 }),
    'no function': members({ transaction: 'x' }),
    'a close that is none': members({ close: 1 }),
    'narrow limits': members({ limits: { maxParams: 5 } }),
    'odd limits': members({ limits: { maxValueBytes: 'x' } }),
    'an array': [],
  }))
    test(name, () => odd(driver, 'config_invalid'));

  for (const [name, transaction] of Object.entries({
    undefined: () => undefined,
    'a number': () => 7,
    'no rows': () => [],
    'a row that is none': () => [[7]],
    'a row without columns': () => [[{}]],
    'rows that are none': () => ['x'],
    'a fraction': () => [[{ schema: 1.5, others: 0 }]],
    'an object as column': () => [[{ schema: {}, others: 0 }]],
    'a row that throws': () => [[throwing]],
    'rows that throw': () => [throwing],
    'results that throw': () => throwing,
    'a revoked proxy': () => revoked,
    'a revoked row': () => [[revoked]],
    'an exception': () => {
      throw new Error('no');
    },
    'undefined thrown': () => {
      throw undefined;
    },
    'a rejection': () => Promise.reject(new Error('no')),
    'a rejection of nothing': () => Promise.reject(),
    'a revoked rejection': () => Promise.reject(revoked),
    'a getter for then': () => ({
      get then() {
        throw new Error('no');
      },
    }),
  }))
    test(name, () => odd(members({ transaction }), 'store_error'));

  test('an error that a driver throws keeps its kind', async () => {
    for (const code of ['busy', 'quota_exceeded', 'closed', 'too_large']) {
      await odd(
        members({
          transaction: () => {
            throw Object.assign(new Error('no'), { code });
          },
        }),
        code,
      );
    }
  });
});
