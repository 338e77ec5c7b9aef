// r46 r47 r48: rethread/sqlite on node:sqlite and libSQL.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { openDriver } from './drivers.mjs';
import { twoProcesses } from './processes.mjs';
import { assertAllPassed, chat, startTesting } from './testing.mjs';

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-servers-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const place = (name) => path.join(folder, `${name.replace(/\W/g, '-')}.sqlite`);

let testing;
before(async () => { testing = await startTesting(); });

for (const store of ['node:sqlite', 'DatabaseSync', '@libsql/client']) {
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

const refused = async (database, expected) => {
  const error = await open({ store: sqlite(database) }).then(() => assert.fail('it was opened'), (thrown) => thrown);
  assert.equal(error.name, 'RethreadError');
  assert.equal(error.code, expected, error.message);
  assert.match(error.message, /sqlite/);
};

describe('r48 what cannot be used is refused, and not written', () => {
  test('a newer schema', async () => {
    const file = place('newer');
    await (await open({ store: sqlite(file) })).close();
    const database = new DatabaseSync(file);
    database.exec('UPDATE rethread_schema SET version = 2');
    await refused(database, 'unsupported_version');
    database.close();
  });

  test('a schema of somebody else', async () => {
    const database = new DatabaseSync(':memory:');
    database.exec('CREATE TABLE rethread_log (id INTEGER)');
    await refused(database, 'config_invalid');
    assert.equal(database.prepare('SELECT COUNT(*) AS count FROM sqlite_master').get().count, 1);
  });

  test('a closed database', async () => {
    const database = new DatabaseSync(':memory:');
    const driver = sqlite(database);
    const store = await open({ store: driver });
    const session = await store.session('s');
    database.close();
    await assert.rejects(session.append([{ role: 'user', parts: [{ type: 'text', text: 'q' }] }]), { code: 'closed' });
    await refused(database, 'closed');
  });

  test('a read-only database', async () => {
    const file = place('read-only');
    const writable = await open({ store: sqlite(file) });
    await (await writable.session('s')).append([{ role: 'user', parts: [{ type: 'text', text: 'q' }] }]);
    await writable.close();
    const store = await open({ store: sqlite(new DatabaseSync(file, { readOnly: true })) });
    const session = await store.session('s');
    assert.equal((await session.messages()).items.length, 1);
    await assert.rejects(session.append([{ role: 'user', parts: [{ type: 'text', text: 'r' }] }]), (error) => error.code === 'store_error' && /sqlite.*readonly/.test(error.message));
  });

  test('no database', async () => {
    writeFileSync(place('text'), readFileSync(fileURLToPath(import.meta.url)));
    await refused(place('text'), 'store_error');
    await refused(path.join(folder, 'no', 'folder'), 'store_error');
    for (const wrong of [undefined, null, 7, {}, []]) assert.throws(() => sqlite(wrong), { code: 'config_invalid' });
  });

  test('another connection that keeps the lock', async () => {
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

describe('drivers that are wrong are errors, never traps', () => {
  const odd = async (driver, code) => {
    await assert.rejects(async () => open({ store: driver }), (error) => {
      assert.equal(error.name, 'RethreadError', String(error));
      assert.equal(error.code, code, error.message);
      return true;
    });
  };
  const members = (more) => ({ dialect: 'sqlite', transaction: () => [], ...more });
  const throwing = new Proxy({}, { get: () => { throw new Error('no'); } });
  const { proxy: revoked, revoke } = Proxy.revocable({}, {});
  revoke();

  for (const [name, driver] of Object.entries({
    'an empty object': {}, 'an unknown dialect': members({ dialect: 'mysql' }), 'no dialect': members({ dialect: 7 }),
    'no function': members({ transaction: 'x' }), 'a close that is none': members({ close: 1 }),
    'narrow limits': members({ limits: { maxParams: 5 } }), 'odd limits': members({ limits: { maxValueBytes: 'x' } }), 'an array': [],
  })) test(name, () => odd(driver, 'config_invalid'));

  for (const [name, transaction] of Object.entries({
    undefined: () => undefined, 'a number': () => 7, 'no rows': () => [], 'a row that is none': () => [[7]], 'a row without columns': () => [[{}]],
    'rows that are none': () => ['x'], 'a fraction': () => [[{ schema: 1.5, others: 0 }]], 'an object as column': () => [[{ schema: {}, others: 0 }]],
    'a row that throws': () => [[throwing]], 'rows that throw': () => [throwing], 'results that throw': () => throwing, 'a revoked proxy': () => revoked,
    'a revoked row': () => [[revoked]], 'an exception': () => { throw new Error('no'); }, 'undefined thrown': () => { throw undefined; },
    'a rejection': () => Promise.reject(new Error('no')), 'a rejection of nothing': () => Promise.reject(), 'a revoked rejection': () => Promise.reject(revoked),
    'a getter for then': () => ({ get then() { throw new Error('no'); } }),
  })) test(name, () => odd(members({ transaction }), 'store_error'));

  test('what a driver throws keeps its kind', async () => {
    for (const code of ['busy', 'quota_exceeded', 'closed', 'too_large']) {
      await odd(members({ transaction: () => { throw Object.assign(new Error('no'), { code }); } }), code);
    }
  });
});
