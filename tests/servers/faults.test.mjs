// r48: what happens to the data of a SQL store, and what the outcome is. The numbers are the rows of faults.md.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, before, describe, test } from 'node:test';
import pg from 'pg';
import { open } from 'rethread';
import { postgres } from 'rethread/postgres';
import { sqlite } from 'rethread/sqlite';
import { checkFound, turn } from './acknowledged.mjs';
import { endsWithThisProcess } from './child-processes.mjs';
import { openDriver } from './drivers.mjs';
import { postgresAccount, startPostgres } from './postgres-server.mjs';
import { mountSmallDisk } from './small-disk.mjs';

const MIB = 1024 * 1024;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-faults-'));
let server;
before(async () => {
  server = await startPostgres();
});
after(async () => {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
});

/** The bytes of a BLOB or BYTEA as a literal. */
const literal = (store, bytes) =>
  store.startsWith('pg')
    ? `'\\x${Buffer.from(bytes).toString('hex')}'::bytea`
    : `X'${Buffer.from(bytes).toString('hex')}'`;

/** A database of its own: how to open the store, and SQL past it. */
async function database(store, name) {
  const plain = name.replace(/\W/g, '_');
  const ends = [];
  let place;
  let sql;
  if (store.startsWith('pg')) {
    const admin = new pg.Client(server.place);
    await admin.connect();
    await admin.query(`CREATE DATABASE ${plain}`);
    await admin.end();
    const raw = new pg.Client({ ...server.place, database: plain });
    await raw.connect();
    ends.push(() => raw.end());
    place = JSON.stringify({ ...server.place, database: plain });
    sql = async (text) => (await raw.query(text)).rows;
  } else {
    place = path.join(folder, `${plain}-${store.replace(/\W/g, '')}.sqlite`);
    sql = async (text) => {
      const raw = new DatabaseSync(place);
      raw.exec('PRAGMA busy_timeout = 5000');
      try {
        return /^SELECT/.test(text) ? raw.prepare(text).all() : raw.exec(text);
      } finally {
        raw.close();
      }
    };
  }
  return {
    sql,
    async open(options = {}, wrap = (driver) => driver) {
      const { driver, end } = await openDriver(store, place);
      ends.push(end);
      return open({ store: wrap(driver), ...options });
    },
    close: () => Promise.all(ends.map((end) => end())),
  };
}

const byKey = (key) => `key = ${key} AND session = (SELECT session FROM rethread_heads LIMIT 1)`;
const bytesOf = (row) => Uint8Array.from(row.value);

for (const store of ['node:sqlite', '@libsql/client', 'pg Pool']) {
  describe(store, () => {
    const check = (name, body) =>
      test(name, async () => {
        const db = await database(store, name);
        try {
          await body(db);
        } finally {
          await db.close();
        }
      });
    const filled = async (db, turns = 5) => {
      const client = await db.open();
      const session = await client.session('s');
      for (let number = 0; number < turns; number += 1) await session.append(turn('w', number));
      await client.close();
      return Array.from({ length: turns }, (_, number) => `w:${number}`);
    };

    check('r48 row 7: connections that the server ends are opened again', async (db) => {
      if (!store.startsWith('pg')) return;
      const client = await db.open();
      const session = await client.session('s');
      const acknowledged = [];
      for (let number = 0; number < 20; number += 1) {
        if (number % 5 === 4)
          await db.sql(
            'SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND datname = current_database()',
          );
        await session.append(turn('w', number)).then(
          () => acknowledged.push(`w:${number}`),
          (error) => assert.equal(error.code, 'store_error', error.message),
        );
      }
      assert.ok(acknowledged.length >= 12, `only ${acknowledged.length} of 20 appends`);
      await checkFound(await db.open(), 's', acknowledged);
    });

    check('r48 row 11: a flipped byte costs its record, and stays', async (db) => {
      await filled(db);
      const [row] = await db.sql(`SELECT value FROM rethread_log WHERE ${byKey(2)}`);
      const damaged = bytesOf(row);
      damaged[damaged.length >> 1] ^= 0x40;
      await db.sql(`UPDATE rethread_log SET value = ${literal(store, damaged)} WHERE ${byKey(2)}`);
      const client = await db.open();
      const session = await client.session('s');
      const questions = async () =>
        (await session.messages()).items.filter(({ role }) => role === 'user').map(({ parts }) => parts[0].text);
      assert.deepEqual(await questions(), ['w:0', 'w:1', 'w:3', 'w:4']);
      const { state, findings } = await client.status();
      assert.equal(state, 'degraded');
      assert.match(JSON.stringify(findings), /record 2 of session \\"s\\"/);
      await session.append(turn('w', 5));
      assert.equal((await questions()).at(-1), 'w:5');
      const [after] = await db.sql(`SELECT value FROM rethread_log WHERE ${byKey(2)}`);
      assert.deepEqual(bytesOf(after), damaged, 'it was written over');
    });

    check('r48 row 12: what a newer version wrote is read-only', async (db) => {
      await filled(db);
      for (const table of ['rethread_log', 'rethread_heads']) {
        const where = table === 'rethread_log' ? byKey(4) : 'session IS NOT NULL';
        const [row] = await db.sql(`SELECT value FROM ${table} WHERE ${where}`);
        const newer = bytesOf(row);
        newer[0] = 200;
        await db.sql(`UPDATE ${table} SET value = ${literal(store, newer)} WHERE ${where}`);
        const client = await db.open();
        const session = await client.session('s');
        await assert.rejects(session.append(turn('x', 0)), { code: 'unsupported_version' });
        assert.equal((await client.status()).state, 'read_only');
        assert.equal((await session.messages()).items.filter(({ role }) => role === 'user').length, 4);
        const [after] = await db.sql(`SELECT value FROM ${table} WHERE ${where}`);
        assert.deepEqual(bytesOf(after), newer, 'it was rewritten');
      }
    });

    check('r48 row 13: a clock that goes backwards changes no order', async (db) => {
      let now = 2_000_000_000_000;
      const client = await db.open({ now: () => (now -= 60_000) });
      const session = await client.session('s');
      for (let number = 0; number < 6; number += 1) await session.append(turn('w', number));
      await checkFound(await db.open(), 's', ['w:0', 'w:1', 'w:2', 'w:3', 'w:4', 'w:5']);
    });

    check('r48 row 14: a value at, above and below the size of a row', async (db) => {
      const client = await db.open();
      const session = await client.session('s');
      const sizeOf = async (key) => Number((await db.sql(`SELECT size FROM rethread_log WHERE ${byKey(key)}`))[0].size);
      const message = (length, letter) => [{ role: 'user', parts: [{ type: 'text', text: letter.repeat(length) }] }];
      await session.append(message(1, 'z'));
      await session.append(message(MIB - 1000, 'a'));
      // The numbers and lengths of the next records take as many bytes as those of this one.
      const frame = (await sizeOf(1)) - (MIB - 1000);
      const lengths = [MIB - 1, MIB, MIB + 1, 3 * MIB].map((size) => size - frame);
      for (const [at, length] of lengths.entries()) await session.append(message(length, 'bcde'[at]));
      assert.deepEqual(await Promise.all([2, 3, 4].map(sizeOf)), [MIB - 1, MIB, MIB + 1]);
      const [{ count }] = await db.sql('SELECT COUNT(*) AS count FROM rethread_chunks');
      assert.equal(Number(count), 2 + 3, 'a value of one row is split, or a larger one is not');
      const again = await (await db.open()).session('s');
      const texts = (await again.messages()).items.map(({ parts }) => parts[0].text);
      assert.deepEqual(
        texts.map((text) => [text[0], text.length]),
        [['z', 1], ['a', MIB - 1000], ...lengths.map((length, at) => ['bcde'[at], length])],
      );
    });

    check('r48 row 15: a reply that is lost doubles nothing, a request that is lost leaves nothing', async (db) => {
      let loss = null;
      const client = await db.open({}, (driver) => ({
        ...driver,
        async transaction(statements) {
          const losing = statements.length > 2 && loss;
          if (losing) loss = null;
          if (losing === 'request') throw new Error('the request was lost');
          const results = await driver.transaction(statements);
          if (losing === 'reply') throw new Error('the reply was lost');
          return results;
        },
      }));
      const session = await client.session('s');
      const acknowledged = [];
      const doubtful = [];
      for (let number = 0; number < 30; number += 1) {
        loss = ['request', null, 'reply'][number % 3];
        await session.append(turn('w', number)).then(
          () => acknowledged.push(`w:${number}`),
          (error) => {
            assert.equal(error.code, 'store_error');
            doubtful.push(`w:${number}`);
          },
        );
      }
      assert.ok(acknowledged.length >= 10);
      await checkFound(
        await db.open(),
        's',
        acknowledged,
        doubtful.filter((token) => Number(token.slice(2)) % 3 === 2),
      );
    });

    check('r48 row 16: tables that were taken away are an error, and no empty chat', async (db) => {
      await filled(db);
      const client = await db.open();
      const session = await client.session('s');
      await db.sql('DROP TABLE rethread_log');
      await assert.rejects(session.append(turn('w', 5)), { code: 'store_error' });
      const second = await db.open().catch((error) => error);
      if (second instanceof Error) assert.ok(second.code, String(second));
      else await assert.rejects(second.session('s'), { code: 'store_error' });
      await db.sql('DROP TABLE rethread_heads');
      await assert.rejects(session.append(turn('w', 5)), { code: 'store_error' });
    });

    check('r48 row 17: any bytes in any table trap nothing', async (db) => {
      await filled(db);
      const other = await (await db.open()).session('t');
      await other.append(turn('w', 0));
      let seed = 7;
      const random = (end) => {
        seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0;
        return Math.floor((seed / 2 ** 32) * end);
      };
      for (let attempt = 0; attempt < 40; attempt += 1) {
        const table = ['rethread_heads', 'rethread_log', 'rethread_tool_invocations'][random(3)];
        const rows = await db.sql(
          `SELECT value FROM ${table} WHERE session <> ${literal(store, Buffer.from('t'))} ORDER BY session`,
        );
        const bytes = random(2)
          ? Uint8Array.from({ length: random(300) }, () => random(256))
          : bytesOf(rows[random(rows.length)]);
        if (bytes.length) bytes[random(bytes.length)] ^= 1 << random(8);
        const where = table === 'rethread_heads' ? 'session IS NOT NULL' : `key = ${random(rows.length)}`;
        await db.sql(
          `UPDATE ${table} SET value = ${literal(store, bytes)}, size = ${bytes.length} WHERE ${where} AND session <> ${literal(store, Buffer.from('t'))}`,
        );
        const client = await db.open();
        const typed = (error) =>
          assert.ok(error.name === 'RethreadError' && error.code !== 'internal', `${attempt}: ${error.stack}`);
        const session = await client.session('s').catch(typed);
        await session?.messages().catch(typed);
        await session?.render({ dialect: 'anthropic', params: { model: 'm', max_tokens: 9 } }).catch(typed);
        await client.invocations().catch(typed);
        await client.sessions().catch(typed);
        assert.equal((await (await client.session('t')).messages()).items.length, 2 + 1);
        await client.close();
      }
    });
  });
}

describe('r48 row 6: a lock held elsewhere is busy, and free when its holder ends', () => {
  test('a frozen process on a SQLite file', async () => {
    const file = path.join(folder, 'frozen.sqlite');
    const database = new DatabaseSync(file);
    const session = await (await open({ store: sqlite(database) })).session('s');
    await session.append(turn('w', 0));
    const program = `const d = new (require('node:sqlite').DatabaseSync)(${JSON.stringify(file)}); d.exec('BEGIN IMMEDIATE'); console.log('held'); setInterval(() => {}, 1000)`;
    const holder = endsWithThisProcess(
      spawn(process.execPath, ['--no-warnings', '-e', program], { stdio: ['ignore', 'pipe', 'inherit'] }),
    );
    await once(holder.stdout, 'data');
    holder.kill('SIGSTOP');
    await assert.rejects(session.append(turn('w', 1)), { code: 'busy' });
    assert.equal((await session.messages()).items.length, 2 + 1);
    holder.kill('SIGKILL');
    await once(holder, 'exit');
    await session.append(turn('w', 2));
    await checkFound(await open({ store: sqlite(file) }), 's', ['w:0', 'w:2']);
  });

  test('a transaction on PostgreSQL, after the time that the application set or after ours', async () => {
    const admin = new pg.Client(server.place);
    await admin.connect();
    await admin.query('CREATE DATABASE held');
    const limit = async () => {
      const pool = new pg.Pool({ ...server.place, database: 'held' });
      const [[row]] = await postgres(pool).transaction([
        { sql: "SELECT current_setting('lock_timeout') AS value", params: [] },
      ]);
      await pool.end();
      return row.value;
    };
    assert.equal(await limit(), '5s');
    await admin.query("ALTER DATABASE held SET lock_timeout = '300ms'");
    assert.equal(await limit(), '300ms');
    await admin.query('ALTER DATABASE held RESET lock_timeout');
    await admin.end();
    const pool = new pg.Pool({ ...server.place, database: 'held', max: 3 });
    const session = await (await open({ store: postgres(pool) })).session('s');
    await session.append(turn('w', 0));
    const holder = await pool.connect();
    await holder.query('BEGIN; SELECT * FROM rethread_heads FOR UPDATE');
    await assert.rejects(session.append(turn('w', 1)), { code: 'busy' });
    assert.equal((await session.messages()).items.length, 2 + 1);
    await holder.query('ROLLBACK');
    holder.release();
    await session.append(turn('w', 2));
    await checkFound(await open({ store: postgres(pool) }), 's', ['w:0', 'w:2']);
    await pool.end();
  });
});

describe('r48 row 3: a full disk', () => {
  /** Appends until the disk is full, then frees it. */
  const fillsUp = async (disk, megabytes, openStore) => {
    disk.fill(megabytes);
    const client = await openStore();
    const session = await client.session('s');
    const acknowledged = [];
    const full = [];
    for (let number = 0; full.length < 3; number += 1) {
      const [question, answer] = turn('w', number);
      answer.parts.push({ type: 'text', text: randomBytes(15_000 + (number % 7) * 2000).toString('base64') });
      await session.append([question, answer]).then(
        () => acknowledged.push(`w:${number}`),
        (error) => full.push(error),
      );
      assert.ok(number < 5000, 'the disk does not fill up');
    }
    for (const error of full) assert.equal(error.code, 'quota_exceeded', error.message);
    // What was acknowledged is there, by the same session and by another one, and a chat can be deleted.
    await checkFound(client, 's', acknowledged);
    disk.free();
    await session.append(turn('after', 0));
    await checkFound(await openStore(), 's', [...acknowledged, 'after:0']);
    console.log(`${acknowledged.length} turns before the disk was full`);
  };

  for (const store of ['node:sqlite', '@libsql/client']) {
    test(`under ${store}`, async () => {
      const disk = mountSmallDisk(6);
      const ends = [];
      try {
        const file = path.join(disk.folder, 'chat.sqlite');
        await fillsUp(disk, 4, async () => {
          const { driver, end } = await openDriver(store, file);
          ends.push(end);
          return open({ store: driver });
        });
        const check = new DatabaseSync(file);
        assert.deepEqual(
          check
            .prepare('PRAGMA integrity_check')
            .all()
            .map((row) => ({ ...row })),
          [{ integrity_check: 'ok' }],
        );
        check.close();
      } finally {
        for (const end of ends) await end();
        disk.unmount();
      }
    });
  }

  test('under a tablespace of PostgreSQL', async () => {
    const disk = mountSmallDisk(24, postgresAccount());
    const clients = [];
    try {
      const admin = new pg.Client(server.place);
      await admin.connect();
      await admin.query(`CREATE TABLESPACE small LOCATION '${disk.folder}'`);
      await admin.query('CREATE DATABASE small TABLESPACE small');
      await fillsUp(disk, 12, async () => {
        const pool = new pg.Pool({ ...server.place, database: 'small' });
        pool.on('error', () => {});
        clients.push(pool);
        return open({ store: postgres(pool) });
      });
      await Promise.all(clients.splice(0).map((pool) => pool.end()));
      await admin.query('DROP DATABASE small WITH (FORCE)');
      await admin.query('DROP TABLESPACE small');
      await admin.end();
    } finally {
      await Promise.all(clients.map((pool) => pool.end()));
      disk.unmount();
    }
  });
});
