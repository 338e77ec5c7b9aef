// assistant-ui's components and tree of messages over a session in IndexedDB, and its threads over the sessions.

import assert from 'node:assert/strict';
import { copyFileSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';
import { createStandIn } from '../stand-in/server.mjs';
import { blocksOf } from '../types/documents/blocks.mjs';
import { laneOf } from './page.mjs';

const here = (name) => fileURLToPath(new URL(name, import.meta.url));

/** The first example of docs/assistant-ui.md as a module. */
const example = {
  name: 'docs',
  setup({ onResolve, onLoad }) {
    onResolve({ filter: /^docs:/ }, ({ path: name }) => ({ path: name, namespace: 'docs' }));
    onLoad({ filter: /.*/, namespace: 'docs' }, () => {
      const [{ source }] = blocksOf(readFileSync(here('../../docs/assistant-ui.md'), 'utf8'));
      const contents = `const { threadModel } = globalThis;\n${source}\nexport { useThreads };`;
      return { contents, loader: 'js', resolveDir: here('.') };
    });
  },
};

let world;
before(async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-assistant-ui-'));
  await build({
    entryPoints: ['page', 'threads'].map((name) => here(`assistant-ui/${name}.jsx`)),
    plugins: [example],
    bundle: true,
    format: 'esm',
    jsx: 'automatic',
    outdir: folder,
    define: { 'process.env.NODE_ENV': '"development"' },
    logOverride: { 'ignored-bare-import': 'silent' },
  });
  for (const name of ['index', 'threads'])
    copyFileSync(here(`assistant-ui/${name}.html`), path.join(folder, `${name}.html`));
  const standIn = createStandIn();
  const browser = await launchBrowser();
  const server = await serve({ folders: { '/': folder, '/dist/': here('../../dist') }, handle: standIn.handle });
  world = {
    url: server.url,
    browser,
    async close() {
      await browser.close();
      standIn.state.dispose();
      await server.close();
      rmSync(folder, { recursive: true, force: true });
    },
  };
});
after(() => world?.close());

/** A context whose pages have time, for a machine with few and busy processors. */
async function newContext() {
  const context = await world.browser.newContext();
  context.setDefaultTimeout(90_000);
  return context;
}

/** A page of the lane, and what a person does there. */
async function visit(name) {
  const lane = laneOf(world.url, name);
  const context = await newContext();
  const complaints = [];
  const tab = async () => {
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(String(error?.stack ?? error)));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    await page.goto(`${world.url}/?lane=${name}`);
    await page.getByLabel('Question', { exact: true }).waitFor();
    return page;
  };
  return { lane, tab, complaints, page: await tab(), close: () => context.close() };
}

async function send(page, text) {
  await page.getByLabel('Question', { exact: true }).fill(text);
  await page.getByRole('button', { name: 'Send' }).click();
}

/** Waits until the page shows exactly these texts of messages. */
async function shows(page, texts) {
  const shown = () => page.locator('.user > p, .assistant > p:not(.call)').allInnerTexts();
  const end = Date.now() + 90_000;
  while (JSON.stringify(await shown()) !== JSON.stringify(texts)) {
    if (Date.now() > end) assert.deepEqual(await shown(), texts);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

const place = (page, kind, at = 0) => page.locator(`.${kind}`).nth(at).locator('.place');
const button = (page, kind, name, at = 0) => page.locator(`.${kind}`).nth(at).getByRole('button', { name });

test('r57 a page with assistant-ui edits and regenerates over IndexedDB', async () => {
  const { page, lane, tab, complaints, close } = await visit('assistant-ui-edits');
  await lane.script(['One.', 'Two.', 'Another two.', 'Edited.', 'More.'].map((text) => ({ text })));
  await send(page, 'First?');
  await shows(page, ['First?', 'One.']);
  await send(page, 'Second?');
  await shows(page, ['First?', 'One.', 'Second?', 'Two.']);

  await button(page, 'assistant', 'Regenerate', 1).click();
  await shows(page, ['First?', 'One.', 'Second?', 'Another two.']);
  await place(page, 'assistant', 1).getByText('2 / 2').waitFor();

  await button(page, 'user', 'Edit').click();
  await page.getByLabel('Edited question').fill('First, edited?');
  await page.getByRole('button', { name: 'Ask' }).click();
  await shows(page, ['First, edited?', 'Edited.']);
  await place(page, 'user').getByText('2 / 2').waitFor();

  // The branch that was edited.
  await button(page, 'user', 'Previous').click();
  await shows(page, ['First?', 'One.', 'Second?', 'Two.']);
  await place(page, 'user').getByText('1 / 2').waitFor();
  await place(page, 'assistant', 1).getByText('1 / 2').waitFor();
  await button(page, 'assistant', 'Next', 1).click();
  await shows(page, ['First?', 'One.', 'Second?', 'Another two.']);
  await place(page, 'assistant', 1).getByText('2 / 2').waitFor();

  // What is shown after a reload is stored, and the next question continues the branch that is shown.
  await page.close();
  const again = await tab();
  await shows(again, ['First?', 'One.', 'Second?', 'Another two.']);
  await place(again, 'user').getByText('1 / 2').waitFor();
  await send(again, 'Third?');
  await shows(again, ['First?', 'One.', 'Second?', 'Another two.', 'Third?', 'More.']);
  const { body } = (await lane.requests()).at(-1);
  assert.deepEqual(
    body.messages.map(({ content }) => content),
    ['First?', 'One.', 'Second?', 'Another two.', 'Third?'],
  );
  assert.equal(await again.evaluate(async () => (await session.branches()).length), 3);
  assert.deepEqual(complaints, []);
  await close();
});

test('r57 a page with assistant-ui approves a call after a reload', async () => {
  const { page, lane, tab, complaints, close } = await visit('assistant-ui-approves');
  await lane.script([{ calls: [{ name: 'post_note', arguments: { note: 'hi' } }] }, { text: 'Posted.' }]);
  await send(page, 'Post it.');
  await page.getByRole('button', { name: 'Approve' }).waitFor();
  // It is shown a moment before it is stored.
  const waits = async () => (await session.pendingRuns())[0]?.openCalls[0]?.state === 'awaiting_approval';
  while (!(await page.evaluate(waits))) await new Promise((resolve) => setTimeout(resolve, 20));
  await page.close();
  const again = await tab();
  await again.getByRole('button', { name: 'Approve' }).click();
  await shows(again, ['Post it.', 'Posted.']);
  assert.deepEqual(await again.evaluate(() => noted), ['hi']);
  assert.deepEqual(complaints, []);
  await close();
});

test('r57 a page with assistant-ui stops an answer, and the next question leaves it out', async () => {
  const { page, lane, complaints, close } = await visit('assistant-ui-stops');
  await lane.script([{ text: 'This is long.', gate: 'stopped', atPiece: 2 }, { text: 'Fresh.' }]);
  await send(page, 'Tell me.');
  await page.getByText('This is').waitFor();
  await page.getByRole('button', { name: 'Stop' }).click();
  await page.getByRole('button', { name: 'Send' }).waitFor();
  await send(page, 'Once more.');
  await shows(page, ['Once more.', 'Fresh.']);
  assert.deepEqual(complaints, []);
  await close();
});

test('r53 the threads of docs/assistant-ui.md live over a reload, with branches, and two tabs lose nothing', async () => {
  const context = await newContext();
  const complaints = [];
  const tab = async () => {
    const page = await context.newPage();
    page.on('pageerror', (error) => complaints.push(String(error?.stack ?? error)));
    page.on('console', (message) => message.type() === 'error' && complaints.push(message.text()));
    await page.goto(`${world.url}/threads.html`);
    await page.waitForFunction(() => globalThis.runtime && !runtime.threads.getState().isLoading);
    return page;
  };
  const texts = (page) =>
    page.evaluate(() =>
      runtime.thread.getState().messages.map(({ content }) => content.map(({ text }) => text).join()),
    );
  const showing = async (page, expected) => {
    const end = Date.now() + 90_000;
    while (JSON.stringify(await texts(page)) !== JSON.stringify(expected)) {
      if (Date.now() > end) assert.deepEqual(await texts(page), expected);
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await page.waitForFunction(() => !runtime.thread.getState().isRunning);
  };
  /** Waits until the branches of a thread have so many messages together: an answer is shown before it is stored. */
  const stores = async (page, thread, count) => {
    const stored = () =>
      page.evaluate(async (name) => {
        const session = await store.session(name);
        await session.refresh();
        return (await session.branches()).reduce((sum, { messageCount }) => sum + messageCount, 0);
      }, thread);
    const end = Date.now() + 90_000;
    while ((await stored()) !== count) {
      if (Date.now() > end) assert.equal(await stored(), count);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const threads = (page) => page.evaluate(() => runtime.threads.getState().threadIds);

  const page = await tab();
  await page.evaluate(() => runtime.thread.append('First?'));
  await showing(page, ['First?', 'Answer to First?']);
  await page.evaluate(() => runtime.thread.getMessageByIndex(1).reload());
  await showing(page, ['First?', 'Answer to First?']);
  const [id] = await threads(page);
  await stores(page, id, 4);
  await page.evaluate(() => runtime.threads.mainItem.rename('A title'));
  await page.evaluate(() => runtime.threads.switchToNewThread());
  await showing(page, []);
  await page.evaluate(() => runtime.thread.append('Other?'));
  await showing(page, ['Other?', 'Answer to Other?']);
  await stores(
    page,
    (await threads(page)).find((other) => other !== id),
    2,
  );
  await page.close();

  const tabs = [await tab(), await tab()];
  for (const again of tabs) {
    assert.equal((await threads(again)).length, 2);
    await again.evaluate((thread) => runtime.threads.switchToThread(thread), id);
    await showing(again, ['First?', 'Answer to First?']);
  }
  const [one, two] = tabs;
  assert.deepEqual(
    await one.evaluate(() => [
      runtime.threads.mainItem.getState().title,
      runtime.thread.getMessageByIndex(1).getState().branchCount,
    ]),
    ['A title', 2],
  );
  await Promise.all([
    one.evaluate(() => runtime.thread.append('Here?')),
    two.evaluate(() => runtime.thread.append('There?')),
  ]);
  await showing(one, ['First?', 'Answer to First?', 'Here?', 'Answer to Here?']);
  await showing(two, ['First?', 'Answer to First?', 'There?', 'Answer to There?']);
  await stores(one, id, 10);
  await one.close();
  await two.close();

  const last = await tab();
  await last.evaluate((thread) => runtime.threads.switchToThread(thread), id);
  await last.waitForFunction(() => runtime.thread.getState().messages.length === 4);
  const stored = await last.evaluate(() =>
    runtime.thread.export().messages.map(({ message }) => message.content[0].text),
  );
  for (const text of ['Here?', 'There?', 'Answer to Here?', 'Answer to There?'])
    assert.equal(stored.filter((other) => other === text).length, 1, text);
  assert.equal(stored.length, 7);
  await last.evaluate(() => runtime.threads.mainItem.archive());
  await last.waitForFunction(() => runtime.threads.getState().archivedThreadIds.length === 1);
  assert.deepEqual(complaints, []);
  await context.close();
});
