// The examples as a project of their own, the services of their tools, and what both examples must do when they are
// killed.

import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { startStandIn } from '../stand-in/server.mjs';
import { until } from './polling.mjs';

const root = fileURLToPath(new URL('../..', import.meta.url));
export const KEY = 'sk-example-secret';

/** A copy of examples/ with its dependencies in node_modules. */
export function exampleProject() {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-example-'));
  cpSync(path.join(root, 'examples'), folder, {
    recursive: true,
    filter: (file) => !/node_modules|\.wrangler|package-lock/.test(file),
  });
  mkdirSync(path.join(folder, 'node_modules'));
  symlinkSync(root, path.join(folder, 'node_modules/rethread'), 'dir');
  for (const name of ['pg', 'react', 'react-dom', 'esbuild'])
    symlinkSync(path.join(root, 'node_modules', name), path.join(folder, 'node_modules', name), 'dir');
  return { folder, remove: () => rmSync(folder, { recursive: true, force: true }) };
}

/** The number of lines of an example, with what the examples share and without the page. */
export function exampleLines(...own) {
  const lines = (file) =>
    readFileSync(path.join(root, 'examples', file), 'utf8')
      .trimEnd()
      .split('\n').length;
  return ['chat/chat.js', 'chat/tools.js', ...own].map(lines).reduce((sum, count) => sum + count);
}

/** The model, and the services of the tools: each call is counted, and waits while its service is held. */
export async function startServices() {
  const model = await startStandIn();
  const calls = { weather: 0, note: 0 };
  const webhook = { status: 200 };
  const held = new Set();
  const waiting = [];
  const server = http.createServer((request, response) => {
    const service = request.url.startsWith('/note') ? 'note' : 'weather';
    calls[service] += 1;
    const answer = () => {
      if (service === 'weather') response.end('<img src=x onerror="window.owned = true"> 21 °C');
      else response.writeHead(webhook.status).end(webhook.status === 204 ? undefined : 'ok');
    };
    if (held.has(service)) waiting.push(answer);
    else answer();
  });
  await new Promise((resolve) => {
    server.listen(0, '127.0.0.1', resolve);
  });
  const url = `http://127.0.0.1:${server.address().port}`;
  return {
    calls,
    webhook,
    env: {
      OPENAI_API_KEY: KEY,
      MODEL_URL: `${model.url}/v1/chat/completions`,
      WEATHER_URL: `${url}/weather`,
      WEBHOOK_URL: `${url}/note`,
    },
    hold: (service) => held.add(service),
    async called(service, times) {
      await until(`call ${times} of ${service}`, () => calls[service] >= times);
    },
    /** Waits for a call that hangs. */
    async hanging() {
      await until('a call that hangs', () => waiting.length > 0);
    },
    release() {
      held.clear();
      for (const answer of waiting.splice(0)) answer();
    },
    script: (steps) => fetch(`${model.url}/control/script`, { method: 'POST', body: JSON.stringify({ steps }) }),
    requests: async () => (await fetch(`${model.url}/control/requests`)).json(),
    async stop() {
      server.close();
      server.closeAllConnections();
      await model.close();
    },
  };
}

/** Insists that a chat does not call the model before the time that the model's service asked for, also if it is killed
 *  meanwhile. */
export async function checkPause(server, start, services) {
  const before = (await services.requests()).length;
  await services.script([{ status: 429, headers: { 'retry-after': '4' } }, { text: 'Later.' }]);
  const address = `/chats/${randomUUID()}`;
  assert.equal((await server.fetch(address, postJson({ question: 'Are you there?' }))).status, 202);
  await chatWhen(
    (options) => server.fetch(address, options),
    ({ run }) => run?.status === 'interrupted',
  );
  await server.kill();
  const next = await start();
  const { messages } = await chatWhen((options) => next.fetch(address, options), areAnswered(1));
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant'],
  );
  const [limited, answered, ...others] = (await services.requests()).slice(before);
  assert.deepEqual([limited.status, answered.status, others.length], [429, 200, 0]);
  assert.ok(answered.at - limited.at >= 4000, `${answered.at - limited.at} ms`);
  return next;
}

const postJson = (body) => ({
  method: 'POST',
  headers: { 'content-type': 'application/json' },
  body: JSON.stringify(body),
});

/** Watches a chat until it is as wanted; returns it. */
async function chatWhen(fetchChat, isWanted) {
  const response = await fetchChat({ headers: { accept: 'text/event-stream' } });
  const messages = new Map();
  let text = '';
  for await (const bytes of response.body.pipeThrough(new TextDecoderStream())) {
    text += bytes;
    const events = text.split('\n\n');
    text = events.pop();
    for (const event of events) {
      assert.ok(!event.includes(KEY));
      const { ids, changed, run } = JSON.parse(event.slice('data: '.length));
      for (const message of changed) messages.set(message.id, message);
      const all = ids.map((id) => messages.get(id));
      const calls = all.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool').map(({ call }) => call));
      const chat = { messages: all, calls, run, callOf: (name) => calls.findLast((call) => call.name === name) };
      if (isWanted(chat)) return chat; // leaving the loop cancels the stream
    }
  }
  return assert.fail('the stream ended');
}

/** True if so many questions are answered. A view that has just been opened shows history alone at first. */
const areAnswered =
  (questions) =>
  ({ run, messages }) =>
    (run === null || run.status === 'finished') &&
    messages.every(({ saved }) => saved) &&
    messages.filter(({ role }) => role === 'user').length === questions;

/** Insists that a chat goes on after kills. `start` returns `{ fetch(path, options), kill() }`. */
export async function checkKills(start, services) {
  let server = await start();
  const address = `/chats/${randomUUID()}`;
  const chat = (options) => server.fetch(address, options);
  const restart = async () => {
    await server.kill();
    services.release();
    server = await start();
  };

  // Killed while one tool runs that may run again; the other one has returned.
  services.hold('weather');
  const asked = await chat(postJson({ question: 'Weather in Oslo?' }));
  assert.equal(asked.status, 202, await asked.clone().text());
  const before = await chatWhen(chat, ({ callOf }) => callOf('post_note')?.status === 'ok');
  await services.hanging();
  assert.equal((await chat(postJson({ question: 'And now?' }))).status, 409);
  await restart();
  await services.called('weather', 2); // before anybody asks: nothing but the example itself continues the answer
  const first = await chatWhen(chat, areAnswered(1));
  assert.deepEqual(
    first.messages.slice(0, 2).map(({ id }) => id),
    before.messages.map(({ id }) => id),
    'what was shown is there',
  );
  assert.deepEqual(
    first.calls.slice(0, 2).map(({ status }) => status),
    ['ok', 'ok'],
  );
  assert.equal(services.calls.note, 1, 'a tool that has returned does not run again');
  assert.ok(services.calls.weather > 1, 'a tool that says `rerun` does');

  // Killed while a tool runs that must not run twice.
  services.hold('note');
  assert.equal((await chat(postJson({ question: 'Weather in Rome?' }))).status, 202);
  await chatWhen(chat, ({ calls }) => calls.length > first.calls.length && calls.at(-2).status === 'ok');
  await services.hanging();
  await restart();
  const second = await chatWhen(chat, areAnswered(2));
  assert.equal(services.calls.note, 2, 'a tool that may have run does not run again');
  assert.equal(second.callOf('post_note').status, 'interrupted');
  assert.deepEqual(
    second.messages.slice(0, first.messages.length).map(({ id }) => id),
    first.messages.map(({ id }) => id),
  );
  const { items } = await (await chat({})).json();
  assert.deepEqual(
    items.filter(({ role }) => role === 'user').map(({ parts }) => parts[0].text),
    ['Weather in Oslo?', 'Weather in Rome?'],
  );
  for (const { n, status, error } of await services.requests())
    assert.equal(status, 200, `request ${n} was refused: ${JSON.stringify(error)}`);
  return server;
}
