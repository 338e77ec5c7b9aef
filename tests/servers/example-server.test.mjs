// examples/server on SQLite and on PostgreSQL, killed in the middle of answers; and the page of the examples.

import assert from 'node:assert/strict';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { request } from 'node:http';
import { test } from 'node:test';
import { launchBrowser } from '../../.ci/browser.mjs';
import { exampleEnvironment } from './example-environment.mjs';
import { KEY, checkKills } from './example-project.mjs';

const environment = exampleEnvironment();

/** What all servers of this file printed. */
let printed = '';
async function start(store) {
  const child = environment.start(['server/server.js'], { ...store, PORT: '0', LEASE_MS: '400' });
  child.stderr.on('data', (text) => {
    printed += text;
  });
  const exited = once(child, 'exit');
  const url = await new Promise((resolve, reject) => {
    child.stdout.once('data', (text) => resolve(String(text).trim()));
    child.once('exit', () => reject(new Error(`the server ended: ${printed}`)));
  });
  return {
    url,
    fetch: (address, options) => fetch(url + address, options),
    async kill() {
      child.kill('SIGKILL');
      await exited;
    },
  };
}

for (const [name, env] of Object.entries(environment.stores)) {
  test(`r48 the example on ${name} continues after SIGKILL, and no tool runs twice unless it may`, async () => {
    environment.services.calls.weather = 0;
    environment.services.calls.note = 0;
    const server = await checkKills(() => start(env('chats')), environment.services);
    await server.kill();
  });
}

test('the example rejects requests without a question, and never reveals its key', async () => {
  const server = await start(environment.stores.SQLite('chats'));
  const post = async (type, body) =>
    (
      await server.fetch('/chats/00000000-0000-0000-0000-000000000000', {
        method: 'POST',
        headers: { 'content-type': type },
        body,
      })
    ).status;
  assert.deepEqual(
    [
      await post('text/plain', '{"question":"?"}'),
      await post('application/json', '{'),
      await post('application/json', '{"question":""}'),
    ],
    [400, 400, 400],
  );
  assert.equal(await post('application/json', JSON.stringify({ question: 'x'.repeat(200_000) })), 400);
  assert.equal((await server.fetch('/chats/1')).status, 404);
  assert.equal((await server.fetch('/chats/00000000-0000-0000-0000-000000000000')).status, 404, 'nobody wrote to it');
  const raw = (method, path) =>
    new Promise((resolve, reject) => {
      request(server.url, { method, path }, (response) => resolve(response.resume().statusCode))
        .on('error', reject)
        .end();
    });
  assert.deepEqual([await raw('GET', '//'), await raw('TRACE', '/'), await raw('DELETE', '/')], [400, 405, 405]);
  assert.equal(await post('application/json; charset=utf-8', '{"question":""}'), 400);
  const asked = {
    method: 'POST',
    headers: { 'content-type': 'application/json; charset=utf-8' },
    body: '{"question":"Hello?"}',
  };
  assert.equal((await server.fetch('/chats/00000000-0000-0000-0000-000000000001', asked)).status, 202);
  await server.kill();
  assert.ok(!printed.includes(KEY) && !printed.includes('/note'), printed);
  const file = environment.sqliteFile('chats');
  for (const part of [file, `${file}-wal`]) assert.ok(!readFileSync(part).includes(KEY));
});

test('the page of the examples shows the streaming answer, and the output of tools as text', async () => {
  const server = await start(environment.stores.SQLite('chats'));
  const browser = await launchBrowser();
  try {
    const page = await browser.newPage();
    await page.goto(server.url);
    await page.locator('input').fill('Weather in Oslo?');
    await page.locator('button').click();
    await page.locator('.assistant', { hasText: 'You asked: "Weather in Oslo?"' }).waitFor();
    assert.match(await page.locator('.tool').first().textContent(), /^get_weather .*<img src=x/);
    assert.equal(await page.locator('img').count(), 0);
    assert.equal(await page.evaluate('window.owned'), undefined);
    assert.equal(await page.locator('input').inputValue(), '');
  } finally {
    await browser.close();
    await server.kill();
  }
});
