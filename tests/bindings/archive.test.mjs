// Sessions as values: serialized, exported, restored in another store, and cleared.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { until } from './scenarios/kit.mjs';

const TOOL_TURN = `{"messages":[{"role":"user","content":"Oslo?"},
  {"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"get","arguments":"{\\"n\\":1.50}"}}]},
  {"role":"tool","tool_call_id":"c1","content":"12345678901234567890"},{"role":"assistant","content":"Cold."}]}`;
const provider = { dialect: 'openai-chat', url: 'https://model.invalid', params: { model: 'm' } };

/** A store with a session that has a tool turn, a title, state that is not saved yet, and an interrupted run. */
async function filled() {
  const client = await open({ store: 'memory' });
  const session = await client.session('s', { title: 'Weather', channel: 'mail', metadata: { user: 7 } });
  await session.append(TOOL_TURN, 'openai-chat', { at: 1_000, freshness: null });
  const run = await session.run({ input: 'Bergen?', provider });
  await run.cancel();
  session.state.set('memory', { a: [1, 2] });
  return { client, session };
}

async function contentOf(client, id) {
  const session = await client.session(id);
  const { items: messages } = await session.messages();
  const { items: calls } = await session.invocations({ payload: true });
  const {
    items: [listed],
  } = await client.sessions();
  const body = new TextDecoder().decode(
    (
      await session.render({
        dialect: 'anthropic',
        params: { model: 'm', max_tokens: 9 },
        replay: { freshness: Infinity },
      })
    ).body,
  );
  return {
    messages,
    calls: calls.map((call) => ({ ...call, sessionId: null })),
    listed: { ...listed, id: null },
    memory: session.state.get('memory'),
    body,
    revision: session.revision,
  };
}

test('r37 a session is restored in another store with everything in it, from bytes and from JSON Lines', async () => {
  const { client, session } = await filled();
  const [bytes, lines] = [await session.serialize(), await client.exportSession('s')];
  const original = await contentOf(client, 's');
  assert.equal(original.messages.length, 3);
  for (const restore of [
    (other) => other.restore(bytes, { id: 'copy' }),
    (other) => other.importSession(lines, { id: 'copy' }),
  ]) {
    const other = await open({ store: 'memory' });
    const copy = await restore(other);
    assert.equal(copy.id, 'copy');
    assert.deepEqual(await contentOf(other, 'copy'), original);
    await copy.append({ messages: [{ role: 'user', content: 'more' }] }, 'openai-chat');
    assert.equal((await copy.messages()).items.length, 4);
    await other.close();
  }
  assert.ok(
    lines
      .split('\n')
      .slice(0, -1)
      .every((line) => JSON.parse(line)) && lines.includes('"Weather"'),
  );
  await client.close();
});

test('r37 a session is not restored over another, and edited, cut or foreign input stores nothing', async () => {
  const { client, session } = await filled();
  const [bytes, lines] = [await session.serialize(), await client.exportSession('s')];
  const rejected = async (work, code, line) => {
    await assert.rejects(
      work,
      (error) =>
        error.code === code && (line === undefined || error.details.line === line) && error.message.length > 20,
    );
  };
  await rejected(() => client.restore(bytes), 'conflict');
  await rejected(() => client.importSession(lines), 'conflict');
  const other = await open({ store: 'memory' });
  // Two different ids would become one: such a text has no UTF-8 encoding.
  await rejected(() => other.restore(bytes, { id: 'a\ud800' }), 'invalid_input');
  await rejected(() => other.importSession(lines, { id: 'a\ud800' }), 'invalid_input');
  await rejected(() => other.importSession(lines.replace('"version":1', '"ersion":1')), 'invalid_input', 1);
  await rejected(() => other.restore(bytes.slice(0, 40)), 'invalid_input');
  const newer = bytes.slice();
  newer['rethread session\n'.length] = 9;
  await rejected(() => other.restore(newer), 'unsupported_version');
  for (const foreign of [[], [9, 9, 9, 9, 9, 9, 9, 9], [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]])
    await rejected(() => other.restore(new Uint8Array(foreign)), 'invalid_input');
  await rejected(() => other.restore(/** @type {any} */ (lines)), 'invalid_input');
  await rejected(() => other.importSession(lines.replace('Oslo?', 'Rome?')), 'invalid_input', 2);
  await session.append([{ role: 'user', parts: [{ type: 'text', text: 'later' }] }]);
  const [first, ...rest] = (await client.exportSession('s')).split('\n');
  await rejected(() => other.importSession([first, ...lines.split('\n').slice(1)].join('\n')), 'invalid_input', 2);
  await rejected(() => other.importSession([lines.split('\n')[0], ...rest].join('\n')), 'invalid_input', 2);
  await rejected(() => other.importSession(lines.slice(0, lines.indexOf('\n') + 1)), 'invalid_input', 1);
  await rejected(() => other.importSession('[{"role":"user","content":"hello"}]'), 'invalid_input', 1);
  await rejected(() => other.importSession(lines.replace('"version":1', '"version":2')), 'unsupported_version', 1);
  await rejected(() => other.exportSession('none'), 'not_found');
  await rejected(async () => (await other.session('none')).serialize(), 'not_found');
  assert.deepEqual((await other.sessions()).items, []);
  await other.close();
  await client.close();
});

test('r37 an interrupted run is resumed where its session was restored', async () => {
  const { client, session } = await filled();
  const run = await session.run({ input: 'Bergen?', provider });
  await assert.rejects(session.clear(), { code: 'busy' });
  const bytes = await session.serialize();
  const other = await open({ store: 'memory' });
  const copy = await other.restore(bytes);
  const [pending] = await copy.pendingRuns();
  assert.deepEqual(
    [pending.id, pending.state, pending.input[0].parts],
    [run.id, 'interrupted', [{ type: 'text', text: 'Bergen?' }]],
  );
  const resumed = await copy.resume(run.id, { provider });
  const [effect] = resumed.effects();
  const body = JSON.stringify({
    id: 'r',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, finish_reason: 'stop', message: { role: 'assistant', content: 'Rain.' } }],
  });
  await resumed.answer(effect.id, { type: 'response', status: 200, body });
  assert.deepEqual([resumed.result().status, resumed.result().text], ['finished', 'Rain.']);
  await run.cancel();
  await other.close();
  await client.close();
});

test('r37 what is not written yet is in the archive: fields of the open session, and what a run has deferred', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s', { flushMs: 60_000 });
  await session.append([{ role: 'user', parts: [{ type: 'text', text: 'Oslo?' }] }]);
  const owner = { kind: 'response', auto: true };
  await client.session('s', { owner, title: 'New', channel: 'mail', metadata: { user: 7 } });
  const run = await session.run({
    input: 'Bergen?',
    provider: { ...provider, dialect: 'openai-responses' },
    tools: { f: { execute: () => 1 } },
  });
  const output = [{ type: 'function_call', id: 'fc', call_id: 'c', name: 'f', arguments: '{}', status: 'completed' }];
  await run.answer(run.effects()[0].id, {
    type: 'response',
    status: 200,
    body: JSON.stringify({ id: 'r', object: 'response', model: 'm', status: 'completed', error: null, output }),
  });
  const [tool] = run.effects();
  await run.answer(tool.id, { type: 'started' });
  for (const work of [
    async (other) => other.restore(await session.serialize()),
    async (other) => other.importSession(await client.exportSession('s')),
  ]) {
    const other = await open({ store: 'memory' });
    const copy = await work(other);
    const [listed] = (await other.sessions()).items;
    assert.deepEqual([copy.owner, copy.title, listed.channel, listed.metadata], [owner, 'New', 'mail', { user: 7 }]);
    const [pending] = await copy.pendingRuns();
    assert.deepEqual(
      pending.openCalls.map(({ name, state }) => [name, state]),
      [['f', 'started']],
    );
    await other.close();
  }
  const lines = (await client.exportSession('s'))
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line));
  assert.deepEqual(lines[0].owner, owner);
  const entries = lines.filter((line) => line.table === 'runs').map((line) => [line.run, line.entry.type]);
  assert.deepEqual(
    entries,
    ['began', 'answered', 'tool_started'].map((type) => [run.id, type]),
  );
  await run.cancel();
  await client.close();
});

/** As a database is. */
class DurableLogStore extends MemoryLogStore {
  capabilities() {
    return { ...super.capabilities(), durable: true };
  }
}

test('r37 a run that another process owns, or that began meanwhile, is not cleared', async () => {
  const store = new DurableLogStore();
  const [first, second] = [await open({ store }), await open({ store })];
  const [session, other] = [await first.session('s'), await second.session('s')];
  const run = await session.run({ input: 'Q', provider });
  await assert.rejects(other.clear(), { code: 'busy' });
  await assert.rejects(session.clear(), { code: 'busy' });
  await run.cancel();
  // Of a run that begins and a `clear` one is first, and the other is busy.
  const [cleared, begun] = await Promise.allSettled([session.clear(), session.run({ input: 'Q', provider })]);
  const late = cleared.status === 'rejected' ? cleared : begun;
  assert.equal(late.status === 'rejected' && late.reason.code, 'busy');
  if (begun.status === 'fulfilled') await begun.value.cancel();
  await other.clear();
  assert.deepEqual((await session.messages()).items, []);
  await first.close();
  await second.close();
});

test('r37 a session is exported by a tab whose run another process took over', async () => {
  const store = new DurableLogStore();
  let clock = 1_000_000;
  const client = () => open({ store, now: () => clock, leaseMs: 5_000 });
  const [first, second] = [await client(), await client()];
  const session = await first.session('s', { flushMs: 60_000 });
  const run = await session.run({ input: 'Q', provider, tools: { f: { execute: () => 1 } } });
  // Stores the beginning of the run.
  await session.serialize();
  const message = {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: 'k', type: 'function', function: { name: 'f', arguments: '{}' } }],
  };
  const body = JSON.stringify({ id: 'x', model: 'm', choices: [{ index: 0, finish_reason: 'tool_calls', message }] });
  await run.answer(run.effects()[0].id, { type: 'response', status: 200, body });
  clock += 60_000;
  const other = await second.session('s');
  const resumed = await other.resume(run.id, { provider, tools: { f: { execute: () => 1 } } });
  for (const work of [
    async (target) => target.importSession(await first.exportSession('s')),
    async (target) => target.restore(await session.serialize()),
  ]) {
    const copies = await open({ store: 'memory' });
    const copy = await work(copies);
    assert.deepEqual(
      (await copy.pendingRuns()).map(({ id }) => id),
      [run.id],
    );
    await copies.close();
  }
  await until(() => run.status === 'failed');
  assert.equal(run.result().error.code, 'conflict');
  await resumed.cancel();
  await Promise.all([first.close(), second.close()]);
});

test('r37 a session whose run cannot store what it has done is not exported without that', async () => {
  const store = new DurableLogStore();
  const client = await open({ store });
  const session = await client.session('s', { flushMs: 60_000 });
  const run = await session.run({ input: 'Q', provider });
  await run.answer(run.effects()[0].id, { type: 'response', status: 500, body: '{}' });
  const append = store.append;
  store.append = async () => {
    throw Object.assign(new Error('full'), { code: 'quota_exceeded' });
  };
  await assert.rejects(client.exportSession('s'), { code: 'quota_exceeded' });
  await assert.rejects(session.serialize(), { code: 'quota_exceeded' });
  store.append = append;
  assert.ok((await client.exportSession('s')).includes('"table":"runs"'));
  await run.cancel();
  await client.close();
});

test('r37 clear empties a session, its view and its runs, and keeps its title', async () => {
  const { client, session } = await filled();
  const view = session.view();
  const changes = [];
  client.subscribe((change) => changes.push(change));
  const { revision } = session;
  await session.clear();
  assert.deepEqual(view.getSnapshot().messages, []);
  assert.equal(view.getSnapshot().run, null);
  assert.deepEqual(
    [(await session.messages()).items, (await session.invocations()).items, await session.pendingRuns()],
    [[], [], []],
  );
  assert.deepEqual([session.title, (await client.sessions()).items[0].messageCount], ['Weather', 0]);
  assert.ok(
    session.revision > revision &&
      changes.some((change) => change.session === 's' && change.revision === session.revision),
  );
  await session.append({ messages: [{ role: 'user', content: 'again' }] }, 'openai-chat');
  assert.equal((await session.messages()).items.length, 1);
  assert.ok(new TextDecoder().decode((await session.render({ dialect: 'openai-chat' })).body).includes('again'));
  await client.close();
});
