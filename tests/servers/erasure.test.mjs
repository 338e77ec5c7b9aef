// r59: no byte of a SQLite database has an erased message.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, readdirSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { openDriver } from './drivers.mjs';

const turn = (at, mark) => [
  { role: 'user', content: `question ${at} ${mark}` },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'get', arguments: JSON.stringify({ mark }) } }],
  },
  { role: 'tool', tool_call_id: `c${at}`, content: `found ${mark}` },
  { role: 'assistant', content: `answer ${at}` },
];

const append = (session, messages) => session.append({ messages }, 'openai-chat');
const idsOf = async (session) => (await session.messages()).items.map(({ id }) => id);

test('r59 a log that another connection reads is named in the receipt', async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-erase-'));
  try {
    const file = path.join(folder, 'chats.db');
    const { driver, end } = await openDriver('node:sqlite', file);
    const client = await open({ store: driver });
    const session = await client.session('s');
    for (const at of [0, 1]) await append(session, turn(at, 'plain'));
    const reader = new DatabaseSync(file);
    reader.exec('BEGIN');
    reader.prepare('SELECT COUNT(*) FROM rethread_log').get();
    const [first, second] = await idsOf(session);
    const named = ({ unreached }) => unreached.some(({ what }) => what === 'overwritten_values');
    assert.ok(named(await session.deleteMessages([first])));
    reader.exec('COMMIT');
    reader.close();
    assert.ok(!named(await session.deleteMessages([second])));
    await client.close();
    await end?.();
  } finally {
    rmSync(folder, { recursive: true });
  }
});

for (const kind of ['node:sqlite', 'DatabaseSync', '@libsql/client'])
  test(`r59 no byte of a SQLite file has an erased message (${kind})`, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'rethread-erase-'));
    const files = () => readdirSync(folder).map((name) => readFileSync(path.join(folder, name)));
    const places = () => files().filter((bytes) => bytes.includes('SECRET')).length;
    try {
      const { driver, end } = await openDriver(kind, path.join(folder, 'chats.db'));
      const client = await open({ store: driver });
      const session = await client.session('s');
      const long = `SECRET ${'x'.repeat(30_000)}`;
      for (let at = 0; at < 12; at += 1)
        await append(session, turn(at, at === 4 ? long : at === 9 ? 'SECRET' : 'plain'));
      const ids = await idsOf(session);
      assert.ok(places() > 0);
      const receipt = await session.deleteMessages([12, 13, 27, 28].map((at) => ids[at]));
      assert.equal(receipt.invocations, 2);
      assert.equal(places(), 0);
      assert.ok(receipt.unreached.some(({ what }) => what === 'database'));
      await append(session, turn(12, 'plain'));
      await client.close();
      await end?.();
      assert.equal(places(), 0);
      const reopened = await openDriver(kind, path.join(folder, 'chats.db'));
      const again = await open({ store: reopened.driver });
      assert.equal((await idsOf(await again.session('s'))).length, ids.length - 4 + 3);
      await again.close();
      await reopened.end?.();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

for (const kind of ['node:sqlite', 'DatabaseSync', '@libsql/client'])
  test(`r59 what a process left that was killed before the checkpoint goes with the next write (${kind})`, async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'rethread-erase-'));
    const file = path.join(folder, 'chats.db');
    const places = () => readdirSync(folder).filter((name) => readFileSync(path.join(folder, name)).includes('SECRET'));
    try {
      const program = fileURLToPath(new URL('killed-erasure.mjs', import.meta.url));
      const child = spawn(process.execPath, [program, kind, file], { stdio: 'inherit' });
      const [, signal] = await once(child, 'exit');
      assert.equal(signal, 'SIGKILL');
      assert.deepEqual(places(), ['chats.db-wal'], 'the log has it, the database does not need to');
      const { driver, end } = await openDriver(kind, file);
      const client = await open({ store: driver });
      const session = await client.session('s');
      assert.equal((await idsOf(session)).length, 4, 'the erasure was stored');
      await append(session, [{ role: 'user', content: 'And now?' }]);
      assert.deepEqual(places(), []);
      await client.close();
      await end?.();
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
