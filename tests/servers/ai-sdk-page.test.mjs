// r53: a page with React and `useChat` in Chromium, whose server is `chatHandler` over SQLite.

import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';
import * as ai from 'ai-7';
import { MockLanguageModelV4 } from 'ai-7/test';
import { build } from 'esbuild';
import { open } from 'rethread';
import { chatHandler, loadUIMessages } from 'rethread/ai-sdk';
import { sqlite } from 'rethread/sqlite';
import { z } from 'zod';
import { launchBrowser } from '../../.ci/browser.mjs';
import { shown, until } from '../judges/ai-sdk-chat.mjs';
import { HANGS, called, modelOf, said } from '../judges/ai-sdk-models.mjs';
import { serveRequests } from './chat-server.mjs';

const HTML = `<!doctype html><html lang="en"><meta charset="utf-8"><title>Chat</title><link rel="icon" href="data:,">
<div id="root"></div><script type="module" src="/page.js"></script></html>`;

const folder = mkdtempSync(path.join(tmpdir(), 'rethread-ai-sdk-'));
let browser;
let server;
let store;
after(async () => {
  await browser?.close();
  await server?.close();
  rmSync(folder, { recursive: true, force: true });
});

/** The page with the packages of the folder AI_SDK_REACT. */
async function pageCode() {
  const contents = readFileSync(new URL('ai-sdk-page/page.jsx', import.meta.url), 'utf8');
  const { outputFiles } = await build({
    stdin: { contents, loader: 'jsx', resolveDir: process.env.AI_SDK_REACT },
    bundle: true,
    write: false,
    format: 'esm',
    jsx: 'automatic',
    define: { 'process.env.NODE_ENV': '"development"' },
  });
  return outputFiles[0].text;
}

/** What a test lets happen later. */
function gate() {
  let open;
  const passed = new Promise((resolve) => (open = resolve));
  return { passed, open };
}
const [looked, spoken] = [gate(), gate()];
const hel = [
  { type: 'text-start', id: 't' },
  { type: 'text-delta', id: 't', delta: 'Hel' },
];
const answers = [
  called(['c1', 'look']),
  said('Seen.'),
  [...hel, spoken.passed, { type: 'text-delta', id: 't', delta: 'lo' }, ...said('').slice(2)],
  [...hel, HANGS],
  said('Again.'),
];

before(async () => {
  store = await open({ store: sqlite(path.join(folder, 'chats.sqlite')) });
  const { model } = modelOf(MockLanguageModelV4, answers);
  const look = { inputSchema: z.object({}), execute: () => looked.passed };
  const handler = chatHandler({
    session: (id) => store.session(id),
    tools: { look },
    answer: async ({ messages, tools, abortSignal }) =>
      ai.streamText({
        model,
        tools,
        abortSignal,
        messages: await ai.convertToModelMessages(messages, { tools }),
        stopWhen: ai.stepCountIs(5),
        onError: () => {},
      }),
  });
  const code = await pageCode();
  const typed = (body, type) => new Response(body, { headers: { 'content-type': `${type}; charset=utf-8` } });
  server = await serveRequests(async (request) => {
    const { pathname } = new URL(request.url);
    if (pathname === '/') return typed(HTML, 'text/html');
    if (pathname === '/page.js') return typed(code, 'text/javascript');
    if (pathname === '/messages/chat') return Response.json(await loadUIMessages(await store.session('chat')));
    return handler(request);
  });
  browser = await launchBrowser();
});

/** The messages that a page shows, by id, and what it is doing. */
const seen = (page) =>
  page.evaluate(() => ({
    status: document.querySelector('main')?.dataset.status,
    ids: [...document.querySelectorAll('article')].map(({ dataset }) => dataset.id),
    texts: [...document.querySelectorAll('article')].map((article) =>
      [article.dataset.role, ...[...article.querySelectorAll('.part')].map(({ textContent }) => textContent)].join(
        ': ',
      ),
    ),
  }));

test('r53 a page with React and useChat asks, calls a tool, is reloaded in an answer, stops and regenerates, and shows what is stored', {
  timeout: 60_000,
}, async () => {
  const page = await browser.newPage();
  const complaints = [];
  page.on('pageerror', (error) => complaints.push(String(error)));
  page.on('console', (message) => ['error', 'warning'].includes(message.type()) && complaints.push(message.text()));
  const shows = (last, status) =>
    until(async () => {
      const now = await seen(page);
      return now.texts.at(-1) === last && now.status === status;
    });
  const ask = async (text) => {
    await page.getByLabel('Question').fill(text);
    await page.getByRole('button', { name: 'Send' }).click();
  };
  const session = await store.session('chat');
  const told = [];
  /** What the page shows is stored, and there are these messages more. */
  const isStored = async (...more) => {
    told.push(...more);
    const { ids, texts } = await seen(page);
    const messages = await loadUIMessages(session);
    assert.deepEqual([texts, shown(messages)], [told, told]);
    assert.deepEqual(
      ids,
      messages.map(({ id }) => id),
    );
  };

  await page.goto(server.origin);
  await page.getByLabel('Question').waitFor();
  await ask('Look.');
  await shows('assistant: c1 input-available', 'streaming');
  looked.open('seen');
  await shows('assistant: c1 output-available: Seen.', 'ready');
  await isStored('user: Look.', 'assistant: c1 output-available: Seen.');

  await ask('Speak.');
  await shows('assistant: Hel', 'streaming');
  await page.reload();
  await shows('assistant: Hel', 'streaming');
  spoken.open();
  await shows('assistant: Hello', 'ready');
  await isStored('user: Speak.', 'assistant: Hello');

  await ask('On.');
  await shows('assistant: Hel', 'streaming');
  await page.getByRole('button', { name: 'Stop' }).click();
  await shows('assistant: Hel', 'ready');
  await until(async () => (await session.messages()).items.at(-1).status === 'stopped');
  await isStored('user: On.', 'assistant: Hel');

  await page.getByRole('button', { name: 'Regenerate' }).click();
  await shows('assistant: Again.', 'ready');
  told.pop();
  await isStored('assistant: Again.');
  assert.equal((await session.branches()).length, 2);

  await page.reload();
  await shows('assistant: Again.', 'ready');
  await isStored();
  assert.deepEqual(complaints, []);
});
