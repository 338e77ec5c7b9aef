// r18 r47: a Durable Object in workerd: concurrent requests, several stores in one object, and a new instance after an
// eviction.

import assert from 'node:assert/strict';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { askWorkerd, startWorkerd } from '../workerd.mjs';
import { assertNothingLost, changesOfWriter } from './texts.mjs';

const APPENDS = 200;
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-object-'));
let worker;
before(() => {
  worker = startWorkerd(
    fileURLToPath(new URL('../..', import.meta.url)),
    fileURLToPath(new URL('object.js', import.meta.url)),
    {
      compatibilityFlags: ['nodejs_compat'],
      durableObjects: { CHATS: { className: 'Chat', useSQLite: true } },
      durableObjectsPersist: folder,
    },
  );
});
after(async () => {
  await worker.dispose();
  rmSync(folder, { recursive: true, force: true });
});

const ask = (address) => askWorkerd(worker, address);

test('r47 two concurrent requests lose and duplicate nothing, each in its order', async (context) => {
  await Promise.all([0, 1].map((writer) => ask(`append?writer=${writer}&count=${APPENDS}`)));
  const texts = await ask('texts?session=shared');
  assertNothingLost(texts, 2, APPENDS);
  context.diagnostic(
    JSON.stringify({
      store: 'durableObject',
      writers: 2,
      appends: texts.length,
      changesOfWriter: changesOfWriter(texts),
    }),
  );
});

test('r18 a run is busy in its instance, and a new instance of the object resumes it at once', async () => {
  const { id, states, resumed } = await ask('begin');
  assert.deepEqual([states, resumed], [['live'], 'busy']);
  assert.match(await ask('evict'), /evicted/);
  assert.deepEqual(await ask(`resume?id=${encodeURIComponent(id)}`), { before: ['interrupted'], status: 'finished' });
  assert.deepEqual(await ask('texts?session=run'), ['q', 'after the eviction']);
});

test('r47 a store is notified of what another store of the object appends and deletes', async () => {
  assert.deepEqual(await ask('hear'), {
    texts: ['hello'],
    changes: [
      { session: 'heard', revision: 1 },
      { session: 'heard', revision: 0, deleted: true },
    ],
  });
});
