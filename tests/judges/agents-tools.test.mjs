// r53: the tools of `durable` agents run once, whatever fails or happens at the same time.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, RunContext, Runner, RunState, setTracingDisabled, shellTool } from '@openai/agents';
import { once } from 'rethread/once';
import { agentsSession } from 'rethread/openai-agents';
import { call, elsewhere, lookTool, newSession, result, said, ScriptedModel, user } from './agents.mjs';

setTracingDisabled(true);

describe('r53 a tool runs once', () => {
  const seen = { type: 'text', text: 'seen' };
  /** A tool that ends when the promise does. */
  const slowTool = (ran, until) =>
    lookTool(ran, {
      execute: async () => {
        ran.push('look');
        await until;
        return 'seen';
      },
    });
  /** Executes the tool of a call that is stored. */
  function invoke(agents, callId, look) {
    const agent = agents.durable(new Agent({ name: 'A', model: new ScriptedModel([]), tools: [look] }));
    return agent.tools[0].invoke(new RunContext(), '{}', { toolCall: call(callId) });
  }

  test('r53 a call whose result the store rejects has started', async () => {
    const { session, agents } = await newSession();
    await agents.addItems([user('q'), call('a')]);
    let isDown = true;
    const failing = elsewhere(session, async ([{ role }]) => {
      if (role === 'tool' && isDown) throw new Error('the store is down');
    });
    const ran = [];
    await assert.rejects(invoke(agentsSession(failing), 'a', lookTool(ran)), /the store is down/);
    isDown = false;
    assert.match(await invoke(agentsSession(failing), 'a', lookTool(ran)), /^Interrupted: /);
    assert.match(await invoke(agents, 'a', lookTool(ran)), /^Interrupted: /);
    assert.deepEqual(ran, ['look']);
    await agents.popItem();
    assert.deepEqual(await agents.getItems(), [user('q'), call('a')], 'the mark goes with what it stands for');
  });

  test('r53 one state that is resumed twice at once gives both runs the one output', async () => {
    const { agents } = await newSession();
    const ran = [];
    const model = new ScriptedModel([[call('a')], [said('done')], [said('done')]]);
    const tools = [lookTool(ran, { needsApproval: true })];
    const agent = agents.durable(new Agent({ name: 'A', model, tools }));
    const waiting = (await new Runner().run(agent, 'q', { session: agents })).state.toString();
    const resume = async () => {
      const state = await RunState.fromString(agent, waiting);
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      return new Runner().run(agent, state, { session: agents });
    };
    const other = await newSession();
    await other.agents.addItems([call('a')]);
    const runs = [resume(), resume()];
    assert.equal(
      await invoke(other.agents, 'a', lookTool([], { execute: () => 'of another chat' })),
      'of another chat',
    );
    for (const { finalOutput } of await Promise.all(runs)) assert.equal(finalOutput, 'done');
    assert.deepEqual(ran, ['look']);
    for (const request of model.requests.slice(1)) assert.deepEqual(request, [user('q'), call('a'), result('a', seen)]);
    assert.deepEqual((await agents.getItems()).slice(0, 3), [user('q'), call('a'), result('a', seen)]);
  });

  test('r18 r53 a tool that is wrapped by once, too, does not wait for itself', { timeout: 20_000 }, async () => {
    const { session, agents } = await newSession();
    await agents.addItems([user('q'), call('a')]);
    const ran = [];
    const send = once(session, { name: 'look', execute: () => ran.push('look') && 'seen' });
    const execute = (args, _, details) => send(args, details);
    for (let time = 0; time < 2; time += 1) assert.equal(await invoke(agents, 'a', lookTool([], { execute })), 'seen');
    assert.deepEqual(ran, ['look']);
  });

  test('r53 of two processes one runs the tool, and its result replaces that it was interrupted', async () => {
    const { session, agents } = await newSession();
    await agents.addItems([user('q'), call('a')]);
    const ran = [];
    let end;
    const look = slowTool(ran, new Promise((resolve) => (end = resolve)));
    const runs = [agents, agentsSession(elsewhere(session))].map((one) => invoke(one, 'a', look));
    const loser = await Promise.race(runs);
    assert.match(loser, /^Interrupted: /);
    await agentsSession(session).addItems([result('a', { type: 'text', text: loser }), said('It may have run.')]);
    end();
    assert.deepEqual(
      (await Promise.all(runs)).filter((output) => output !== loser),
      ['seen'],
    );
    assert.deepEqual(ran, ['look']);
    const items = [user('q'), call('a'), result('a', seen), said('It may have run.')];
    assert.deepEqual(await agents.getItems(), items);
    // Nor is it stored beside the result by a run that was told so before that came.
    await agentsSession(session).addItems([result('a', { type: 'text', text: loser })], new RunContext());
    assert.deepEqual((await agents.store.read()).items, items);
  });

  test('r53 calls of a shell are stored before they run, and their results with the next request', async () => {
    const { session, agents } = await newSession();
    const shellCall = { type: 'shell_call', callId: 'a', status: 'completed', action: { commands: ['ls'] } };
    const output = [{ stdout: 'seen', stderr: '', outcome: { type: 'exit', exitCode: 0 } }];
    const model = new ScriptedModel([[shellCall], new Error('the service is down'), [said('done')]]);
    const before = [];
    const run = async () => {
      before.push(await agentsSession(session).getItems());
      return { output };
    };
    const agent = agents.durable(new Agent({ name: 'A', model, tools: [shellTool({ shell: { run } })] }));
    await assert.rejects(new Runner().run(agent, 'q', { session: agents }), /the service is down/);
    assert.deepEqual(before, [[user('q'), shellCall]]);
    await new Runner().run(agent, [], { session: agents });
    assert.equal(before.length, 1);
    const types = (await agents.getItems()).map(({ type }) => type);
    assert.deepEqual(types, ['message', 'shell_call', 'shell_call_output', 'message']);
  });
});
