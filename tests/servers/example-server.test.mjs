// examples/server on SQLite and on PostgreSQL, killed in the middle of answers; and the page of the examples.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { launchBrowser } from '../../.ci/browser.mjs';
import { endsWithThisProcess } from './child-processes.mjs';
import { KEY, checkKills, exampleProject, startServices } from './example-project.mjs';
import { startPostgres } from './postgres-server.mjs';

let project;
let services;
let postgres;
before(async () => {
  project = exampleProject();
  services = await startServices();
  postgres = await startPostgres();
});
const children = new Set();
after(async () => {
  for (const child of children) child.kill('SIGKILL'); // what a failed test left
  await postgres?.stop();
  await services?.stop();
  project?.remove();
});

/** What all servers of this file printed. */
let printed = '';
async function start(store) {
  const env = { PATH: process.env.PATH, ...services.env, ...store, PORT: '0', LEASE_MS: '400' };
  const child = endsWithThisProcess(spawn(process.execPath, ['--no-warnings', 'server/server.js'], { cwd: project.folder, env, stdio: ['ignore', 'pipe', 'pipe'] }));
  children.add(child);
  child.stderr.on('data', (text) => { printed += text; });
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

const sqliteFile = () => path.join(project.folder, 'chats.sqlite');
const STORES = {
  SQLite: () => ({ SQLITE_FILE: sqliteFile() }),
  PostgreSQL: () => ({ DATABASE_URL: `postgres://postgres@/postgres?host=${encodeURIComponent(postgres.place.host)}` }),
};

for (const [name, env] of Object.entries(STORES)) {
  test(`r48 the example on ${name} continues after SIGKILL, and no tool runs twice unless it may`, async () => {
    services.calls.weather = 0;
    services.calls.note = 0;
    const server = await checkKills(() => start(env()), services);
    await server.kill();
  });
}

test('the example rejects requests without a question, and never reveals its key', async () => {
  const server = await start(STORES.SQLite());
  const post = async (type, body) => (await server.fetch('/chats/00000000-0000-0000-0000-000000000000', { method: 'POST', headers: { 'content-type': type }, body })).status;
  assert.deepEqual([await post('text/plain', '{"question":"?"}'), await post('application/json', '{'), await post('application/json', '{"question":""}')], [400, 400, 400]);
  assert.equal(await post('application/json', JSON.stringify({ question: 'x'.repeat(200_000) })), 400);
  assert.equal((await server.fetch('/chats/1')).status, 404);
  await server.kill();
  assert.ok(!printed.includes(KEY) && !printed.includes('/note'), printed);
  for (const file of [sqliteFile(), `${sqliteFile()}-wal`]) assert.ok(!readFileSync(file).includes(KEY));
});

test('the page of the examples shows the streaming answer, and the output of tools as text', async () => {
  const server = await start(STORES.SQLite());
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
