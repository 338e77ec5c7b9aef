// Asynchronous tools: a run that finishes with its call open, and the result that comes later, from anywhere.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open, pending } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { keyValueService } from './key-value-service.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const LATE = '[Late output of a tool, not written by the user]';
const DAYS = 3 * 24 * 3_600_000;
const addressOf = (lane, dialect) =>
  ({
    'openai-chat': lane.chat,
    'openai-responses': `${lane.base}/v1/responses`,
    anthropic: lane.messages,
    mistral: `${lane.base}/mistral/v1/chat/completions`,
    gemini: `${lane.base}/v1beta/models/gemini-2.5-pro:generateContent`,
  })[dialect];
const providerOf = (lane, dialect) => ({
  dialect,
  url: addressOf(lane, dialect),
  stream: false,
  params: dialect === 'gemini' ? {} : { model: 'm', ...(dialect === 'anthropic' ? { max_tokens: 99 } : {}) },
});
const parameters = { type: 'object', properties: {} };
const exporting = { export_rows: { description: 'Exports.', parameters, async: true, execute: () => pending } };
const itemsOf = (body) => body.messages ?? body.input ?? body.contents;
const steps = (dialect) => [
  { text: 'Starting.', calls: [{ name: 'export_rows', arguments: {} }] },
  ...(dialect === 'openai-responses' ? [] : [{ text: 'It runs.' }]),
  { text: 'Not yet.' },
  { text: 'Seven rows.' },
  { text: 'Welcome.' },
];

let lanes = 0;
async function laneFor(script) {
  const lane = laneOf(standIn.url, `async-${(lanes += 1)}`);
  await lane.script(script);
  return lane;
}
/** A process of its own, some days later. */
async function process(store, days = 0) {
  const client = await open({ store, now: () => 1_700_000_000_000 + days * DAYS });
  return { client, session: await client.session('s') };
}
const ask = async (session, provider, input, tools = exporting) =>
  drive(await session.run({ input, provider, tools })).result;

for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral']) {
  test(`r75 ${dialect}: a call stays open over turns and processes, and its result goes out once`, {
    timeout: 20_000,
  }, async () => {
    const lane = await laneFor(steps(dialect));
    const provider = providerOf(lane, dialect);
    const store = keyValueService();
    const first = await process(store);
    const result = await ask(first.session, provider, 'Export, please');
    assert.equal(result.status, 'finished');
    const [call] = result.openCalls;
    assert.equal(call.name, 'export_rows');
    await ask(first.session, provider, 'How far?');
    const shown = (session) =>
      session
        .view()
        .getSnapshot()
        .messages.flatMap(({ parts }) => parts)
        .filter(({ type }) => type === 'tool');
    assert.deepEqual(
      shown(first.session).map(({ awaitingResult, call: { status } }) => [awaitingResult, status]),
      [[true, 'pending']],
    );
    assert.equal((await first.client.invocations({ status: 'pending' })).items.length, 1);

    // Days later, in another process, by the id of the invocation.
    const second = await process(store, 1);
    await second.session.answer(call.invocationId, { type: 'tool_result', content: { rows: 7001 } });
    await assert.rejects(second.session.answer(call.invocationId, { type: 'tool_result', content: 'again' }), {
      code: 'wrong_state',
    });
    await assert.rejects(second.session.answer('nobody', { type: 'tool_result', content: 1 }), { code: 'not_found' });
    assert.deepEqual(
      (await second.client.invocations({})).items.map(({ status }) => status),
      ['ok'],
    );
    assert.equal((await ask(second.session, provider, 'And now?')).text, 'Seven rows.');
    await ask(second.session, provider, 'Thanks');

    const requests = await lane.requests();
    for (const { status } of requests) assert.equal(status, 200);
    const bodies = requests.map(({ body }) => body);
    for (const body of bodies)
      assert.equal(/Interrupted|Not run/.test(JSON.stringify(body)), false, 'never a false interruption');
    const [before, after] = [itemsOf(bodies.at(-2)), itemsOf(bodies.at(-1))];
    assert.deepEqual(after.slice(0, before.length), before, 'the prefix stays');
    const texts = after.map((item) => JSON.stringify(item));
    const at = texts.flatMap((text, index) => (text.includes('7001') ? [index] : []));
    assert.equal(at.length, 1, 'once');
    assert.equal(texts[at[0]].includes(LATE), dialect !== 'openai-responses');
    if (dialect === 'openai-responses') {
      assert.equal(after[at[0]].type, 'function_call_output');
      assert.equal(bodies[0].tools[0].async, true);
      assert.equal(after.find(({ type }) => type === 'function_call').async, true);
    } else {
      assert.equal(JSON.stringify(bodies.at(-1)).includes('Pending: this tool is still running.'), true);
    }
    assert.deepEqual(
      shown(second.session).map(({ awaitingResult, call: { status } }) => [awaitingResult, status]),
      [[false, 'ok']],
    );
    // A copy sends the same.
    const copy = await (await open({ store: 'memory', now: () => 1_700_000_000_000 + DAYS })).importSession(
      await second.client.exportSession('s'),
    );
    const { body } = await copy.render({ dialect, params: provider.params });
    const copied = itemsOf(JSON.parse(new TextDecoder().decode(body)));
    assert.deepEqual(copied.slice(0, after.length), after);
    for (const { client } of [first, second]) await client.close();
  });
}

/** A tool that runs until the test lets it return. */
function heldTool() {
  const held = {};
  const released = new Promise((resolve) => {
    held.release = resolve;
  });
  held.started = new Promise((resolve) => {
    const execute = async () => {
      resolve();
      await released;
      return 'own result';
    };
    held.tools = { export_rows: { ...exporting.export_rows, execute } };
  });
  return held;
}

for (const persistence of ['run', 'call', 'result']) {
  for (const [where, flushMs] of [
    ['here', 0],
    ['elsewhere', 0],
    ['elsewhere', 50],
  ]) {
    const name = `persistence "${persistence}", ${where}, flushMs ${flushMs}`;
    test(`r75 a call that is answered while its tool runs has the first of the two results: ${name}`, {
      timeout: 20_000,
    }, async () => {
      const lane = await laneFor([
        { calls: [{ name: 'export_rows', arguments: {} }] },
        { text: 'Done.' },
        { text: 'Welcome.' },
      ]);
      const provider = providerOf(lane, 'openai-chat');
      const store = keyValueService();
      const [first, second] = [await process(store), await process(store)];
      const session = await first.client.session('s', { persistence, flushMs });
      const { tools, started, release } = heldTool();
      const run = await session.run({ input: 'Export, please', provider, tools });
      const driven = drive(run);
      await started;
      const [call] = run.effects().filter(({ type }) => type === 'run_tool');
      // What flushMs deferred is stored after that time.
      await new Promise((resolve) => setTimeout(resolve, flushMs * 4));
      const answers = where === 'here' ? session : second.session;
      await answers.answer(call.invocationId, { type: 'tool_result', content: 'from outside' });
      await assert.rejects(answers.answer(call.invocationId, { type: 'tool_result', content: 'again' }), {
        code: 'wrong_state',
      });
      release();
      const result = await driven.result;
      assert.equal(result.status, 'finished');
      assert.deepEqual(
        result.report
          .filter(({ code }) => code === 'duplicate_result')
          .map(({ severity, callId }) => [severity, callId]),
        [['warning', call.callId]],
      );
      await ask(session, provider, 'Thanks');
      const bodies = (await lane.requests()).map(({ body }) => JSON.stringify(body));
      assert.deepEqual(
        bodies.map((body) => [body.split('from outside').length - 1, body.includes('own result')]),
        [
          [0, false],
          [1, false],
          [1, false],
        ],
      );
      assert.deepEqual(
        (await second.client.invocations({ payload: true })).items.map(({ status, result: stored }) => [
          status,
          stored.content,
        ]),
        [['ok', 'from outside']],
      );
      for (const { client } of [first, second]) await client.close();
    });
  }
}

test('r75 append rejects the result of a tool for which a run waits, as answer does', { timeout: 20_000 }, async () => {
  for (const persistence of ['run', 'call', 'result']) {
    const lane = await laneFor([{ calls: [{ name: 'export_rows', arguments: {} }] }, { text: 'Done.' }]);
    const store = keyValueService();
    const [first, second] = [await process(store), await process(store)];
    const session = await first.client.session('s', { persistence });
    const held = heldTool();
    const tools = { export_rows: { ...held.tools.export_rows, async: false } };
    const run = await session.run({ input: 'Export, please', provider: providerOf(lane, 'openai-chat'), tools });
    const driven = drive(run);
    await held.started;
    const [call] = run.effects().filter(({ type }) => type === 'run_tool');
    const message = [{ role: 'tool', tool_call_id: call.callId, content: 'appended' }];
    for (const appends of [session, second.session])
      await assert.rejects(appends.append(message, 'openai-chat'), { code: 'wrong_state' }, persistence);
    held.release();
    assert.equal((await driven.result).status, 'finished');
    const bodies = (await lane.requests()).map(({ body }) => JSON.stringify(body));
    assert.deepEqual([bodies.at(-1).includes('own result'), bodies.at(-1).includes('appended')], [true, false]);
    for (const { client } of [first, second]) await client.close();
  }
});
