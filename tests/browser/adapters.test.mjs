// r53: the adapters in a page with the libraries themselves; a reload in the middle of a tool.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-adapters-'));
let browser;
let server;
before(async () => {
  const options = { bundle: true, format: 'esm', logOverride: { 'ignored-bare-import': 'silent' } };
  await build({ ...options, entryPoints: [here('adapters/page.js')], outdir: folder });
  copyFileSync(here('adapters/index.html'), path.join(folder, 'index.html'));
  server = await serve({ folders: { '/': folder, '/dist/': here('../../dist') } });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

test('r53 in a page that is reloaded in a tool, the run goes on, and the chat of LangChain is there', async () => {
  const page = await browser.newPage();
  page.setDefaultTimeout(90_000); // for a machine with few and busy processors
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  const load = async () => {
    await page.goto(`${server.url}/`);
    await page.waitForFunction(() => globalThis.isReady);
  };
  await load();
  await page.evaluate(() => globalThis.addMessages());
  assert.deepEqual(await page.evaluate(() => globalThis.killedInTool()), ['quick', 'slow']);

  await load();
  const { finalOutput, ran, items } = await page.evaluate(() => globalThis.runAgent([]));
  assert.equal(finalOutput, 'Done.');
  assert.deepEqual(ran, []);
  assert.deepEqual(
    items.map(({ callId, type }) => callId ?? type),
    ['message', 'quick', 'slow', 'quick', 'slow', 'message'],
  );
  assert.equal(items[3].output.text, 'quick result');
  assert.match(items[4].output.text, /^Interrupted: /);
  assert.deepEqual(await page.evaluate(() => globalThis.messages()), ['human: Hi', 'ai: a', 'tool: seen']);
  assert.deepEqual(complaints, []);
});
