// r18 r53: `once` in a session of the Agents SDK: what is known of a call stays known when its message is written anew.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, RunContext, Runner, RunState, setTracingDisabled, tool } from '@openai/agents';
import { once } from 'rethread/once';
import { agentsSession } from 'rethread/openai-agents';
import { beaten, call, elsewhere, newSession, result, said, ScriptedModel, user } from './agents.mjs';

setTracingDisabled(true);
const text = (value) => ({ type: 'text', text: value });
const noted = { arguments: '{"to":"ann"}' };
const toAnn = { to: 'ann' };

const transaction = (expectedSuffix, replacement) => ({
  operationId: 'op',
  transaction: { type: 'replace_suffix', expectedSuffix, replacement },
});

/** A session with the call a, whose tool runs in one process until `end` or `fail`. */
async function runningCall(answer = [call('a', noted), said('One moment.')], options) {
  const { session, agents } = await newSession();
  await agents.addItems([user('q'), ...answer], new RunContext());
  const runs = [];
  const execute = (args, context) =>
    new Promise((resolve, reject) => runs.push({ args, context, end: resolve, fail: reject }));
  const tool = { name: 'look', execute, saveTimeoutMs: 0, ...options };
  const look = once(session, tool);
  const outcome = look(toAnn, { callId: 'a' });
  outcome.catch(() => {});
  while (!runs.length) await new Promise((resolve) => setTimeout(resolve, 1));
  return { session, agents, tool, runs, look, outcome };
}

/** The same call in another process, after the one that ran it was killed. */
const again = ({ session, tool }, callId = 'a', args = toAnn) => once(elsewhere(session), tool)(args, { callId });

const invocations = async (session) => (await session.invocations({ payload: true })).items;
const resultsOf = async (agents) =>
  (await agents.getItems()).filter(({ type }) => type === 'function_call_result').map(({ output }) => output.text);
const marksOf = async (session) =>
  (await session.messages({ limit: 1000 })).items.flatMap(({ parts }) => parts.filter(({ name }) => name === 'once'));

const edited = call('a', { arguments: '{"to":"bob"}' });
const rewrites = {
  popItem: (agents) => agents.popItem(),
  'popItem twice, of what another run adds': async (agents) => {
    await agents.popItem();
    await agents.addItems([call('b')], new RunContext());
    await agents.applyHistoryMutations({
      mutations: [{ type: 'replace_function_call', callId: 'a', replacement: call('a', noted) }],
    });
    const changed = call('a', { ...noted, status: 'in_progress' });
    await agents.applyHistoryMutations({
      mutations: [{ type: 'replace_function_call', callId: 'a', replacement: changed }],
    });
    await agents.popItem();
  },
  'a transaction': (agents) =>
    agents.applyHistoryTransaction(
      transaction([call('a', noted), said('One moment.')], [said('First this:'), call('a', noted)]),
      new RunContext(),
    ),
};

describe('r18 r53 a call that once has started, and whose message is written anew', () => {
  for (const [name, rewrite] of Object.entries(rewrites)) {
    test(`r18 r53 does not run again after ${name}, and its result is stored`, async () => {
      const chat = await runningCall();
      const [{ id }] = await invocations(chat.session);
      const other = agentsSession(elsewhere(chat.session));
      await rewrite(other);
      for (const callId of ['a', id, (await invocations(chat.session))[0].id])
        await assert.rejects(again(chat, callId), {
          code: 'wrong_state',
          details: { outcome: 'unknown', callId: 'a' },
        });
      // In its own process it is waited for.
      const joined = [chat.look(toAnn, { callId: 'a' }), chat.look(toAnn, { callId: id })];
      chat.runs[0].end('seen');
      for (const outcome of [chat.outcome, ...joined]) assert.equal(await outcome, 'seen');
      assert.deepEqual(await resultsOf(chat.agents), ['seen']);
      for (const callId of ['a', id]) assert.equal(await again(chat, callId), 'seen');
      assert.equal(chat.runs.length, 1);
    });
  }

  test('r18 r53 is not lost to a rewrite that comes between its result and the erasure', async () => {
    const chat = await runningCall();
    const { session } = chat;
    // The message that is replaced cannot be erased yet.
    const kept = elsewhere(session);
    const other = agentsSession(
      new Proxy(kept, {
        get: (target, name) =>
          name === 'deleteMessages'
            ? async () => {
                throw Object.assign(new Error('a run is not over'), { code: 'busy' });
              }
            : target[name],
      }),
    );
    await other.popItem();
    chat.runs[0].end('seen');
    assert.equal(await chat.outcome, 'seen');
    assert.deepEqual(await resultsOf(chat.agents), ['seen']);
    await agentsSession(elsewhere(session)).addItems([user('q 2')]);
    await agentsSession(elsewhere(session)).popItem();
    assert.deepEqual(await resultsOf(chat.agents), ['seen']);
    assert.equal(await again(chat), 'seen');
    assert.equal(chat.runs.length, 1);
  });

  test('r18 r53 is not lost to a rewrite that comes right before its result, or at once after it was read', async () => {
    for (const moments of [[1], [1, 2]]) {
      const { session, agents } = await newSession();
      const answer = [call('a', noted), said('One moment.'), said('And another one.')];
      await agents.addItems([user('q'), ...answer], new RunContext());
      let asked = 0;
      const beforeAnswer = async (...args) => {
        asked += 1;
        if (moments.includes(asked)) await agentsSession(session).popItem();
        return session.answer(...args);
      };
      const process = new Proxy(elsewhere(session), {
        get: (target, name) => (name === 'answer' ? beforeAnswer : target[name]),
      });
      const ran = [];
      const look = once(process, { name: 'look', execute: () => ran.push('look') });
      assert.equal(await look(toAnn, { callId: 'a' }), 1);
      assert.deepEqual(await resultsOf(agents), ['1']);
    }
  });

  test('r18 r53 is unknown also if it was edited, and one that did not run after all can run', async () => {
    const chat = await runningCall();
    await chat.agents.applyHistoryMutations({
      mutations: [{ type: 'replace_function_call', callId: 'a', replacement: edited }],
    });
    await assert.rejects(again(chat, 'a', { to: 'bob' }), { code: 'wrong_state' });
    assert.equal(chat.runs.length, 1);

    const { session, agents } = await newSession();
    await agents.addItems([user('q'), call('a', noted), said('One moment.')], new RunContext());
    const abort = new AbortController();
    const process = elsewhere(session, async () => abort.abort());
    const tool = { name: 'look', execute: () => 'seen' };
    await assert.rejects(once(process, tool)(toAnn, { callId: 'a', signal: abort.signal }), { name: 'AbortError' });
    await agents.popItem();
    assert.equal(await again({ session, tool }), 'seen');
  });

  test('r18 r53 has the arguments of its tool after a rewrite, and its stored result for them', async () => {
    const { session, agents } = await newSession();
    await agents.addItems([user('q'), call('a', noted), call('b')], new RunContext());
    const tool = { name: 'look', execute: () => 'seen' };
    const args = { ...toAnn, cc: [] };
    assert.equal(await once(session, tool)(args, { callId: 'a' }), 'seen');
    await agents.addItems([result('b')], new RunContext());
    await agents.popItem();
    assert.equal(await again({ session, tool }, 'a', args), 'seen');
  });

  test('r18 r53 leaves no mark when popItem erases it', async () => {
    const chat = await runningCall();
    const other = agentsSession(beaten(chat.session, () => chat.agents.addItems([said('Just now.')])));
    for (let time = 0; time < 3; time += 1) await other.popItem();
    assert.deepEqual(await chat.agents.getItems(), [user('q')]);
    assert.deepEqual(await marksOf(chat.session), []);
    chat.runs[0].end('seen');
    await assert.rejects(chat.outcome, { code: 'not_found' });
  });
});

test('r53 an error result is one after its message was written anew', async () => {
  const { session, agents } = await newSession();
  await agents.addItems([user('q'), call('a', noted), call('b')], new RunContext());
  const tool = {
    name: 'look',
    execute: () => {
      throw new Error('no such person');
    },
  };
  await assert.rejects(once(session, tool)(toAnn, { callId: 'a' }), { message: 'no such person' });
  const storedCall = async () => (await invocations(session)).find(({ callId }) => callId === 'a');
  const { finishedAt } = await storedCall();
  await agents.addItems([result('b', text('seen'))], new RunContext());
  await agents.popItem();
  await assert.rejects(again({ session, tool }), { message: 'no such person' });
  const told = await storedCall();
  assert.deepEqual([told.status, told.finishedAt, told.result.isError], ['error', finishedAt, true]);
});

test('r53 a result that is no text is itself after its message was written anew', async () => {
  for (const other of [text('seen'), 'a text alone']) {
    const { session, agents } = await newSession();
    await agents.addItems([user('q'), call('a', noted), call('b'), call('c')], new RunContext());
    const tool = { name: 'look', execute: () => ({ seen: [1] }) };
    assert.deepEqual(await once(session, tool)(toAnn, { callId: 'a' }), { seen: [1] });
    await agents.addItems([result('b', other), result('c')], new RunContext());
    const items = (await agents.getItems()).filter(({ callId }) => callId !== 'c');
    assert.equal((await agents.popItem()).callId, 'c');
    assert.deepEqual(
      (await agents.getItems()).filter(({ callId }) => callId !== 'c'),
      items,
    );
    assert.deepEqual(await again({ session, tool }), { seen: [1] });
    assert.deepEqual(await agents.popItem(), result('b', other));
    assert.deepEqual(await again({ session, tool }), { seen: [1] });
  }
});

describe('r18 r53 a tool of once whose journal is the session of the run', () => {
  const executes = {
    'a text': () => 'seen',
    'an object': () => ({ seen: [1] }),
    'an error': () => {
      throw new Error('no such person');
    },
  };
  for (const [what, execute] of Object.entries(executes)) {
    for (const kind of ['plain', 'durable', 'plain with another call that waits']) {
      test(`r18 r53 returns ${what}, and its call is stored once and in order, in a ${kind} run`, async () => {
        const { session, agents } = await newSession();
        let ran = 0;
        const counted = (...args) => {
          ran += 1;
          return execute(...args);
        };
        const look = once(session, { name: 'look', execute: counted });
        const parameters = { type: 'object', properties: {}, required: [], additionalProperties: false };
        const options = { description: '', strict: true, parameters };
        const tools = [
          tool({ ...options, name: 'look', execute: look }),
          tool({ ...options, name: 'ask', needsApproval: true, execute: () => 'asked' }),
        ];
        const isWaiting = kind.endsWith('waits');
        const answer = [call('a'), ...(isWaiting ? [call('b', { name: 'ask' })] : [])];
        const model = new ScriptedModel([answer, [said('done')], [said('again')]]);
        const plain = new Agent({ name: 'A', model, tools });
        const agent = kind === 'durable' ? agents.durable(plain) : plain;
        const waiting = await new Runner().run(agent, 'q', { session: agents });
        if (isWaiting) {
          const state = await RunState.fromString(agent, waiting.state.toString());
          for (const interruption of state.getInterruptions()) state.approve(interruption);
          await new Runner().run(agent, state, { session: agents });
        }
        await new Runner().run(agent, 'q 2', { session: agents });
        const shape = ({ type, callId, content }) => callId ?? content?.[0]?.text ?? content ?? type;
        assert.deepEqual((await agents.getItems()).map(shape), [
          'q',
          ...answer.map(shape),
          ...answer.map(shape),
          'done',
          'q 2',
          'again',
        ]);
        const stored = await invocations(session);
        assert.deepEqual(stored.map(({ callId }) => callId).toSorted(), answer.map(shape));
        assert.equal(stored.find(({ callId }) => callId === 'a').status, what === 'an error' ? 'error' : 'ok');
        // A durable run has the result of `once` before the runner has a text for its error.
        if (kind !== 'durable') {
          const resultOfA = async () => (await agents.getItems()).findLast(({ callId }) => callId === 'a');
          const told = model.requests[1].find((item) => item.type === 'function_call_result');
          assert.deepEqual(await resultOfA(), told);
          for (let time = 0; time < 3; time += 1) await agents.popItem();
          assert.deepEqual(await resultOfA(), told);
        }
        const repeated = again({ session, tool: { name: 'look', execute: counted } }, 'a', {});
        if (what === 'an error') await assert.rejects(repeated, /no such person/);
        else assert.deepEqual(await repeated, execute());
        assert.equal(ran, 1);
      });
    }
  }
});
