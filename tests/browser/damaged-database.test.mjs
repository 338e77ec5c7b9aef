// A database that Chromium deletes because a kill has cut its log. docs/stores.md, "Kills of Chromium", describes the
// defect.

import assert from 'node:assert/strict';
import { mkdtemp, readdir, rm, stat, truncate } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { launchBrowser } from '../../.ci/browser.mjs';
import { openWorld } from './page.mjs';

/** Cuts the last byte of the log of the site's database, as a kill in the middle of a write does. */
async function cutLog(profile) {
  const folder = path.join(profile, 'Default/IndexedDB');
  const logs = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.log'));
  assert.equal(logs.length, 1, `one LevelDB log, where Chromium keeps IndexedDB: ${logs}`);
  const log = path.join(folder, logs[0]);
  await truncate(log, (await stat(log)).size - 1);
}

test('r48 a database that Chromium deletes because it is damaged is reported once, also to a page without localStorage', async (t) => {
  const world = await openWorld();
  const profile = await mkdtemp(path.join(tmpdir(), 'rethread-damaged-'));
  t.after(async () => {
    await world.close();
    await rm(profile, { recursive: true, force: true, maxRetries: 5 });
  });

  /** Opens the store in a browser of its own, appends a message, and returns what the page has seen. */
  const visit = async (text) => {
    const context = await launchBrowser({ profile });
    const page = await world.page(context);
    const facts = await page.evaluate(async (text) => {
      // The mark of the database in localStorage is lost with a kill, too: Chromium writes it seconds later.
      localStorage.clear();
      const error = await caught(() => rethread.open({ name: 'damaged' }));
      const client = await rethread.open({ name: 'damaged' });
      const session = await client.session('s');
      const found = (await session.messages({ limit: 100 })).items.map(({ parts }) => parts[0].text);
      await session.append({ messages: [{ role: 'user', content: text }] }, 'openai-chat');
      localStorage.clear();
      return { error: error?.code ?? 'none', message: error?.message, found };
    }, text);
    await context.close();
    return facts;
  };

  assert.deepEqual((await visit('one')).found, []);
  await cutLog(profile);
  assert.equal((await visit('two')).error, 'none', 'Chromium reads the log up to the cut');
  const { error, message, found } = await visit('three');
  assert.deepEqual([error, found], ['evicted', []]);
  assert.match(message, /found this site's database damaged and removed it \(.+\), and the chats in it are gone/);
  assert.deepEqual((await visit('four')).found, ['three']);
});
