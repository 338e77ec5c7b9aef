// r18 r38 r53: a branch that `session.fork` has made shares the calls before it: what one branch has started or finished
// does not run again in another one.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, RunContext, Runner, RunState, setTracingDisabled, tool } from '@openai/agents';
import { open } from 'rethread';
import { durableTools, historyMiddleware, resumeUIMessages } from 'rethread/ai-sdk';
import { once } from 'rethread/once';
import { agentsSession } from 'rethread/openai-agents';
import { z } from 'zod';
import { FailingStore, MAY_HAVE_RUN, openings, waitFor } from '../bindings/once-senders.mjs';
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

/** What executes the tool of the call a of a session. */
const kinds = {
  once: (session, execute) => once(session, { name: 'look', execute })({}, { callId: 'a' }),
  durableTools: (session, execute) =>
    durableTools({ look: { execute } }, session).look.execute({}, { toolCallId: 'a', messages: [] }),
  'a durable agent': (session, execute) => invoke(agentsSession(session), lookTool([], { execute })),
};

test('r18 r38 r53 a result that comes while another branch is shown is stored with its call', async () => {
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

/** A session that shows `main`, whose call a another branch, `branch`, does not have; and how another process has it. */
async function sessionsWithCall(store) {
  const [session, other] = await openings(2, store);
  await agentsSession(session).addItems([user('q')], new RunContext());
  const { branch } = await session.fork((await session.messages()).items[0].id);
  await agentsSession(session).addItems([call('a')], new RunContext());
  await other.refresh();
  return { session, other, branch };
}

const stored = async (session) =>
  (await session.invocations({ payload: true })).items.map(({ status, result: told }) => [status, told?.content]);

/** The session, with a number of the reads of messages. */
function counted(session) {
  const reads = { count: 0 };
  const proxy = new Proxy(session, {
    get(target, name) {
      const member = target[name];
      if (name === 'messages') reads.count += 1;
      return typeof member === 'function' ? member.bind(target) : member;
    },
  });
  return { reads, session: proxy };
}

describe('r18 r38 r53 a result that comes while another branch is shown', () => {
  for (const [kind, run] of Object.entries(kinds)) {
    test(`r18 r38 r53 ${kind}: leaves the result that its call has by then`, async () => {
      const { session, other, branch } = await sessionsWithCall();
      const execute = async () => {
        await session.switchTo(branch);
        await other.refresh();
        await other.answer('a', { type: 'tool_result', content: 'by a person' });
        return 'seen';
      };
      assert.equal(await run(session, execute), 'seen');
      await session.switchTo('main');
      assert.deepEqual(await stored(session), [['ok', 'by a person']]);
    });
  }

  test('r18 r38 r53 once: is stored once, also if the reply to that was lost', async () => {
    const { session, branch } = await sessionsWithCall();
    let lost = 0;
    const losing = new Proxy(session, {
      get(target, name) {
        const member = target[name];
        if (name !== 'append') return typeof member === 'function' ? member.bind(target) : member;
        return async (messages, options) => {
          const receipt = await target.append(messages, options);
          if (options?.branch === undefined || lost) return receipt;
          lost += 1;
          throw new Error('the connection was lost');
        };
      },
    });
    const execute = async () => {
      await session.switchTo(branch);
      return 'seen';
    };
    assert.equal(await kinds.once(losing, execute), 'seen');
    assert.equal(lost, 1);
    await session.switchTo('main');
    assert.deepEqual(await stored(session), [['ok', 'seen']]);
  });

  test('r18 r38 r53 a durable agent: replaces the note that its call was interrupted', async () => {
    const { session, other, branch } = await sessionsWithCall();
    const execute = async () => {
      await session.switchTo(branch);
      await other.refresh();
      const note = { type: 'text', text: await invoke(agentsSession(other), lookTool([])) };
      assert.match(note.text, /^Interrupted: /);
      await agentsSession(other).addItems([result('a', note)], new RunContext());
      return 'seen';
    };
    assert.equal(await kinds['a durable agent'](session, execute), 'seen');
    await session.switchTo('main');
    const items = await agentsSession(session).getItems();
    assert.deepEqual(items.slice(1), [call('a'), result('a', { type: 'text', text: 'seen' })]);
  });

  test('r18 r38 r53 durableTools: is stored by the next request if the store fails, with its call and with no other one', async () => {
    const store = new FailingStore();
    const { session, branch } = await sessionsWithCall(store);
    await session.append(
      [{ role: 'assistant', parts: [{ type: 'tool', callId: 'a', name: 'look', arguments: '{}' }] }],
      {
        branch,
      },
    );
    const execute = async () => {
      await session.switchTo(branch);
      store.failing = true;
      return 'seen';
    };
    assert.equal(await kinds.durableTools(session, execute), 'seen');
    store.failing = false;
    const prompt = [{ role: 'user', content: [{ type: 'text', text: 'q' }] }];
    await historyMiddleware(session).transformParams({ params: { prompt } });
    const told = async (of) => {
      const { items } = await session.messages({ branch: of });
      const parts = items.flatMap((message) => message.parts);
      return parts.filter(({ type }) => type === 'tool_call').map((part) => part.result?.content);
    };
    assert.deepEqual([await told('main'), await told(branch)], [['seen'], [undefined]]);
  });
});

describe('r18 r38 r53 what branches cost', () => {
  test('r38 r53 an append after popItem in a fork reads no other branch', async () => {
    const { main, fork } = await forkedSession([user('q'), said('one'), user('q 1'), said('two')]);
    for (let more = 0; more < 5; more += 1) await main.fork((await main.messages()).items.at(-1).id);
    const { reads, session } = counted(fork);
    const agents = agentsSession(session);
    for (let popped = 0; popped < 3; popped += 1) await agents.popItem();
    await agents.addItems([user('x')]);
    reads.count = 0;
    for (let more = 0; more < 3; more += 1) await agents.addItems([user('x')]);
    assert.equal(reads.count, 3); // of its own end
    assert.equal((await main.messages()).items.length, 4);
  });

  test('r18 r38 r53 the start of a tool reads no branch that cannot have its call', async () => {
    const [main] = await openings(1);
    await agentsSession(main).addItems([user('q'), said('one')], new RunContext());
    const at = (await main.messages()).items.at(-1).id;
    const counts = [];
    for (const forks of [0, 20]) {
      for (let more = 0; more < forks; more += 1) {
        const { branch } = await main.fork(at);
        await main.append([{ role: 'user', parts: [{ type: 'text', text: 'x' }] }], { branch });
      }
      await agentsSession(main).addItems([user('q 2'), call('a')], new RunContext());
      const { reads, session } = counted(main);
      assert.equal(await invoke(agentsSession(session), lookTool([])), 'seen');
      counts.push(reads.count);
    }
    assert.equal(counts[1], counts[0]);
  });
});

test('r07 r18 r38 r53 a damaged branch holds up no call that it cannot have, and neither getItems nor popItem', async () => {
  for (const isKnown of [true, false]) {
    const store = new MemoryLogStore();
    const [main] = await openings(1, store);
    await agentsSession(main).addItems([user('q'), call('a')], new RunContext());
    const before = new Set(store.stored.get('s').records.keys());
    const { branch } = await main.fork((await main.messages()).items.at(-1).id);
    await main.append([{ role: 'user', parts: [{ type: 'text', text: 'x' }] }], { branch });
    const { records } = store.stored.get('s');
    // Of two new records one has the branch, the other one its message.
    const added = [...records.keys()].filter((key) => !before.has(key));
    assert.equal(added.length, 2);
    for (const key of isKnown ? added : added.slice(0, 1))
      records.set(key, { ...records.get(key), value: new Uint8Array([1, 2, 3]) });
    const [session] = await openings(1, store);
    const agents = agentsSession(session);
    // It may have started the call.
    await assert.rejects(invoke(agents, lookTool([], { errorFunction: null })), { code: 'corrupt_record' });
    const [, , told] = await agents.getItems(undefined, new RunContext());
    assert.match(told.output.text, /^Interrupted: /);
    assert.deepEqual(await agents.popItem(), call('a'));
    assert.deepEqual(await agents.getItems(), [user('q')]);
    await agents.addItems([call('a')], new RunContext());
    assert.equal(await invoke(agents, lookTool([])), 'seen');
  }
});

describe('r18 r38 r53 calls of once in a fork', () => {
  const mailed = call('a', { name: 'send_mail', arguments: '{"to":"ann"}' });

  test('r18 r38 r53 a run in a fork is told that a call may have run which once has started in its parent', async () => {
    const { main, fork } = await forkedSession([user('q'), mailed, said('One moment.')]);
    const ends = [];
    const execute = () => new Promise((resolve) => ends.push(resolve));
    const send = (session) => once(session, { name: 'send_mail', execute })({ to: 'ann' }, { callId: 'a' });
    const done = send(main);
    await waitFor(() => ends.length);
    const agents = agentsSession(fork);
    const model = new ScriptedModel([[said('Who knows.')]]);
    await new Runner().run(new Agent({ name: 'A', model }), 'q 2', { session: agents });
    const told = model.requests[0].find(({ type }) => type === 'function_call_result');
    assert.match(told.output.text, /^Interrupted: /);
    // What a run was told takes no result's place.
    await agents.addItems([{ ...told, name: 'send_mail' }], new RunContext());
    ends[0]('sent');
    assert.equal(await done, 'sent');
    for (const session of [main, fork]) {
      const results = (await agentsSession(session).getItems()).filter(({ type }) => type === 'function_call_result');
      assert.deepEqual(
        results.map(({ output }) => output.text),
        ['sent'],
      );
    }
  });

  /** Which runs are durable. */
  const runs = { plain: [], durable: ['main', 'fork'], 'second, durable': ['fork'] };
  for (const [kind, durable] of Object.entries(runs)) {
    test(`r18 r38 r53 a call that a ${kind} run resumes in a fork gets the result of its parent`, async () => {
      const [main, fork] = await openings(2);
      const histories = new Map([main, fork].map((session) => [session, agentsSession(session)]));
      const ends = [];
      const execute = () => new Promise((resolve) => ends.push(resolve));
      const agentOf = (session, model) => {
        const options = { name: 'send_mail', description: '', parameters: z.object({ to: z.string() }) };
        const send = once(session, { name: 'send_mail', execute });
        const mail = tool({
          ...options,
          needsApproval: true,
          execute: send,
          errorFunction: (_, { message }) => message,
        });
        const agent = new Agent({ name: 'A', model, tools: [mail] });
        const isDurable = durable.includes(session === main ? 'main' : 'fork');
        return isDurable ? histories.get(session).durable(agent) : agent;
      };
      const resume = async (agent, session, saved) => {
        const state = await RunState.fromString(agent, saved);
        for (const interruption of state.getInterruptions()) state.approve(interruption);
        return new Runner().run(agent, state, { session: histories.get(session) });
      };
      const agent = agentOf(main, new ScriptedModel([[mailed, said('One moment.')], [said('done')]]));
      const waiting = await new Runner().run(agent, 'q', { session: histories.get(main) });
      const saved = waiting.state.toString();
      await showFork(main, fork);
      const done = resume(agent, main, saved);
      await waitFor(() => ends.length);
      const model = new ScriptedModel([[said('Who knows.')]]);
      await resume(agentOf(fork, model), fork, saved);
      assert.match(model.requests[0].at(-1).output.text, /^Interrupted: /);
      ends[0]('sent');
      await done;
      for (const session of [main, fork]) {
        const results = (await agentsSession(session).getItems()).filter(({ type }) => type === 'function_call_result');
        assert.deepEqual(
          results.map(({ output }) => output.text),
          ['sent'],
          kind,
        );
      }
      assert.equal(ends.length, 1);
    });
  }

  for (const kind of ['once', 'a durable agent']) {
    for (const which of ['its parent', 'the fork itself']) {
      test(`r18 r38 r53 ${kind}: a call that a fork has rewritten does not run again after ${which} started it`, async () => {
        const { main, fork } = await forkedSession([user('q'), call('a'), said('One moment.')]);
        await agentsSession(fork).popItem();
        await main.refresh();
        const [first, second] = which === 'its parent' ? [main, fork] : [fork, main];
        const ran = [];
        const execute = () => new Promise(() => ran.push('look'));
        kinds[kind](first, execute).catch(() => {});
        await waitFor(() => ran.length);
        const told = await kinds[kind](second, execute).catch(({ message }) => message);
        assert.match(told, /^Interrupted: /);
        assert.equal(ran.length, 1);
      });
    }
  }
});
