// r46 r47 r48: rethread/sqlite on better-sqlite3. In the Node that it was compiled for, which may lack node:sqlite.

import assert from 'node:assert/strict';
import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';
import { readFrozenChat } from '../frozen/frozen-chat.mjs';
import { checkFound } from '../servers/acknowledged.mjs';
import { endsWithThisProcess } from '../servers/child-processes.mjs';
import { assertConstant, LENGTHS, TURNS_AT_ONCE } from '../servers/constant-costs.mjs';
import { assertAllPassed, chat, startTesting } from '../servers/testing.mjs';
import { counted, turnCosts } from '../servers/turn-costs.mjs';

const Database = createRequire(path.join(process.env.BETTER_SQLITE3, 'index.js'))('better-sqlite3');
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-better-sqlite3-'));
const connections = [];
const connect = (name, options) => {
  const database = new Database(path.join(folder, name), { timeout: 10_000, ...options });
  connections.push(database);
  return database;
};
after(() => {
  for (const database of connections) database.close();
  rmSync(folder, { recursive: true, force: true });
});

let testing;
before(async () => {
  testing = await startTesting();
});
const question = [{ role: 'user', parts: [{ type: 'text', text: 'q' }] }];

test('r46 it conforms', async () => {
  assertAllPassed(await testing.checkStore(() => sqlite(connect('suite')), 'suite'));
});

test('a chat is written and read', async () => {
  assert.equal(await chat(open, () => sqlite(connect('chat'))), 'sqlite');
});

test('r47 two processes lose nothing', async () => {
  connect('processes').pragma('journal_mode = WAL');
  const writer = fileURLToPath(new URL('writer.mjs', import.meta.url));
  await Promise.all(
    [0, 1].map((number) =>
      promisify(execFile)(process.execPath, [writer, path.join(folder, 'processes'), `${number}`]),
    ),
  );
  await testing.nothingLost(sqlite(connect('processes')), 's', 200);
});

test('r48 SIGKILL of the process: acknowledged appends are found', async () => {
  const program = fileURLToPath(new URL('kill-writer.mjs', import.meta.url));
  const acknowledged = [];
  const doubtful = [];
  const kills = process.env.RETHREAD_LONG ? 20 : 2;
  for (let kill = 0; kill < kills; kill += 1) {
    const child = endsWithThisProcess(
      spawn(process.execPath, [program, path.join(folder, 'killed'), `kill${kill}`], {
        stdio: ['ignore', 'pipe', 'inherit'],
      }),
    );
    const exited = once(child, 'exit');
    const appends = 1 + Math.floor(Math.random() * 200);
    let printed = '';
    for await (const chunk of child.stdout) {
      printed += chunk;
      if (printed.split('\n').length > appends) child.kill('SIGKILL');
    }
    const [, signal] = await exited;
    assert.equal(signal, 'SIGKILL', 'the writer ended by itself');
    const turns = printed.split('\n').filter((line) => line.includes(':'));
    acknowledged.push(...turns);
    doubtful.push(`kill${kill}:${turns.length}`);
    await checkFound(await open({ store: sqlite(connect('killed')) }), 's', acknowledged, doubtful);
  }
  console.log(`${kills} kills, ${acknowledged.length} turns acknowledged, all found`);
});

test('r48 a closed, a read-only and a busy database', async () => {
  const database = connect('refused');
  const session = await (await open({ store: sqlite(database) })).session('s');
  await session.append(question);

  const other = connect('refused', { timeout: 0 });
  const waiting = await (await open({ store: sqlite(other) })).session('s');
  database.exec('BEGIN IMMEDIATE');
  await assert.rejects(waiting.append(question), { code: 'busy', message: /sqlite/ });
  database.exec('ROLLBACK');

  const reading = await (await open({ store: sqlite(connect('refused', { readonly: true })) })).session('s');
  assert.equal((await reading.messages()).items.length, 1);
  await assert.rejects(reading.append(question), { code: 'store_error', message: /sqlite.*readonly/ });

  database.close();
  await assert.rejects(session.append(question), { code: 'closed', message: /sqlite/ });
  await assert.rejects(open({ store: sqlite(database) }), { code: 'closed', message: /sqlite/ });
  assert.equal((await reading.messages()).items.length, 1);
});

test('r46 a turn costs the same at any length', async () => {
  assertConstant(await turnCosts(open, counted(sqlite(connect('costs'))), LENGTHS, TURNS_AT_ONCE));
});

test('r48 what version 1 wrote is read; what a newer one or somebody else wrote is left alone', async () => {
  const frozen = (name) => new URL(`../frozen/${name}`, import.meta.url);
  copyFileSync(frozen('chat-1.sqlite'), path.join(folder, 'old'));
  copyFileSync(frozen('chat-1.sqlite'), path.join(folder, 'newer'));
  const found = await readFrozenChat(open, { store: sqlite(connect('old')) });
  assert.deepEqual(found, JSON.parse(readFileSync(frozen('chat-1.expected.json'), 'utf8')));
  for (const [name, sql, code] of [
    ['newer', 'UPDATE rethread_schema SET version = 99', 'unsupported_version'],
    ['foreign', 'CREATE TABLE rethread_log (id INTEGER)', 'config_invalid'],
  ]) {
    const database = connect(name);
    database.exec(sql);
    const content = readFileSync(path.join(folder, name));
    await assert.rejects(open({ store: sqlite(database) }), {
      name: 'RethreadError',
      code,
      message: /the sqlite store/,
    });
    assert.deepEqual(readFileSync(path.join(folder, name)), content);
  }
});

test('durability', async () => {
  const database = connect('durability');
  database.pragma('synchronous = OFF');
  await (await open({ store: sqlite(database), durability: 'strict' })).close();
  assert.equal(database.pragma('synchronous', { simple: true }), 2);
});
