// R70 through JavaScript: what becomes of reasoning whose prefix has changed.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { startStandIn } from '../stand-in/server.mjs';

const BETA = 'thinking-binding-controls-2026-08-01';
const DROP = { prefix_mismatch_behavior: 'drop_block' };
const CLAUDE = { dialect: 'anthropic', path: 'messages', params: { model: 'claude-opus-5-5', max_tokens: 99 } };
const GPT = {
  dialect: 'openai-responses',
  path: 'responses',
  params: { model: 'gpt-6.2-sol', store: false, include: ['reasoning.encrypted_content'] },
};

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

let laneCount = 0;
/** A session with a service that binds reasoning; each answer thinks. `ask(input, request)` resolves to {status,
 *  report, warnings, sent}. */
async function chat(options = {}) {
  const name = `reasoning${(laneCount += 1)}`;
  const lane = standIn.state.lane(name);
  Object.assign(lane.options, { binding: true, delayMs: 0 });
  const store = options.store ?? 'memory';
  const client = await open({ store });
  const session = await client.session('s');
  const ask = async (input, { vendor = CLAUDE, headers, params, stream = false, driveHeaders, ...request } = {}) => {
    const url = `${standIn.url}/lane/${name}/v1/${vendor.path}`;
    lane.script = [{ thinking: { text: `About ${input}` }, text: `To ${input}` }];
    const provider = { dialect: vendor.dialect, url, stream, headers, params: { ...vendor.params, ...params } };
    const warnings = [];
    const driven = drive(
      await session.run({ input, provider, instructions: 'Be brief.', retry: { attempts: 1 }, ...request }),
      { headers: driveHeaders },
    );
    for await (const event of driven) if (event.type === 'warning') warnings.push(event.finding);
    const { status, report } = await driven.result;
    const sent = lane.requests.at(-1);
    return { status, report, warnings, sent, thinking: thinkingIn(sent.body) };
  };
  return { ask, session, client, lane };
}

/** The number of pieces of reasoning in a body. */
function thinkingIn(body) {
  const blocks = (body.messages ?? body.input).flatMap((item) =>
    Array.isArray(item.content) ? [item, ...item.content] : [item],
  );
  return blocks.filter(({ type }) => type === 'thinking' || type === 'reasoning').length;
}

const codes = (report) =>
  report.map(({ code, changedBy, path, reason }) => ({
    code,
    ...(changedBy && { changedBy }),
    ...(path && { path }),
    ...(reason && { reason }),
  }));
const CHANGED = { instructions: 'Be long.' };

test('r70 "omit" is the default: reasoning goes back, and where the instructions changed it is left out and reported', async () => {
  for (const vendor of [CLAUDE, GPT]) {
    const { ask, client } = await chat();
    await ask('one', { vendor });
    assert.equal((await ask('two', { vendor })).thinking, 1);
    const changed = await ask('three', { vendor, ...CHANGED });
    assert.deepEqual([changed.status, changed.thinking, changed.sent.dropped], ['finished', 0, []]);
    const unbound = { code: 'reasoning_unbound', changedBy: 'instructions' };
    assert.deepEqual(codes(changed.report), [unbound, unbound]);
    assert.equal((await ask('four', { vendor, ...CHANGED })).thinking, 1, 'what was made for it goes back');
    await client.close();
  }
});

test('r70 "send" sends it: one service refuses the request, which is healed, and the other drops the reasoning, which is a warning', async () => {
  const { ask } = await chat();
  await ask('one');
  const healed = await ask('two', { ...CHANGED, replay: { unboundReasoning: 'send' } });
  assert.deepEqual(
    [healed.status, healed.thinking, healed.warnings.map(({ code }) => code)],
    ['finished', 0, ['healed']],
  );
  for (const stream of [false, true]) {
    const { ask: askGpt } = await chat();
    await askGpt('one', { vendor: GPT });
    const { status, thinking, warnings } = await askGpt('two', {
      vendor: GPT,
      stream,
      ...CHANGED,
      replay: { unboundReasoning: 'send' },
    });
    assert.deepEqual([status, thinking], ['finished', 1]);
    assert.deepEqual(codes(warnings), [{ code: 'reasoning_dropped', path: '/input/1', reason: 'prefix_mismatch' }]);
    assert.equal(warnings[0].severity, 'warning');
  }
});

test('r70 "drop_block" sets the parameter and the header, and the session remembers it', async () => {
  for (const stream of [false, true]) {
    const { ask, session, client, lane } = await chat();
    await ask('one', { stream });
    assert.equal((await ask('two', { stream })).sent.headers['anthropic-beta'], undefined);
    const dropped = await ask('three', { stream, ...CHANGED, replay: { unboundReasoning: 'drop_block' } });
    assert.deepEqual(dropped.sent.body.thinking, { type: 'adaptive', block_binding: DROP });
    assert.deepEqual([dropped.status, dropped.thinking, dropped.sent.headers['anthropic-beta']], ['finished', 2, BETA]);
    const reason = 'prefix_binding_mismatch';
    const found = [1, 3].map((at) => ({ code: 'reasoning_dropped', path: `/messages/${at}/content/0`, reason }));
    assert.deepEqual(codes(dropped.report), found);
    assert.deepEqual(
      dropped.report.map(({ severity, action }) => [severity, action]),
      [
        ['info', 'dropped'],
        ['info', 'dropped'],
      ],
    );
    assert.deepEqual(dropped.warnings, []);

    const later = await ask('four', { stream, ...CHANGED });
    assert.deepEqual(
      [later.thinking, later.sent.body.thinking.block_binding, later.sent.headers['anthropic-beta']],
      [3, DROP, BETA],
    );
    const { body, headers } = await session.render({ input: 'five', dialect: 'anthropic', params: CLAUDE.params });
    assert.deepEqual(JSON.parse(new TextDecoder().decode(body)).thinking.block_binding, DROP);
    assert.deepEqual(headers, { 'anthropic-beta': BETA });
    const omitted = await ask('five', { replay: { unboundReasoning: 'omit' } });
    assert.deepEqual(
      [omitted.status, omitted.sent.body.thinking, omitted.sent.headers['anthropic-beta']],
      ['finished', undefined, undefined],
    );
    assert.equal(lane.requests.filter(({ status }) => status === 400).length, 0);
    await client.close();
  }
});

test('r70 "drop_block" keeps what the application sets: other beta headers, how thinking is shown', async () => {
  const { ask } = await chat();
  const request = {
    replay: { unboundReasoning: 'drop_block' },
    params: { thinking: { type: 'adaptive', display: 'summarized' } },
  };
  const own = await ask('one', { ...request, headers: { 'anthropic-beta': 'a-beta' } });
  assert.equal(own.sent.headers['anthropic-beta'], `a-beta, ${BETA}`);
  assert.deepEqual(own.sent.body.thinking, { type: 'adaptive', display: 'summarized', block_binding: DROP });
  const host = await ask('two', {
    ...request,
    headers: { 'anthropic-beta': 'a-beta' },
    driveHeaders: { 'Anthropic-Beta': 'b-beta,a-beta' },
  });
  assert.equal(host.sent.headers['anthropic-beta'], `a-beta, ${BETA}, b-beta`);
});

test('r70 "drop_block" is as "omit" where the service has no such parameter, or does not think', async () => {
  const drop = { replay: { unboundReasoning: 'drop_block' } };
  for (const [vendor, params] of [
    [GPT, {}],
    [CLAUDE, { model: 'claude-haiku-5-5', thinking: { type: 'disabled' } }],
    [CLAUDE, { model: 'claude-sonnet-5-5', thinking: { type: 'between_tools' } }],
  ]) {
    const { ask } = await chat();
    await ask('one', { vendor, params, ...drop });
    const { status, thinking, sent, report } = await ask('two', { vendor, params, ...drop, ...CHANGED });
    assert.deepEqual([status, thinking, sent.headers['anthropic-beta']], ['finished', 0, undefined]);
    assert.equal(sent.body.thinking?.block_binding, undefined);
    assert.deepEqual(codes(report), [{ code: 'reasoning_unbound', changedBy: 'instructions' }]);
  }
});

test('r70 a model that binds nothing gets all reasoning, without the parameter', async () => {
  const { ask } = await chat();
  const params = { model: 'claude-opus-4-6', thinking: { type: 'adaptive' } };
  await ask('one', { params });
  const { thinking, sent } = await ask('two', { params, ...CHANGED, replay: { unboundReasoning: 'drop_block' } });
  assert.deepEqual(
    [thinking, sent.body.thinking, sent.headers['anthropic-beta']],
    [1, { type: 'adaptive' }, undefined],
  );
});

test('r70 a render with "drop_block" is remembered: at once in its session, and by the next append in every process', async () => {
  const store = new MemoryLogStore();
  const [client, other] = [await open({ store }), await open({ store })];
  const rendered = async (session, request) => {
    const { body, headers } = await session.render({ dialect: 'anthropic', params: CLAUDE.params, ...request });
    return [JSON.parse(new TextDecoder().decode(body)).thinking?.block_binding, headers];
  };
  const dropping = [DROP, { 'anthropic-beta': BETA }];
  const [plain, session] = [await client.session('plain'), await client.session('s')];
  const answer = {
    messages: [
      { role: 'user', content: 'one' },
      { role: 'assistant', content: 'To one' },
    ],
  };
  assert.deepEqual(await rendered(session, { input: 'one', replay: { unboundReasoning: 'drop_block' } }), dropping);
  assert.deepEqual(await rendered(session, { input: 'one' }), dropping, 'before the append');
  await session.append(answer, 'anthropic');
  await plain.append(answer, 'anthropic');
  assert.deepEqual(await rendered(session, { input: 'two' }), dropping);
  assert.deepEqual(await rendered(await other.session('s'), { input: 'two' }), dropping, 'in another process');
  assert.deepEqual(await rendered(session, { input: 'two', replay: { unboundReasoning: 'omit' } }), [
    undefined,
    undefined,
  ]);
  assert.deepEqual(await rendered(await other.session('plain'), { input: 'two' }), [undefined, undefined]);
  await Promise.all([client.close(), other.close()]);
});

test('r70 a render with "drop_block" is remembered also if the next history comes of a run', async () => {
  const { ask, session, client } = await chat();
  await session.render({
    dialect: 'anthropic',
    params: CLAUDE.params,
    input: 'one',
    replay: { unboundReasoning: 'drop_block' },
  });
  for (const input of ['one', 'two']) assert.deepEqual((await ask(input)).sent.body.thinking.block_binding, DROP);
  await client.close();
});
