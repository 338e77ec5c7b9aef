// r64: in a page, under a content policy: the formats are fetched at the first request that needs them, and nothing
// else is.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { launchBrowser } from '../../.ci/browser.mjs';
import { serve } from '../../.ci/serve.mjs';
import { laneOf } from '../browser/page.mjs';
import { createStandIn } from '../stand-in/server.mjs';
import { BROKEN } from './bodies.mjs';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
let standIn;
let server;
let browser;
before(async () => {
  standIn = createStandIn();
  const folders = {
    '/': here('page'),
    '/js/': here('../../js'),
    '/dist/': here('../../dist'),
    '/node_modules/': here('../../node_modules'),
  };
  server = await serve({ folders, handle: standIn.handle });
  browser = await launchBrowser();
});
after(async () => {
  await browser?.close();
  standIn?.state.dispose();
  await server?.close();
});

async function openPage() {
  const page = await browser.newPage();
  page.setDefaultTimeout(90_000); // for a machine with few and busy processors
  page.complaints = [];
  page.dist = [];
  page.on('pageerror', (error) => page.complaints.push(String(error)));
  page.on(
    'console',
    (message) =>
      ['error', 'warning'].includes(message.type()) &&
      !message.text().startsWith('Failed to load resource') &&
      page.complaints.push(message.text()),
  );
  page.on(
    'request',
    (request) =>
      new URL(request.url()).pathname.startsWith('/dist/') && page.dist.push(new URL(request.url()).pathname),
  );
  await page.goto(`${server.url}/`);
  await page.waitForFunction(() => globalThis.ready);
  return page;
}

test('every form of a body is repaired; the wasm is the small one, fetched once and not before', async () => {
  const page = await openPage();
  const lane = laneOf(server.url, 'forms');
  assert.equal(await page.evaluate((url) => sendOther(url), `${lane.base}/control/requests`), 200);
  assert.deepEqual(page.dist, ['/dist/formats.js'], 'no wasm before a conversation is sent');
  const { answers, reports } = await page.evaluate(
    ([url, text]) => sendForms(url, text),
    [lane.chat, JSON.stringify(BROKEN['openai-chat'])],
  );
  assert.deepEqual(answers, [200, 200, 200, 200]);
  assert.deepEqual(reports, Array(4).fill(['openai-chat', 'dangling_call']));
  assert.deepEqual(page.dist, ['/dist/formats.js', '/dist/formats_bg.wasm']);
  assert.deepEqual(page.complaints, []);
});

test("OpenAI's client in the page gets its stream", async () => {
  const page = await openPage();
  const lane = laneOf(server.url, 'client');
  const text = await page.evaluate(([base, body]) => ask(base, body), [`${lane.base}/v1`, BROKEN['openai-chat']]);
  assert.match(text, /You said: "\?"/);
  assert.deepEqual(
    (await lane.requests()).map((one) => [one.status, one.stream]),
    [[200, true]],
  );
  assert.deepEqual(page.complaints, []);
});

test('r64 if the wasm cannot be loaded, requests pass unchanged', async () => {
  const page = await openPage();
  const lane = laneOf(server.url, 'no-wasm');
  await page.route('**/*.wasm', (route) => route.fulfill({ status: 404, body: 'gone' }));
  const { answers, reports } = await page.evaluate(
    ([url, text]) => sendForms(url, text),
    [lane.chat, JSON.stringify(BROKEN['openai-chat'])],
  );
  assert.deepEqual(answers, [400, 400, 400, 400], 'the provider has the last word');
  assert.deepEqual(reports, []);
  assert.equal(page.complaints.length, 1, 'said once');
  assert.match(page.complaints[0], /^rethread\/fetch: the wasm could not be loaded.*404/);
});
