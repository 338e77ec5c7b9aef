// r18 r38 r53: a branch that `session.fork` has made shares the calls before it: what one branch has started or finished
// does not run again in another one.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, RunContext, Runner, setTracingDisabled } from '@openai/agents';
import { open } from 'rethread';
import { durableTools, resumeUIMessages } from 'rethread/ai-sdk';
import { once } from 'rethread/once';
import { agentsSession } from 'rethread/openai-agents';
import { MAY_HAVE_RUN, openings, waitFor } from '../bindings/once-senders.mjs';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { call, lookTool, result, said, ScriptedModel, user } from './agents.mjs';

setTracingDisabled(true);

/** A tool that ends when `ends` is called. */
function slowTool() {
  const ran = [];
  const ends = [];
  const execute = () =>
    new Promise((resolve) => {
      ran.push('look');
      ends.push(() => resolve('seen'));
    });
  return { ran, ends, tool: lookTool([], { execute }) };
}

/** Executes the tool of the call a, which is stored. */
function invoke(agents, tool) {
  const agent = agents.durable(new Agent({ name: 'A', model: new ScriptedModel([]), tools: [tool] }));
  return agent.tools[0].invoke(new RunContext(), '{}', { toolCall: call('a') });
}

/** Shows a fork after the newest message of `main`. */
async function showFork(main, fork) {
  const { branch } = await main.fork((await main.messages()).items.at(-1).id);
  await fork.refresh();
  await fork.switchTo(branch);
}

/** The session as two processes have it: the second one shows a fork after the newest message. */
async function forkedSession(items) {
  const [main, fork] = await openings(2);
  await agentsSession(main).addItems(items, new RunContext());
  await showFork(main, fork);
  return { main, fork };
}

describe('r18 r38 r53 a durable agent in a fork', () => {
  for (const which of ['the fork', 'the branch that was forked']) {
    test(`r18 r38 r53 does not run a call that was started in ${which === 'the fork' ? 'its parent' : which}`, async () => {
      const { main, fork } = await forkedSession([user('q'), call('a')]);
      const [first, second] = which === 'the fork' ? [main, fork] : [fork, main];
      const slow = slowTool();
      const done = invoke(agentsSession(first), slow.tool);
      await waitFor(() => slow.ran.length);
      assert.match(await invoke(agentsSession(second), slow.tool), /^Interrupted: /);
      // A run is told so: the model would make the call again.
      const model = new ScriptedModel([[said('Who knows.')]]);
      const agents = agentsSession(second);
      await new Runner().run(agents.durable(new Agent({ name: 'A', model, tools: [slow.tool] })), [], {
        session: agents,
      });
      assert.match(model.requests[0].at(-1).output.text, /^Interrupted: /);
      slow.ends[0]();
      assert.equal(await done, 'seen');
      for (const session of [first, second]) {
        assert.equal(await invoke(agentsSession(session), slow.tool), 'seen');
        const results = (await agentsSession(session).getItems()).filter(({ type }) => type === 'function_call_result');
        assert.deepEqual(results, [result('a', { type: 'text', text: 'seen' })]);
      }
      assert.equal(slow.ran.length, 1);
    });
  }
});

test('r18 r38 r53 a start is not that of a later call with its id in another branch, nor of one before', {
  timeout: 20_000,
}, async () => {
  const { main, fork } = await forkedSession([user('q'), call('a'), result('a'), said('done')]);
  const slow = slowTool();
  const invoked = [];
  for (const session of [main, fork]) {
    await agentsSession(session).addItems([user('q 2'), call('a')], new RunContext());
    invoked.push(invoke(agentsSession(session), slow.tool));
    await waitFor(() => slow.ran.length === invoked.length);
  }
  for (const end of slow.ends) end();
  assert.deepEqual(await Promise.all(invoked), ['seen', 'seen']);
});

test('r38 r53 popItem in a fork erases nothing that its parent has', async () => {
  const items = [user('q'), call('a'), result('a'), said('done')];
  const { main, fork } = await forkedSession(items);
  await agentsSession(fork).addItems([said('and more')], new RunContext());
  const popped = [];
  for (let time = 0; time < 3; time += 1) popped.unshift(await agentsSession(fork).popItem());
  assert.deepEqual(popped, [...items.slice(2), said('and more')]);
  assert.deepEqual(await agentsSession(fork).getItems(), items.slice(0, 2));
  await main.refresh();
  assert.deepEqual(await agentsSession(main).getItems(), items);
});

describe('r18 r38 r53 durableTools and once in a fork', () => {
  for (const which of ['its parent', 'the branch that was forked']) {
    test(`r18 r38 r53 durableTools do not run a call that was started in ${which}`, async () => {
      const store = new MemoryLogStore();
      const [main, fork] = await Promise.all([1, 2].map(async () => (await open({ store })).session('s')));
      const part = { type: 'tool', callId: 'a', name: 'look', arguments: '{}' };
      const durable = { type: 'data', name: 'rethread/ai-sdk', value: { durable: ['a'] } };
      await main.append([{ role: 'assistant', parts: [part, durable] }]);
      await showFork(main, fork);
      const [first, second] = which === 'its parent' ? [main, fork] : [fork, main];
      const ran = [];
      const ends = [];
      const execute = () => {
        ran.push('look');
        return new Promise((resolve) => ends.push(() => resolve('seen')));
      };
      const lookIn = (session) => durableTools({ look: { execute } }, session);
      const look = (session) => lookIn(session).look.execute({}, { toolCallId: 'a', messages: [] });
      const done = look(first);
      await waitFor(() => ran.length);
      // It is not said of the call that it did not run.
      const told = await resumeUIMessages(second, { tools: lookIn(second) });
      assert.match(JSON.stringify(told), /Interrupted: this call has no recorded result/);
      await assert.rejects(look(second), /^Error: Interrupted: this call has no recorded result/);
      ends[0]();
      assert.equal(await done, 'seen');
      assert.equal(await look(second), 'seen');
      assert.equal(ran.length, 1);
    });
  }

  test('r18 r38 r53 durableTools do not run a call that is made at once in a fork', { timeout: 20_000 }, async () => {
    const store = new MemoryLogStore();
    const [main, fork] = await Promise.all([1, 2].map(async () => (await open({ store })).session('s')));
    await main.append([{ role: 'assistant', parts: [{ type: 'tool', callId: 'a', name: 'look', arguments: '{}' }] }]);
    await showFork(main, fork);
    const ran = [];
    const execute = () => new Promise(() => ran.push('look'));
    const look = (session) =>
      durableTools({ look: { execute } }, session).look.execute({}, { toolCallId: 'a', messages: [] });
    look(main);
    await waitFor(() => ran.length);
    await assert.rejects(look(fork), /^Error: Interrupted: this call has no recorded result/);
    assert.equal(ran.length, 1);
  });

  test('r18 r38 once: what a parent has started is unknown in its fork, and what it has finished is returned', async () => {
    const [main, fork] = await openings(2);
    const tool_calls = ['a', 'b'].map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } }));
    const messages = [
      { role: 'user', content: 'q' },
      { role: 'assistant', content: null, tool_calls },
    ];
    await main.append({ messages }, 'openai-chat');
    const ran = [];
    const lookIn = (session, execute) => once(session, { name: 'look', execute: () => ran.push('look') && execute() });
    assert.equal(await lookIn(main, () => 'seen')({}, { callId: 'a' }), 'seen');
    lookIn(main, () => new Promise(() => {}))({}, { callId: 'b' });
    await waitFor(() => ran.length === 2);
    for (const last of [undefined, (await main.messages()).items[1].id]) {
      const { branch } = await main.fork(last ?? (await main.messages()).items.at(-1).id);
      await fork.refresh();
      await fork.switchTo(branch);
      const look = lookIn(fork, () => 'seen again');
      assert.equal(await look({}, { callId: 'a' }), 'seen');
      await assert.rejects(look({}, { callId: 'b' }), MAY_HAVE_RUN);
    }
    assert.equal(ran.length, 2);
  });
});

test('r18 r38 r53 a result that comes while another branch is shown is stored with its call', async () => {
  const kinds = {
    once: (session, execute) => once(session, { name: 'look', execute })({}, { callId: 'a' }),
    durableTools: (session, execute) =>
      durableTools({ look: { execute } }, session).look.execute({}, { toolCallId: 'a', messages: [] }),
    'a durable agent': (session, execute) => invoke(agentsSession(session), lookTool([], { execute })),
  };
  for (const [kind, run] of Object.entries(kinds)) {
    const session = await (await open()).session('s');
    await agentsSession(session).addItems([user('q')], new RunContext());
    const { branch } = await session.fork((await session.messages()).items[0].id);
    await agentsSession(session).addItems([call('a')], new RunContext());
    const execute = async () => {
      await session.switchTo(branch);
      return 'seen';
    };
    assert.equal(await run(session, execute), 'seen', kind);
    await session.switchTo('main');
    const [{ status, result: stored }] = (await session.invocations({ payload: true })).items;
    assert.deepEqual([status, stored.content], ['ok', 'seen'], kind);
    assert.equal(await run(session, () => assert.fail('ran twice')), 'seen', kind);
  }
});
