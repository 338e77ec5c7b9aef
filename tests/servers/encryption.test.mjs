// r80: encryption at rest over SQLite: no byte of the database has a text of a chat.

import assert from 'node:assert/strict';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { after, describe, test } from 'node:test';
import { open } from 'rethread';
import { sqlite } from 'rethread/sqlite';

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-encryption-'));
after(() => rmSync(folder, { recursive: true, force: true }));

const newKey = (usages = ['encrypt', 'decrypt']) =>
  crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, usages);
let files = 0;
const newFile = () => {
  files += 1;
  return path.join(folder, `${files}.sqlite`);
};
/** Every byte of the database and of its journal. */
const bytesOf = (file) =>
  Buffer.concat(
    readdirSync(folder)
      .filter((name) => name.startsWith(path.basename(file)))
      .map((name) => readFileSync(path.join(folder, name))),
  );

const provider = { dialect: 'openai-chat', url: 'http://127.0.0.1:1/v1/chat/completions', params: { model: 'm' } };
const SECRET = 'Lisbon in confidence';
const chat = (text) => ({
  messages: [
    { role: 'user', content: `${SECRET}: ${text}` },
    {
      role: 'assistant',
      content: null,
      tool_calls: [
        { id: 'c1', type: 'function', function: { name: 'look', arguments: JSON.stringify({ at: SECRET }) } },
      ],
    },
    { role: 'tool', tool_call_id: 'c1', content: `${SECRET}, 18 degrees` },
  ],
});
const textsOf = async (session) => JSON.stringify((await session.messages({ limit: 1000 })).items);

async function fill(store) {
  const session = await store.session('visible');
  await session.append(chat('one'), 'openai-chat');
  await session.update({ title: `${SECRET} title` });
  await session.run({ provider, input: `${SECRET} question` });
  return session;
}

for (const usages of [
  ['encrypt', 'decrypt'],
  ['wrapKey', 'unwrapKey'],
]) {
  describe(`a key for ${usages.join(' and ')}`, () => {
    test('r80 no byte has a text of a chat, and all of it is read again', async () => {
      const file = newFile();
      const key = await newKey(usages);
      const store = await open({ store: sqlite(file), encryption: { key } });
      await fill(store);
      await store.close();
      const bytes = bytesOf(file);
      assert.ok(bytes.includes('visible') && bytes.includes('look'), 'the search finds what stays readable');
      assert.ok(!bytes.includes(SECRET));

      const again = await open({ store: sqlite(file), encryption: { key } });
      const [summary] = (await again.sessions()).items;
      assert.deepEqual([summary.id, summary.title], ['visible', `${SECRET} title`]);
      const session = await again.session('visible');
      assert.match(await textsOf(session), /Lisbon in confidence: one/);
      const { items } = await again.invocations({ tool: 'look', payload: true });
      assert.match(JSON.stringify(items), /Lisbon in confidence, 18 degrees/);
      assert.equal((await again.pendingRuns()).length, 1);
      // The user's own copy is not encrypted.
      assert.match(await again.exportSession('visible'), /Lisbon in confidence: one/);
      await again.close();
    });
  });
}

test('r80 a wrong key, or none, is `wrong_key` and changes no byte', async () => {
  const file = newFile();
  const key = await newKey();
  const first = await open({ store: sqlite(file), encryption: { key } });
  await (await first.session('s')).append(chat('one'), 'openai-chat');
  await first.close();
  const before = new DatabaseSync(file).prepare('SELECT * FROM rethread_log').all();
  for (const encryption of [{ key: await newKey() }, undefined]) {
    const store = await open({ store: sqlite(file), encryption });
    for (const work of [
      () => store.session('s'),
      () => store.sessions(),
      () => store.exportSession('s'),
      () => store.invocations({ payload: true }),
    ])
      await assert.rejects(work, { code: 'wrong_key' }, String(work));
    await store.close();
  }
  assert.deepEqual(new DatabaseSync(file).prepare('SELECT * FROM rethread_log').all(), before);
  const store = await open({ store: sqlite(file), encryption: { key } });
  assert.match(await textsOf(await store.session('s')), /one/);
  await store.close();
});

test('r80 after a rotation the new key alone opens what the old one wrapped', async () => {
  const file = newFile();
  const [old, key] = [await newKey(), await newKey(['wrapKey', 'unwrapKey'])];
  const write = async (encryption, text) => {
    const store = await open({ store: sqlite(file), encryption });
    const session = await store.session('s');
    if (text) await session.append(chat(text), 'openai-chat');
    const texts = await textsOf(session);
    await store.close();
    return texts;
  };
  await write({ key: old }, 'one');
  assert.match(await write({ key, previous: [old] }, 'two'), /one.*two/);
  assert.match(await write({ key }), /one.*two/);
  await assert.rejects(write({ key: old }), { code: 'wrong_key' });
});

test('r80 the keys of all sessions are rotated in the background, or at once when asked', async () => {
  for (const isAsked of [true, false]) {
    const file = newFile();
    const [old, key] = [await newKey(), await newKey(['wrapKey', 'unwrapKey'])];
    const ids = ['a', 'b', 'c'];
    const before = await open({ store: sqlite(file), encryption: { key: old } });
    for (const id of ids) await (await before.session(id)).append(chat(`text of ${id}`), 'openai-chat');
    await before.close();

    const both = await open({ store: sqlite(file), encryption: { key, previous: [old] } });
    if (isAsked) assert.deepEqual(await both.rotateKeys(), { rotated: 3, failed: [] });
    else {
      // The new key alone opens no session until its key is wrapped anew.
      const isRotated = async () => {
        const other = await open({ store: sqlite(file), encryption: { key } });
        const opened = await Promise.allSettled(ids.map((id) => other.session(id)));
        await other.close();
        return opened.every(({ status }) => status === 'fulfilled');
      };
      assert.ok(!(await isRotated()));
      while (!(await isRotated())) await new Promise((resolve) => setTimeout(resolve, 100));
    }
    await both.close();

    const after = await open({ store: sqlite(file), encryption: { key } });
    for (const id of ids) assert.match(await textsOf(await after.session(id)), new RegExp(`text of ${id}`));
    await after.close();
  }
});

test('r80 a session that began without a key is encrypted by its next writes', async () => {
  const file = newFile();
  const plain = await open({ store: sqlite(file) });
  await (await plain.session('s')).append({ messages: [{ role: 'user', content: 'in the open' }] }, 'openai-chat');
  await plain.close();
  const key = await newKey();
  for (const text of ['later', undefined]) {
    const store = await open({ store: sqlite(file), encryption: { key } });
    const session = await store.session('s');
    if (text) await session.append({ messages: [{ role: 'user', content: SECRET }] }, 'openai-chat');
    assert.match(await textsOf(session), /in the open.*Lisbon in confidence/);
    await store.close();
  }
  assert.ok(!bytesOf(file).includes(SECRET));
});

test('r80 a record that was moved to another session is skipped, and the rest is shown', async () => {
  const file = newFile();
  const key = await newKey();
  const store = await open({ store: sqlite(file), encryption: { key } });
  for (const id of ['s', 't'])
    for (const text of ['one', 'two', 'three'])
      await (await store.session(id)).append({ messages: [{ role: 'user', content: `${id} ${text}` }] }, 'openai-chat');
  await store.close();
  const database = new DatabaseSync(file);
  const moved = database
    .prepare(
      "UPDATE rethread_log SET value = (SELECT value FROM rethread_log WHERE session = CAST('t' AS BLOB) AND key = 1) WHERE session = CAST('s' AS BLOB) AND key = 1",
    )
    .run();
  assert.equal(moved.changes, 1);
  database.close();
  const warnings = [];
  const again = await open({
    store: sqlite(file),
    encryption: { key },
    onWarning: (warning) => warnings.push(warning),
  });
  const texts = await textsOf(await again.session('s'));
  assert.ok(texts.includes('s one') && texts.includes('s three') && !texts.includes('two'), texts);
  assert.ok(warnings.length > 0);
  await again.close();
});

test('r80 a failure of the platform is no wrong key and no damage, and the next attempt succeeds', async (t) => {
  const file = newFile();
  const [old, key] = [await newKey(), await newKey()];
  const { subtle } = crypto;
  const [encrypt, decrypt] = [subtle.encrypt.bind(subtle), subtle.decrypt.bind(subtle)];
  let fails = () => false;
  const failing = (method) => async (how, by, bytes) => {
    if (fails(by)) throw new DOMException('the device is busy', 'OperationError');
    return method(how, by, bytes);
  };
  t.mock.method(subtle, 'encrypt', failing(encrypt));
  const first = await open({ store: sqlite(file), encryption: { key: old } });
  const session = await first.session('s');
  for (const text of ['one', 'two']) {
    fails = () => true;
    await assert.rejects(session.append(chat(text), 'openai-chat'), {
      code: 'store_error',
      message: /encryption failed, and nothing was written: .*the device is busy/,
    });
    fails = () => false;
    await session.append(chat(text), 'openai-chat');
  }
  await first.close();
  // The key that has just been wrapped anew cannot be unwrapped.
  t.mock.method(subtle, 'encrypt', encrypt);
  t.mock.method(subtle, 'decrypt', failing(decrypt));
  let unwraps = 0;
  fails = (by) => {
    unwraps += by === key;
    return by === key && unwraps === 2;
  };
  const second = await open({ store: sqlite(file), encryption: { key, previous: [old] } });
  assert.match(await textsOf(await second.session('s')), /one.*two/);
  assert.ok(unwraps > 2);
  await second.close();
});

test('r80 wrong options are `config_invalid`', async () => {
  const hmac = await crypto.subtle.generateKey({ name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
  const signer = await newKey(['encrypt']);
  const key = await newKey();
  for (const encryption of [
    null,
    7,
    {},
    { key: 'secret' },
    { key: hmac },
    { key: signer },
    { key, previous: key },
    { key, keys: [] },
  ])
    await assert.rejects(open({ store: 'memory', encryption }), { code: 'config_invalid' });
});
