// R31 through JavaScript: a run is handed off to another agent, by a tool that `drive` executes, and resumed by another
// process.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { drive } from 'rethread/host';
import { open } from 'rethread';

const decode = (bytes) => JSON.parse(new TextDecoder().decode(bytes));
const code = (expected) => (error) => error.code === expected;
const provider = { dialect: 'openai-chat', url: 'https://model.example/v1/chat/completions', params: { model: 'm' } };
const text = (content) => ({ role: 'assistant', content });
const call = (id, name) => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name, arguments: '{}' } }],
});

/** A model: triage transfers, billing looks the invoice up, then answers. */
function model() {
  const bodies = [];
  const fetch = async (_url, init) => {
    const body = decode(init.body);
    bodies.push(body);
    const isTriage = body.messages[0].content === 'You are triage.';
    const message = isTriage
      ? call('call_t', 'transfer')
      : body.messages.at(-1).role === 'tool' && body.messages.at(-1).tool_call_id === 'call_i'
        ? text('Paid.')
        : call('call_i', 'invoice');
    return Response.json({
      id: 'c',
      object: 'chat.completion',
      model: 'm',
      choices: [{ index: 0, message, finish_reason: message.tool_calls ? 'tool_calls' : 'stop' }],
    });
  };
  return { bodies, fetch };
}

const billing = (more = {}) => ({
  name: 'billing',
  instructions: 'You are billing.',
  tools: { invoice: { execute: () => 'No. 7' } },
  ...more,
});

/** A run whose tool `transfer` hands it off. */
async function handedOff(session, handoff, outcomes = []) {
  const holder = {};
  const execute = async () => {
    await holder.run.handoff(handoff);
    await holder.run.handoff({ name: 'late' }).catch((error) => outcomes.push(error.code));
    return 'Transferred.';
  };
  holder.run = await session.run({
    input: 'Is it paid?',
    instructions: 'You are triage.',
    provider,
    tools: { transfer: { execute } },
  });
  return holder.run;
}

const shown = (body) =>
  body.messages.map(({ role, content, tool_calls: calls }) => `${role}: ${content ?? calls[0].id}`);

async function newSession(step) {
  const rethread = await open({ store: 'memory' });
  step.after(() => rethread.close());
  return rethread.session('s');
}

test('r31 a tool hands the run off, through drive', async (step) => {
  const session = await newSession(step);
  const { bodies, fetch } = model();
  const outcomes = [];
  const run = await handedOff(session, billing(), outcomes);
  const result = await drive(run, { fetch }).result;
  assert.equal(result.status, 'finished', result.error?.message);
  assert.equal(result.text, 'Paid.');
  assert.deepEqual(outcomes, ['wrong_state']);
  assert.deepEqual(
    bodies.map((body) => [body.messages[0].content, body.tools.map((tool) => tool.function.name)]),
    [
      ['You are triage.', ['transfer']],
      ['You are billing.', ['invoice']],
      ['You are billing.', ['invoice']],
    ],
  );
  const { items } = await session.messages();
  assert.deepEqual(
    items.map(({ role, agent }) => [role, agent]),
    [
      ['user', undefined],
      ['assistant', undefined],
      ['assistant', 'billing'],
      ['assistant', 'billing'],
    ],
  );
  assert.deepEqual(
    session
      .view()
      .getSnapshot()
      .messages.map(({ agent }) => agent),
    [undefined, undefined, 'billing', 'billing'],
  );
  await assert.rejects(run.handoff(billing()), code('wrong_state'));
});

test('r31 a filter and a nested history', async (step) => {
  const session = await newSession(step);
  const { bodies, fetch } = model();
  let calls = 0;
  const inputFilter = (messages) => {
    calls += 1;
    assert.equal(messages[1].parts[0].name, 'transfer');
    assert.equal(messages[1].parts[0].result.content, 'Transferred.');
    return [...messages, { role: 'assistant', parts: [{ type: 'text', text: 'Transferred to billing.' }] }];
  };
  const result = await drive(await handedOff(session, billing({ inputFilter, nestHistory: true })), { fetch }).result;
  assert.equal(result.status, 'finished', result.error?.message);
  assert.equal(calls, 1);
  const lines =
    '1. assistant called transfer (call_t): {}\n2. result of transfer (call_t): Transferred.\n3. assistant: Transferred to billing.\n';
  assert.deepEqual(shown(bodies[1]), [
    'system: You are billing.',
    `assistant: For context, the conversation so far between the user and the agents before you:\n<conversation>\n${lines}</conversation>`,
    'user: Is it paid?',
  ]);
  assert.equal((await session.messages()).items.length, 4);
});

/** A filter that leaves the user's messages one part. */
const onlyOfUser = (part) => (messages) =>
  messages.map((message) => (message.role === 'user' ? { ...message, parts: [part] } : message));

test('r31 filters that fail, invent or double: a typed error, nothing sent, nothing stored', async (step) => {
  for (const [inputFilter, expected] of [
    [
      () => {
        throw new Error('boom');
      },
      'callback_failed',
    ],
    [
      async () => {
        throw new Error('boom');
      },
      'callback_failed',
    ],
    [() => undefined, 'callback_failed'],
    [() => 'x', 'callback_failed'],
    [(messages) => [...messages, messages[0]], 'invalid_input'],
    [
      (messages) => [
        messages[0],
        { ...messages[1], parts: [{ ...messages[1].parts[0], result: { content: 'Invented.', isError: false } }] },
      ],
      'invalid_input',
    ],
    [(messages) => [...messages, { role: 'assistant', parts: [messages[1].parts[0]] }], 'invalid_input'],
    [
      (messages) =>
        messages.map((message) => ({ ...message, parts: message.parts.filter(({ type }) => type === 'tool_call') })),
      'invalid_input',
    ],
    [onlyOfUser({ type: 'data', name: 'form', value: 1 }), 'invalid_input'],
    [onlyOfUser({ type: 'reasoning', text: 'Hm.' }), 'invalid_input'],
  ]) {
    const session = await newSession(step);
    const { bodies, fetch } = model();
    const result = await drive(await handedOff(session, billing({ inputFilter })), { fetch }).result;
    assert.equal(result.error?.code, expected, `${inputFilter}: ${result.error?.message}`);
    assert.equal(bodies.length, 1);
    assert.equal((await session.messages()).items.length, 0);
  }
});

test('r31 wrong handoffs', async (step) => {
  const session = await newSession(step);
  const run = await session.run({ input: 'Hi', provider });
  await assert.rejects(run.handoff(), code('invalid_input'));
  await assert.rejects(run.handoff({}), code('config_invalid'));
  await assert.rejects(run.handoff({ name: '' }), code('config_invalid'));
  await assert.rejects(run.handoff({ name: 'a', filter: () => [] }), code('config_invalid'));
  await assert.rejects(run.handoff({ name: 'a', inputFilter: 'x' }), code('config_invalid'));
  await run.cancel();
  await assert.rejects(session.run({ input: 'Hi', provider, handoffs: [billing()] }), code('config_invalid'));
  const rethread = await open({ store: 'memory' });
  step.after(() => rethread.close());
  const owned = await rethread.session('s', { owner: { kind: 'response', auto: true } });
  const stateful = await owned.run({ input: 'Hi', provider: { ...provider, dialect: 'openai-responses' } });
  await assert.rejects(
    stateful.handoff(billing({ inputFilter: (messages) => messages })),
    code('handoff_filter_not_supported'),
  );
  await stateful.handoff(billing({ nestHistory: true }));
  assert.ok(stateful.events().some(({ type, finding }) => type === 'warning' && /nestHistory/.test(finding.message)));
});

test('r31 a run that was handed off is resumed with its handoff, by id and from a snapshot', async (step) => {
  const session = await newSession(step);
  const { bodies, fetch } = model();
  const run = await handedOff(session, billing());
  let stop;
  const stopped = new Promise((resolve) => {
    stop = resolve;
  });
  const until = async (url, init) => {
    if (bodies.length < 2) return fetch(url, init);
    stop();
    return new Promise(() => {});
  };
  drive(run, { fetch: until }).result.catch(() => {});
  await stopped;
  const snapshot = run.snapshot();
  run[Symbol.dispose]();
  const [pending] = await session.pendingRuns();
  assert.deepEqual(pending.handoffs, ['billing']);
  const triage = { instructions: 'You are triage.', provider, tools: { transfer: { execute: () => 'x' } } };
  await assert.rejects(
    session.resume(pending.id, triage),
    (error) => error.code === 'config_invalid' && error.message.includes('"billing"'),
  );
  await assert.rejects(
    session.resume(pending.id, { ...triage, handoffs: [billing({ name: 'other' })] }),
    code('config_invalid'),
  );
  const other = await newSession(step);
  for (const resumed of [
    await session.resume(pending.id, { ...triage, handoffs: [billing()] }),
    await other.resume(snapshot, { ...triage, handoffs: [billing()] }),
  ]) {
    assert.deepEqual(Object.keys(resumed.tools), ['invoice']);
    const result = await drive(resumed, { fetch }).result;
    assert.equal(result.text, 'Paid.', result.error?.message);
    assert.equal(bodies.at(-1).messages[0].content, 'You are billing.');
  }
  for (const one of [session, other])
    assert.deepEqual(
      (await one.messages()).items.map(({ agent }) => agent),
      [undefined, undefined, 'billing', 'billing'],
    );
});
