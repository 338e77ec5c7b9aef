// When history is written, through JavaScript: modes "run", "call" and "result".

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { until } from './scenarios/kit.mjs';

const MODES = ['run', 'call', 'result'];
const TOOL_THEN_TEXT = [{ calls: [{ name: 'f', arguments: {} }] }, { text: 'All done.', gate: 'go', atPiece: 1 }];

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

async function chat(name, { stream = true, options, steps = TOOL_THEN_TEXT } = {}) {
  const lane = laneOf(standIn.url, name);
  await lane.script(steps);
  const client = await open({ store: 'memory' });
  const session = await client.session('s', options);
  return {
    lane,
    client,
    session,
    provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream },
  };
}
const tool = (execute, more) => ({ f: { parameters: { type: 'object', properties: {} }, execute, ...more } });
const shown = (session) =>
  session
    .view()
    .getSnapshot()
    .messages.map(({ role, saved, parts }) =>
      [role, saved, ...parts.filter(({ type }) => type === 'tool').map(({ call }) => call.status)].join(' '),
    );

test('r16_r17 each mode through JavaScript: the same requests, its own appends', { timeout: 20_000 }, async () => {
  const asked = [];
  for (const persistence of MODES) {
    const { lane, session, provider } = await chat(`modes-${persistence}`, { options: { persistence } });
    const atTool = [];
    const execute = () => {
      atTool.push(session.revision, ...shown(session));
      return 5;
    };
    const driven = drive(await session.run({ input: 'x', provider, tools: tool(execute) }));
    await until(async () => (await lane.waiting()).length);
    await until(() => session.view().getSnapshot().messages.length === 3);
    const isStored = persistence !== 'run';
    assert.deepEqual(atTool, [isStored ? 1 : 0, `user ${isStored}`, `assistant ${isStored} pending`], persistence);
    // The view shows the result, whatever history has of it.
    assert.deepEqual(shown(session), [`user ${isStored}`, `assistant ${isStored} ok`, 'assistant false'], persistence);
    const snapshot = session.view().getSnapshot();
    session.subscribe(() => {})();
    assert.equal(session.view().getSnapshot(), snapshot);
    const {
      items: [stored],
    } = await session.invocations();
    assert.equal(stored?.status, { run: undefined, call: 'pending', result: 'ok' }[persistence]);
    await lane.openGate('go');
    const events = [];
    for await (const event of driven) events.push(event.type);
    const { status, saved, messageIds } = await driven.result;
    assert.deepEqual([status, saved, messageIds.length], ['finished', true, 3]);
    const appends = { run: 1, call: 2, result: 3 }[persistence];
    assert.deepEqual([session.revision, events.filter((type) => type === 'saved').length], [appends, appends]);
    assert.deepEqual(shown(session), ['user true', 'assistant true ok', 'assistant true']);
    const messages = (await session.messages()).items;
    assert.deepEqual(
      messages.map(({ id }) => id),
      messageIds,
    );
    asked.push((await lane.requests()).map(({ bodyText }) => bodyText.replaceAll(/"call_[^"]*"/g, '"id"')));
  }
  assert.deepEqual(asked[1], asked[0]);
  assert.deepEqual(asked[2], asked[0]);
});

test('r16_r18 a run that is resumed keeps its mode, and nothing is stored twice', { timeout: 20_000 }, async () => {
  for (const persistence of MODES) {
    const { lane, session, provider } = await chat(`resumed-${persistence}`);
    let ran = 0;
    const tools = tool(() => {
      ran += 1;
      return 5;
    });
    const run = await session.run({ input: 'x', provider, tools, persistence });
    const driven = drive(run);
    await until(async () => (await lane.waiting()).length);
    run[Symbol.dispose]();
    await driven.result.catch(() => {});
    await lane.openGate('go');
    const [pending] = await session.pendingRuns();
    assert.equal(pending.id, run.id);
    await lane.script([{ text: 'All done.' }]);
    const resumed = await drive(await session.resume(run.id, { provider, tools })).result;
    assert.deepEqual([resumed.status, resumed.turns, ran], ['finished', 2, 1], JSON.stringify(resumed.error));
    assert.equal(session.revision, { run: 1, call: 2, result: 3 }[persistence]);
    assert.deepEqual(shown(session), ['user true', 'assistant true ok', 'assistant true']);
    assert.deepEqual(await session.pendingRuns(), []);
  }
});

test('r16_r18 a resumed run ends in its own mode, not in the mode of the session', { timeout: 20_000 }, async () => {
  const { lane, session, provider } = await chat('own-mode', {
    options: { persistence: 'call', replay: { citations: 'store' } },
  });
  const tools = tool(() => 5);
  const run = await session.run({ input: 'x', provider, tools, persistence: 'run' });
  const driven = drive(run);
  await until(async () => (await lane.waiting()).length);
  run[Symbol.dispose]();
  await driven.result.catch(() => {});
  await lane.openGate('go');
  await lane.script([{ text: 'All done.' }]);
  assert.equal((await drive(await session.resume(run.id, { provider, tools })).result).status, 'finished');
});

test('r16 trailing results are trimmed by option; a discarded run leaves its calls as interrupted', {
  timeout: 20_000,
}, async () => {
  const { session, provider } = await chat('trim', {
    options: { trimTrailingResults: true },
    steps: [{ calls: [{ name: 'f', arguments: {} }] }],
  });
  const { status } = await drive(await session.run({ input: 'x', provider, tools: tool(() => 5, { endsRun: true }) }))
    .result;
  assert.equal(status, 'finished');
  const {
    items: [trimmed],
  } = await session.invocations({ payload: true });
  assert.deepEqual([trimmed.status, trimmed.result], ['pending', null]);

  const cut = await chat('discard', { options: { persistence: 'call' } });
  let started;
  const held = new Promise((resolve) => {
    started = resolve;
  });
  const run = await cut.session.run({
    input: 'x',
    provider: cut.provider,
    tools: tool(() => {
      started();
      return new Promise(() => {});
    }),
  });
  const driven = drive(run);
  await held;
  run[Symbol.dispose]();
  await driven.result.catch(() => {});
  await cut.session.discard(run.id);
  const {
    items: [left],
  } = await cut.session.invocations();
  assert.equal(left.status, 'interrupted');
  assert.deepEqual(await cut.session.pendingRuns(), []);
  const { body } = await cut.session.render({ dialect: 'openai-chat', input: 'y' });
  assert.match(new TextDecoder().decode(body), /may or may not have run/);
});
