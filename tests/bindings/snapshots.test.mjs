// r28: a run goes on from a snapshot, through JavaScript. r60, r27: its retries.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { sleep, until } from './scenarios/kit.mjs';

const MODES = ['run', 'call', 'result'];
const ROUND = { calls: [{ name: 'f', arguments: {} }] };
const HELD = { text: 'All done.', gate: 'go', atPiece: 1 };

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

async function chat(name, steps, options) {
  const lane = laneOf(standIn.url, name);
  await lane.script(steps);
  const client = await open({ store: 'memory', ...options });
  const session = await client.session('s');
  return {
    lane,
    client,
    session,
    provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true },
  };
}
const tool = (execute) => ({ f: { parameters: { type: 'object', properties: {} }, execute } });
const rolesOf = async (session) => (await session.messages()).items.map(({ role }) => role);
const hasCode = (code) => (error) => error.code === code || assert.fail(`${error.code}: ${error.message}`);

test('r28 a snapshot is resumed on an empty store, in each mode: no model call and no tool is repeated', {
  timeout: 20_000,
}, async () => {
  for (const persistence of MODES) {
    const { lane, session, provider } = await chat(`moves-${persistence}`, [{ text: 'Hi.' }, ROUND, HELD]);
    await drive(await session.run({ input: 'Hello', provider })).result;
    let ran = 0;
    const request = {
      provider,
      tools: tool(() => {
        ran += 1;
        return 5;
      }),
    };
    const run = await session.run({ input: 'Go', persistence, ...request });
    drive(run);
    await until(async () => (await lane.waiting()).length);
    const snapshot = run.snapshot();
    assert.ok(snapshot instanceof Uint8Array && snapshot.length < 3000, `${snapshot.length} bytes`);
    run[Symbol.dispose]();
    await lane.openGate('go');

    await lane.script([{ text: 'All done.' }]);
    const other = await (await open({ store: 'memory' })).session('s');
    const resumed = await drive(await other.resume(snapshot, request)).result;
    assert.deepEqual([resumed.status, resumed.turns, ran], ['finished', 2, 1], JSON.stringify(resumed.error));
    assert.deepEqual(await rolesOf(other), ['user', 'assistant', 'user', 'assistant', 'assistant']);
    const bodies = (await lane.requests()).map(({ bodyText }) => JSON.parse(bodyText));
    assert.deepEqual(bodies.at(-1).messages, bodies.at(-2).messages, 'the same request');
    // It has ended there, and is not run a second time.
    await assert.rejects(other.resume(snapshot, request), hasCode('conflict'));
    assert.equal((await lane.requests()).length, bodies.length);
  }
});

test('r28 the journal of the store is continued, if it is newer than the snapshot', { timeout: 20_000 }, async () => {
  const { lane, session, provider } = await chat('newer', [ROUND, HELD]);
  let ran = 0;
  const request = {
    provider,
    tools: tool(() => {
      ran += 1;
      return 5;
    }),
  };
  const run = await session.run({ input: 'Go', ...request });
  const early = run.snapshot();
  drive(run);
  await until(async () => (await lane.waiting()).length);
  await assert.rejects(session.resume(early, request), hasCode('busy'));
  run[Symbol.dispose]();
  await lane.openGate('go');
  await lane.script([{ text: 'All done.' }]);
  const resumed = await session.resume(early, request);
  assert.equal(resumed.id, run.id);
  assert.equal((await drive(resumed).result).turns, 2);
  assert.equal(ran, 1);
  assert.throws(() => resumed.snapshot(), hasCode('wrong_state'));
});

test("r28 r62 a run is nobody else's while its snapshot is being stored", { timeout: 20_000 }, async () => {
  const { session, provider } = await chat('claimed', [HELD]);
  const run = await session.run({ input: 'Go', provider });
  const snapshot = run.snapshot();
  run[Symbol.dispose]();
  const store = new MemoryLogStore();
  const capabilities = () => ({ ...MemoryLogStore.prototype.capabilities(), durable: true });
  let reply;
  const hasReplied = new Promise((resolve) => {
    reply = resolve;
  });
  // The store has written the run, and its reply is on the way.
  const append = async (...args) => {
    const appended = store.append(...args);
    await hasReplied;
    return appended;
  };
  const methods = ['head', 'read', 'sessions', 'invocations', 'deleteSession'];
  const delayed = {
    ...Object.fromEntries(methods.map((name) => [name, (...args) => store[name](...args)])),
    capabilities,
    append,
  };
  const client = await open({ store: delayed, leaseMs: 60_000 });
  const other = await client.session('s');
  const resuming = other.resume(snapshot, { provider });
  await until(() => store.stored.get('s')?.head);
  const discarding = other.discard(run.id);
  discarding.catch(() => {});
  setTimeout(reply, 100);
  const resumed = await resuming;
  await assert.rejects(discarding, hasCode('busy'));
  assert.equal(resumed.status, 'running');
  assert.deepEqual(
    (await other.pendingRuns()).map(({ id, state }) => [id, state]),
    [[run.id, 'live']],
  );
  await resumed.cancel();
  await client.close();
});

test('r28 r62 a resume that finds the journal grown leaves no lease behind', { timeout: 20_000 }, async () => {
  const {
    lane,
    session: { id },
    provider,
  } = await chat('grown', [ROUND, { text: 'All done.' }]);
  const store = new MemoryLogStore();
  const capabilities = () => ({ ...MemoryLogStore.prototype.capabilities(), durable: true });
  const methods = ['head', 'read', 'append', 'sessions', 'invocations', 'deleteSession'];
  const direct = {
    ...Object.fromEntries(methods.map((name) => [name, (...args) => store[name](...args)])),
    capabilities,
  };
  // The former holder's last write is on its way for long, and arrives after its journal was read.
  const sent = [];
  let isSlow = false;
  const append = (...args) =>
    isSlow
      ? new Promise(() => {
          sent.push(args);
        })
      : store.append(...args);
  const read = (...args) => {
    const records = store.read(...args);
    if (args[1].table === 'runs' && sent.length) assert.ok(store.append(...sent.shift()).revision);
    return records;
  };
  const former = await open({ store: { ...direct, append }, leaseMs: 100, storeTimeoutMs: 500 });
  const first = await former.session(id);
  const request = { provider, tools: tool(() => 5) };
  const run = await first.run({ input: 'Go', ...request });
  const [
    {
      id: effect,
      request: { url, ...init },
    },
  ] = run.effects();
  const response = await fetch(url, init);
  const body = await response.text();
  const second = await (await open({ store: { ...direct, read }, leaseMs: 60_000 })).session(id);
  isSlow = true;
  run.answer(effect, { type: 'response', status: response.status, body }).catch(() => {});
  await until(() => sent.length);
  await sleep(200);
  const error = await second.resume(run.id, request).catch((thrown) => thrown);
  assert.deepEqual([error.code, /went on while it was resumed/.test(error.message)], ['busy', true], error.message);
  const third = await (await open({ store: direct, leaseMs: 60_000 })).session(id);
  assert.equal((await drive(await third.resume(run.id, request)).result).status, 'finished');
  assert.equal((await lane.requests()).length, 2);
  await former.close();
});

test('r28 what is no snapshot of this session is a typed error, and changes nothing', async () => {
  const { client, session, provider } = await chat('errors', [ROUND]);
  const run = await session.run({ input: 'Go', provider });
  const snapshot = run.snapshot();
  run[Symbol.dispose]();
  const empty = await (await open({ store: 'memory' })).session('s');
  const flipped = snapshot.slice();
  flipped[flipped.length - 1] ^= 1;
  const newer = snapshot.slice();
  newer.set([99, 99], 'rethread run\n'.length);
  const cases = [
    [snapshot.slice(0, -1), 'corrupt_record'],
    [flipped, 'corrupt_record'],
    [newer, 'unsupported_version'],
    [new Uint8Array(100), 'invalid_input'],
    [new Uint8Array(), 'invalid_input'],
    [5, 'invalid_input'],
    [{}, 'invalid_input'],
    [undefined, 'invalid_input'],
  ];
  for (const [bytes, code] of cases) await assert.rejects(empty.resume(bytes, { provider }), hasCode(code));
  await assert.rejects((await client.session('other')).resume(snapshot, { provider }), hasCode('invalid_input'));
  assert.deepEqual([empty.revision, await rolesOf(empty), await empty.pendingRuns()], [0, [], []]);
  const another = await (await open({ store: 'memory' })).session('s');
  await another.append([{ role: 'user', parts: [{ type: 'text', text: 'Else' }] }]);
  // The run began without history, so any history can be what others added since.
  assert.equal((await another.resume(snapshot, { provider })).id, run.id);
});

test('r60 a run whose pause is long is released; who resumes it waits for the rest', { timeout: 20_000 }, async () => {
  let time = 1_000_000;
  const limited = { status: 429, headers: { 'retry-after': '60' } };
  const { lane, session, provider } = await chat('pause', [limited, { text: 'Here.' }], { now: () => time });
  const driven = drive(await session.run({ input: 'Go', provider }), { longestPauseMs: 1000 });
  const events = [];
  for await (const event of driven) events.push(event);
  await assert.rejects(driven.result, hasCode('closed'));
  assert.deepEqual(
    events.filter(({ type }) => type === 'retrying').map(({ attempt, at }) => [attempt, at]),
    [[2, 1_060_000]],
  );
  const [pending] = await session.pendingRuns();
  assert.deepEqual([pending.state, pending.notBefore], ['interrupted', 1_060_000]);
  time += 20_000;
  const early = await session.resume(pending.id, { provider });
  const [pause] = early.effects();
  assert.deepEqual([pause.type, pause.ms], ['wait', 40_000]);
  // A host that sleeps itself.
  await early.answer(pause.id, { type: 'waited' });
  const [call] = early.effects();
  assert.deepEqual([call.type, call.notBefore, call.repeatable], ['call_model', 1_060_000, true]);
  early[Symbol.dispose]();
  time += 60_000;
  const late = await session.resume(pending.id, { provider });
  assert.deepEqual(
    late.effects().map(({ type, notBefore }) => [type, notBefore]),
    [['call_model', undefined]],
  );
  assert.equal((await drive(late).result).status, 'finished');
  assert.equal((await lane.requests()).length, 2);
});

test('r27 options of retries are checked, and an aborted request fails the run', async () => {
  const { session, provider } = await chat('retries', [{ text: 'Here.' }]);
  await assert.rejects(
    session.run({ input: 'Go', provider, retry: { approveUnsafeReplay: true } }),
    hasCode('config_invalid'),
  );
  let calls = 0;
  const fetch = async () => {
    calls += 1;
    throw new DOMException('the page is left', 'AbortError');
  };
  const { status, error } = await drive(
    await session.run({ input: 'Go', provider, retry: { approveUnsafeReplay: () => true } }),
    { fetch },
  ).result;
  assert.deepEqual([status, error.code, error.details.hostCode, calls], ['failed', 'model_error', 'AbortError', 1]);
});

test('r60 a second run throws or queues, as asked', { timeout: 20_000 }, async () => {
  const { lane, session, provider } = await chat('queue', [HELD, { text: 'Second.' }]);
  const first = drive(await session.run({ input: 'One', provider }));
  await assert.rejects(session.run({ input: 'Two', provider }), hasCode('busy'));
  const second = session.run({ input: 'Two', provider, whenBusy: 'queue' }).then((run) => drive(run).result);
  await until(async () => (await lane.waiting()).length);
  await lane.openGate('go');
  assert.deepEqual([(await first.result).text, (await second).text], ['All done.', 'Second.']);
});

test('r60 a host may pass the headers of a response as they are', async () => {
  const { session, provider } = await chat('headers', []);
  for (const headers of [
    { 'Retry-After': '60' },
    { 'retry-after': 60 },
    { 'retry-after': ['60'] },
    new Headers({ 'Retry-After': '60' }),
    [['Retry-After', '60']],
  ]) {
    const run = await session.run({ input: 'Go', provider });
    await run.answer(run.effects()[0].id, { type: 'response', status: 429, headers, body: '{}' });
    assert.deepEqual(
      run.effects().map(({ type, ms }) => [type, ms]),
      [['wait', 60_000]],
    );
    await run.cancel();
  }
  const run = await session.run({ input: 'Go', provider });
  const [{ id }] = run.effects();
  const unreadable = new Proxy(
    {},
    {
      ownKeys() {
        throw new Error('unreadable');
      },
    },
  );
  for (const headers of [5, 'retry-after: 60', [5], unreadable]) {
    await assert.rejects(run.answer(id, { type: 'response_started', status: 429, headers }), hasCode('invalid_input'));
    assert.deepEqual(
      run.effects().map((effect) => effect.id),
      [id],
    );
  }
});
