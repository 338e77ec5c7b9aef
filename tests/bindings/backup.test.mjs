// All sessions of a store as a stream, and back into a store of another kind (R59).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const LONG = process.env.RETHREAD_LONG === '1';
const SESSIONS = LONG ? 10_000 : 300;

async function filled(count, store = 'memory') {
  const client = await open({ store });
  for (let at = 0; at < count; at += 1) {
    const session = await client.session(`chat-${String(at).padStart(5, '0')}`, { title: `Chat ${at} 😀` });
    await session.append([{ role: 'user', parts: [{ type: 'text', text: `Question ${at} – “é” 😀` }] }]);
  }
  return client;
}

async function textOf(stream) {
  const chunks = [];
  for await (const chunk of stream) chunks.push(chunk);
  return chunks.join('');
}

/** The text in chunks of a size, as strings or as bytes. */
async function* inChunks(data, size) {
  for (let at = 0; at < data.length; at += size) yield data.slice(at, at + size);
}

test('r59 a backup restores every session in a store of another kind, and back, equal', async () => {
  const source = await filled(SESSIONS, new MemoryLogStore());
  const backup = await textOf(source.backup());
  const target = await open({ store: 'memory' });
  const restored = await target.restoreBackup(source.backup());
  assert.deepEqual(restored, { sessions: SESSIONS, skipped: 0, report: [] });
  assert.equal(await textOf(target.backup()), backup);
  const back = await open({ store: new MemoryLogStore() });
  assert.equal((await back.restoreBackup(target.backup())).sessions, SESSIONS);
  assert.equal(await textOf(back.backup()), backup);
  for (const client of [source, target, back]) await client.close();
});

test('r59 text and bytes may be cut within a character', async () => {
  const source = await filled(3);
  const text = await textOf(source.backup());
  for (const data of [text, new TextEncoder().encode(text)]) {
    for (const size of [1, 7, 100_000]) {
      const target = await open({ store: 'memory' });
      const { sessions, report } = await target.restoreBackup(inChunks(data, size));
      assert.deepEqual([sessions, report], [3, []]);
      assert.equal(await textOf(target.backup()), text);
      await target.close();
    }
  }
  const target = await open({ store: 'memory' });
  const bytes = new Blob([text]).stream();
  assert.equal((await target.restoreBackup(bytes)).sessions, 3);
});

test('r59 a backup is read as it is asked for, ends with its store, and can be cancelled', async () => {
  const source = await filled(4);
  const reader = source.backup().getReader();
  assert.match((await reader.read()).value, /^\{"rethread":"backup"/);
  const first = (await reader.read()).value;
  assert.equal(JSON.parse(first.split('\n', 1)[0]).id, 'chat-00000');
  await source.deleteSession('chat-00001');
  assert.equal(JSON.parse((await reader.read()).value.split('\n', 1)[0]).id, 'chat-00002');
  await reader.cancel();
  const rest = await textOf(source.backup({ after: 'chat-00002' }));
  assert.match(rest, /"id":"chat-00003"/);
  assert.doesNotMatch(rest, /"id":"chat-0000[012]"/);
  await assert.rejects(textOf(source.backup({ after: 'chat-9' })), { code: 'not_found' });
  const open_ = source.backup().getReader();
  await open_.read();
  await source.close();
  await assert.rejects(open_.read(), { code: 'closed' });
  assert.throws(() => source.backup(), { code: 'closed' });
});

test('r59 what is no backup, and wrong options, are errors', async () => {
  const target = await open({ store: 'memory' });
  for (const wrong of [undefined, null, 7, 'text', {}, new Uint8Array(3)])
    await assert.rejects(target.restoreBackup(wrong), { code: 'invalid_input' });
  await assert.rejects(target.restoreBackup(inChunks('no backup', 4)), { code: 'invalid_input' });
  await assert.rejects(target.restoreBackup(inChunks([1, 2], 1)), { code: 'invalid_input' });
  await assert.rejects(target.restoreBackup(inChunks(Uint8Array.of(0xff, 0xfe), 1)), { code: 'invalid_input' });
  await assert.rejects(target.restoreBackup(inChunks('', 1), { onExisting: 'merge' }), { code: 'config_invalid' });
  assert.throws(() => target.backup({ before: 'x' }), { code: 'config_invalid' });
  const source = await filled(2);
  const text = await textOf(source.backup());
  const cutOff = await target.restoreBackup(inChunks(text.slice(0, -30), 50)).catch((error) => error);
  assert.deepEqual([cutOff.code, cutOff.details], ['invalid_input', { sessions: 2, skipped: 0, report: [] }]);
  let cancelled = 0;
  const endless = new ReadableStream({
    pull: (controller) => controller.enqueue('no backup\n'),
    cancel: () => {
      cancelled += 1;
    },
  });
  await assert.rejects(target.restoreBackup(endless), { code: 'invalid_input' });
  assert.equal(cancelled, 1, 'whoever writes would go on');
  const locked = source.backup();
  locked.getReader();
  await assert.rejects(target.restoreBackup(locked), { code: 'invalid_input' });
  // The error of a stream is that of the restore.
  const broken = new ReadableStream({
    pull(controller) {
      controller.error(new Error('the disk is gone'));
    },
  });
  await assert.rejects(target.restoreBackup(broken), /the disk is gone/);
});
