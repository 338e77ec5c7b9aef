// r53: what users of the Agents SDK have reported of stored approvals, with the SDK's own session and with ours.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { Agent, MemorySession, Runner, RunState, setTracingDisabled } from '@openai/agents';
import { agentsSession } from 'rethread/openai-agents';
import { call, elsewhere, lookTool, newSession, ScriptedModel } from './agents.mjs';

setTracingDisabled(true);

const PAIR = ['user', 'function_call', 'function_call_result'];
const typesOf = (items) => items.map(({ type, role }) => (type === 'message' ? role : type));
const said = (text) => ({
  type: 'message',
  role: 'assistant',
  status: 'completed',
  content: [{ type: 'output_text', text }],
});

/** An agent whose run waits for the approval of its tool. `resume` approves and goes on from the state that was stored
 *  then, as another process does. */
async function waitingRun(session, watch, settings = {}) {
  const ran = [];
  const model = new ScriptedModel([[call('a')], [said('done')], [said('done')], [said('again')]]);
  const tools = [lookTool(ran, { needsApproval: true })];
  const agent = watch(new Agent({ name: 'A', model, tools, ...settings }));
  const { state } = await new Runner().run(agent, 'q', { session });
  const stored = state.toString();
  const resume = async () => {
    const again = await RunState.fromString(agent, stored);
    for (const interruption of again.getInterruptions()) again.approve(interruption);
    return new Runner().run(agent, again, { session });
  };
  return { ran, model, agent, resume };
}

test('r53 openai-agents-python#4827 the output of an approved tool is stored with its call, and never sent without it', async () => {
  const { agents } = await newSession();
  // With a guardrail and tools that may end the run, the SDK for Python stored the output alone; that for JavaScript,
  // 0.20, stores both.
  const guardrail = { name: 'passes', execute: async () => ({ tripwireTriggered: false, outputInfo: {} }) };
  const { ran, model, agent, resume } = await waitingRun(agents, (one) => agents.durable(one), {
    outputGuardrails: [guardrail],
    toolUseBehavior: { stopAtToolNames: ['another'] },
  });
  assert.deepEqual(typesOf(await agents.getItems()), ['user', 'function_call']);
  assert.equal((await resume()).finalOutput, 'done');
  assert.deepEqual(typesOf(await agents.getItems()), [...PAIR, 'assistant']);
  await new Runner().run(agent, 'and?', { session: agents });
  assert.deepEqual(model.requests.slice(1).map(typesOf), [PAIR, [...PAIR, 'assistant', 'user']]);
  assert.deepEqual(ran, ['look']);
});

/** The SDK's own session, whose writes fail while `store.isDown`. */
function failingMemory(store) {
  return new Proxy(new MemorySession(), {
    get(target, name) {
      const member = target[name];
      if (typeof member !== 'function') return member;
      return async (...args) => {
        if (store.isDown && name !== 'getItems' && name !== 'getSessionId') throw new Error('the store is down');
        return member.apply(target, args);
      };
    },
  });
}

test('r53 openai-agents-python#4615 a write that fails after an approved tool forgets nothing, and the tool does not run again', async () => {
  const own = { isDown: false };
  const alone = await waitingRun(failingMemory(own), (one) => one);
  own.isDown = true;
  await assert.rejects(alone.resume(), /the store is down/);
  own.isDown = false;
  await alone.resume();
  assert.deepEqual(alone.ran, ['look', 'look'], "the SDK's own session runs it twice");

  const { session } = await newSession();
  let isDown = false;
  // The start of the tool is stored; what it returns is not.
  const failing = elsewhere(session, async ([{ role }]) => {
    if (isDown && role === 'tool') throw new Error('the store is down');
  });
  const agents = agentsSession(failing);
  const { ran, model, resume } = await waitingRun(agents, (one) => agents.durable(one));
  isDown = true;
  await assert.rejects(resume(), /the store is down/);
  isDown = false;
  assert.equal((await resume()).finalOutput, 'done');
  assert.deepEqual(ran, ['look']);
  assert.deepEqual(typesOf(model.requests.at(-1)), PAIR);
  assert.deepEqual(typesOf(await agents.getItems()), [...PAIR, 'assistant']);
});
