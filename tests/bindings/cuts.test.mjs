// r72: with `changes: "at_cuts"` what was sent stays in the requests of a session until a cut.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { until } from './scenarios/kit.mjs';

const MINUTE = 60_000;
const replay = { changes: 'at_cuts', freshness: MINUTE };
const dialect = 'openai-chat';
const provider = { dialect, url: 'https://model.example/v1', params: { model: 'm' } };
const parameters = { type: 'object', properties: {} };
const listOf = (bytes) =>
  JSON.parse(new TextDecoder().decode(bytes)).messages.map((message) => JSON.stringify(message));
const resultsIn = (bytes) => listOf(bytes).filter((message) => message.includes('"role":"tool"')).length;

function assertExtends(before, after) {
  const [old, next] = [listOf(before), listOf(after)];
  assert.deepEqual(next.slice(0, old.length), old);
  assert.ok(next.length > old.length);
}

const completion = (message) =>
  Response.json({ choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }] });
const call = (id) => ({
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'look', arguments: '{}' } }],
});

/** Processes over one store and one clock. */
function world(options = {}) {
  const world = { now: 1_000_000, store: new MemoryLogStore(), sent: [], prefixes: [], asked: 0 };
  world.client = () => open({ store: world.store, now: () => world.now, replay, ...options });
  world.fetch = async (_, { body }) => {
    world.sent.push(body.slice());
    world.asked += 1;
    return completion(
      listOf(body).at(-1).includes('"role":"user"') ? call(`call_${world.asked}`) : { content: 'Done.' },
    );
  };
  world.ask = async (session, request = {}) => {
    const tools = { look: { parameters, execute: () => `seen at ${world.now}` } };
    const driven = drive(await session.run({ input: 'Go', provider, tools, ...request }), { fetch: world.fetch });
    for await (const event of driven) if (event.type === 'model_called') world.prefixes.push(event.prefix);
    const result = await driven.result;
    assert.equal(result.status, 'finished', JSON.stringify(result.error));
  };
  return world;
}

test('r72 what was sent stays over windows, processes and modes, until the session is idle', async () => {
  for (const persistence of ['run', 'call', 'result']) {
    const chat = world();
    for (let turn = 0; turn < 4; turn += 1) {
      const client = await chat.client();
      await chat.ask(await client.session('s', { persistence }));
      await client.close();
      chat.now += 4 * MINUTE;
    }
    for (let at = 1; at < chat.sent.length; at += 1) assertExtends(chat.sent[at - 1], chat.sent[at]);
    assert.ok(
      chat.prefixes.every(({ cut, changedBy }) => cut === null && changedBy === null),
      persistence,
    );
    assert.equal(resultsIn(chat.sent.at(-1)), 4);

    chat.now += 2 * MINUTE;
    const session = await (await chat.client()).session('s', { persistence });
    await chat.ask(session);
    assert.equal(chat.prefixes.at(-2).cut, 'idle');
    assert.equal(resultsIn(chat.sent.at(-1)), 1, 'only its own');
  }
});

test('r72 without the option a result goes when its window has passed, which ends the cache', async () => {
  const chat = world({ replay: { freshness: MINUTE } });
  const session = await (await chat.client()).session('s');
  for (let turn = 0; turn < 3; turn += 1) {
    await chat.ask(session);
    chat.now += 4 * MINUTE;
  }
  assert.equal(resultsIn(chat.sent.at(-1)), 1);
  assert.deepEqual(chat.prefixes.at(-2).changedBy, 'freshness');
  assert.ok(chat.prefixes.every(({ cut }) => cut === null));
});

test('r72 a run that was killed and is resumed elsewhere extends what was sent, and so does the next one', async () => {
  const chat = world();
  const first = await chat.client();
  await chat.ask(await first.session('s'));
  chat.now += 2 * MINUTE;
  const run = await (await first.session('s')).run({
    input: 'Go',
    provider,
    tools: { look: { parameters, execute: () => new Promise(() => {}) } },
  });
  drive(run, { fetch: chat.fetch });
  await until(() => chat.sent.length === 3 && run.effects?.().some?.(({ type }) => type === 'run_tool') !== false);
  const id = run.id;
  run[Symbol.dispose]();
  chat.now += 2 * MINUTE;
  const session = await (await chat.client()).session('s');
  await until(async () =>
    (await session.pendingRuns()).some((pending) => pending.id === id && pending.state !== 'live'),
  );
  const tools = { look: { parameters, execute: () => 'seen late', onInterrupted: 'rerun' } };
  const resumed = await drive(await session.resume(id, { provider, tools }), { fetch: chat.fetch }).result;
  assert.equal(resumed.status, 'finished', JSON.stringify(resumed.error));
  chat.now += 2 * MINUTE;
  await chat.ask(session);
  for (let at = 1; at < chat.sent.length; at += 1) assertExtends(chat.sent[at - 1], chat.sent[at]);
});

test('r72 the requests of `render` extend each other, also in another process after an append', async () => {
  const chat = world();
  let session = await (await chat.client()).session('s');
  const bodies = [];
  const render = async (request = {}) => {
    const rendered = await session.render({ dialect, params: { model: 'm' }, ...request });
    bodies.push(rendered.body);
    return rendered.prefix;
  };
  const append = (messages) => session.append({ messages }, dialect);
  for (let turn = 0; turn < 3; turn += 1) {
    await append([{ role: 'user', content: `Question ${turn}` }]);
    assert.equal((await render()).cut, null);
    await append([
      { role: 'assistant', ...call(`call_${turn}`) },
      { role: 'tool', tool_call_id: `call_${turn}`, content: 'seen' },
    ]);
    assert.equal((await render()).cut, null);
    await append([{ role: 'assistant', content: 'Done.' }]);
    chat.now += 4 * MINUTE;
    session = await (await chat.client()).session('s');
  }
  for (let at = 1; at < bodies.length; at += 1) assertExtends(bodies[at - 1], bodies[at]);
  assert.equal(resultsIn(bodies.at(-1)), 3);

  // An input that is stored later, under another id, is no other input.
  await render({ input: 'And?' });
  await append([
    { role: 'user', content: 'And?' },
    { role: 'assistant', content: 'Yes.' },
    { role: 'user', content: 'So?' },
  ]);
  await render();
  assertExtends(bodies.at(-2), bodies.at(-1));

  await session.compact({ dialect, params: { model: 'm' }, force: true, summarize: async () => 'They looked.' });
  const compacted = await render({ input: 'And now?' });
  assert.deepEqual([compacted.cut, compacted.changedBy], ['compaction', 'compaction']);
  assert.equal((await render({ input: 'Now?', params: { model: 'n' } })).cut, 'model');
});

test('r72 a request in which all may change makes the next one decide anew', async () => {
  const chat = world();
  const session = await (await chat.client()).session('s');
  await chat.ask(session);
  chat.now += 2 * MINUTE;
  const tools = { look: { parameters } };
  const render = async (policy) => {
    const { body, prefix } = await session.render({
      dialect,
      input: 'q',
      params: { model: 'm' },
      tools,
      replay: policy,
    });
    return [resultsIn(body), prefix.cut];
  };
  assert.deepEqual(await render(), [1, null]);
  assert.deepEqual(await render({ changes: 'always' }), [0, null]);
  assert.deepEqual(await render(), [0, null]);
});

test('r72 `changes` is one of two words', async () => {
  await assert.rejects(open({ store: 'memory', replay: { changes: 'never' } }), {
    code: 'config_invalid',
    message: /at_cuts/,
  });
});
