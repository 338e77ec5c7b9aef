// r53: who has stored a call stays known when the history is rewritten: by `popItem`, by transactions and mutations, and
// by a result that comes late.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, RunContext, Runner, RunState, setTracingDisabled } from '@openai/agents';
import { once } from 'rethread/once';
import { agentsSession } from 'rethread/openai-agents';
import { call, elsewhere, lookTool, newSession, result, said, ScriptedModel, user } from './agents.mjs';

setTracingDisabled(true);
const MAY_HAVE_RUN = /^Interrupted: this call has no recorded result\. It may or may not have run/;
const edited = call('a', { arguments: '{"edited":true}' });

/** A run that waits for the approval of the call a, whose answer has another part after it. */
async function waitingRun(kind) {
  const { session, agents } = await newSession();
  const ran = [];
  const model = new ScriptedModel([[call('a'), said('Shall I?')]]);
  const plain = new Agent({ name: 'A', model, tools: [lookTool(ran, { needsApproval: true })] });
  const agent = kind === 'durable' ? agents.durable(plain) : plain;
  const waiting = (await new Runner().run(agent, 'q', { session: agents })).state.toString();
  assert.deepEqual(await agents.getItems(), [user('q'), call('a'), said('Shall I?')]);
  const approve = async () => {
    const state = await RunState.fromString(agent, waiting);
    for (const interruption of state.getInterruptions()) state.approve(interruption);
    return new Runner().run(agent, state, { session: agents });
  };
  return { session, agents, agent, model, ran, approve };
}

/** The results that a run of the session is given. */
async function resultsOfRun(session) {
  const items = await agentsSession(session).getItems(undefined, new RunContext());
  return items.filter(({ type }) => type === 'function_call_result').map(({ output }) => output.text);
}

const transaction = (expectedSuffix, replacement) => ({
  operationId: 'op',
  transaction: { type: 'replace_suffix', expectedSuffix, replacement },
});

describe('r53 the open call of a run is no unknown one', () => {
  const rewrites = {
    'after popItem of what follows it': ({ agents }) => agents.popItem(),
    'that a mutation rewrites': ({ agents }) =>
      agents.applyHistoryMutations({
        mutations: [{ type: 'replace_function_call', callId: 'a', replacement: edited }],
      }),
    'that a transaction of the run rewrites': ({ agents }) =>
      agents.applyHistoryTransaction(
        transaction([call('a'), said('Shall I?')], [edited, said('Shall I now?')]),
        new RunContext(),
      ),
    'that a transaction of the application rewrites': ({ agents }) =>
      agents.applyHistoryTransaction(transaction([call('a'), said('Shall I?')], [edited])),
    'when a transaction replaces what follows it': ({ agents }) =>
      agents.applyHistoryTransaction(transaction([said('Shall I?')], [said('May I?')])),
  };
  for (const [name, rewrite] of Object.entries(rewrites)) {
    for (const kind of ['plain', 'durable']) {
      test(`r53 ${name}, in a ${kind} run, and runs once when it is approved`, async () => {
        const chat = await waitingRun(kind);
        await rewrite(chat);
        assert.deepEqual(await resultsOfRun(chat.session), []);
        chat.model.answers.push([said('meanwhile')], [said('done')]);
        await new Runner().run(chat.agent, 'hello?', { session: chat.agents });
        assert.ok(!JSON.stringify(chat.model.requests.at(-1)).includes('Interrupted'));
        await chat.approve();
        assert.deepEqual(chat.ran, ['look']);
        assert.deepEqual(await resultsOfRun(chat.session), ['seen']);
      });
    }
  }

  test('r53 beside a result that comes late', async () => {
    const { session, agents } = await newSession();
    const ran = [];
    let end;
    const until = new Promise((resolve) => (end = resolve));
    const execute = async () => {
      ran.push('look');
      await until;
      return 'seen';
    };
    const run = new RunContext();
    await agents.addItems([user('q'), call('a')], run);
    const agent = agents.durable(
      new Agent({ name: 'A', model: new ScriptedModel([]), tools: [lookTool([], { execute })] }),
    );
    const output = agent.tools[0].invoke(run, '{}', { toolCall: call('a') });
    while (!ran.length) await new Promise((resolve) => setTimeout(resolve, 5));
    // Another process tells its model that the call was interrupted; that model calls again and waits for a person.
    const other = agentsSession(elsewhere(session));
    const read = await other.getItems(undefined, new RunContext());
    await other.addItems([read[2], call('b')], new RunContext());
    end();
    assert.equal(await output, 'seen');
    assert.deepEqual(await agents.getItems(), [
      user('q'),
      call('a'),
      result('a', { type: 'text', text: 'seen' }),
      call('b'),
    ]);
    assert.deepEqual(await resultsOfRun(session), ['seen']);
  });
});

test('r53 popItem while a tool is running does not let it run again, and its result is stored', async () => {
  const { session, agents } = await newSession();
  const ran = [];
  let end;
  const until = new Promise((resolve) => (end = resolve));
  const execute = async () => {
    ran.push('look');
    await until;
    return 'seen';
  };
  const model = new ScriptedModel([[call('a'), said('I look.')], [said('done')]]);
  const agent = agents.durable(new Agent({ name: 'A', model, tools: [lookTool([], { execute })] }));
  const running = new Runner().run(agent, 'q', { session: agents });
  while (!ran.length) await new Promise((resolve) => setTimeout(resolve, 5));
  // The last item is the text that the call was interrupted: the tool is under way.
  const other = agentsSession(elsewhere(session));
  await other.addItems([user('What do you do?')]);
  assert.deepEqual(await other.popItem(), user('What do you do?'));
  const late = other.durable(new Agent({ name: 'A', model, tools: [lookTool([], { execute })] }));
  assert.match(await late.tools[0].invoke(new RunContext(), '{}', { toolCall: call('a') }), /^Interrupted: /);
  end();
  assert.equal((await running).finalOutput, 'done');
  assert.deepEqual(ran, ['look']);
  assert.deepEqual(await resultsOfRun(session), ['seen']);
});

test('r53 an imported call stays one that may have run, whoever rewrites what follows it', async () => {
  const rewrites = [
    (agents) => agents.popItem(),
    (agents) => agents.applyHistoryTransaction(transaction([said('later')], [said('replaced')]), new RunContext()),
    (agents) => agents.applyHistoryTransaction(transaction([call('a'), said('later')], [edited])),
  ];
  for (const rewrite of rewrites) {
    const { session, agents } = await newSession();
    await agents.addItems([user('q'), call('a'), said('later')]);
    await rewrite(agents);
    const [told, ...more] = await resultsOfRun(session);
    assert.match(told, MAY_HAVE_RUN);
    assert.deepEqual(more, []);
    // A run that continues the same answer does not make the call its own.
    await agents.addItems([call('b')], new RunContext());
    await agents.applyHistoryTransaction(
      { ...transaction([call('b')], [call('b'), call('c')]), operationId: 'op 2' },
      new RunContext(),
    );
    assert.equal((await resultsOfRun(session)).length, 1);
  }
});

test('r53 r18 a call of another program is not started by once after popItem has rewritten its message', async () => {
  const { session, agents } = await newSession();
  const source = { type: 'history', id: 'elsewhere' };
  const parts = [
    { type: 'tool', callId: 'a', name: 'look', arguments: {} },
    { type: 'text', text: 'later' },
  ];
  await session.append([{ role: 'assistant', parts, source }]);
  assert.deepEqual(await agents.popItem(), said('later'));
  const ran = [];
  const look = once(session, { name: 'look', execute: () => ran.push('look') });
  await assert.rejects(look({}, { callId: 'a' }), { code: 'wrong_state' });
  assert.deepEqual(ran, []);
  assert.equal((await session.messages()).items.at(0).source.type, 'history');
});

test('r53 what a compaction keeps is not shown again after popItem', async () => {
  const { session, agents } = await newSession();
  await agents.addItems([user('q'), said('one'), user('q 2'), said('two')]);
  const compacted = [{ type: 'compaction', encrypted_content: 'sealed' }, user('q 2'), said('two')];
  await agents.replaceHistoryWithCompaction(compacted);
  await agents.addItems([said('three')]);
  for (const left of [2, 1, 0]) {
    await agents.popItem();
    if (left === 2) assert.deepEqual(await agents.popItem(), said('two'));
    assert.deepEqual(await agents.getItems(), compacted.slice(0, Math.min(left, 2)));
    const texts = (await session.messages()).items.flatMap(({ parts }) => parts.flatMap(({ text }) => text ?? []));
    assert.deepEqual(texts, ['q', 'one', 'q 2', 'two']);
  }
});
