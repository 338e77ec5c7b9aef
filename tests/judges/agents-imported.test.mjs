// r53: calls without a result that no run of the SDK has stored, and items that are none of the SDK's.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, Runner, RunState, setTracingDisabled } from '@openai/agents';
import { agentsSession } from 'rethread/openai-agents';
import { call, lookTool, newSession, result, said, ScriptedModel, user } from './agents.mjs';

setTracingDisabled(true);
const MAY_HAVE_RUN = /^Interrupted: this call has no recorded result\. It may or may not have run/;
const agentOf = (model, tools = []) => new Agent({ name: 'A', model, tools });

describe('r53 an open call that was imported', () => {
  const chat = [
    { role: 'user', content: 'q' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'a', type: 'function', function: { name: 'look', arguments: '{}' } }],
    },
  ];
  const imports = {
    'with addItems': ({ agents }) => agents.addItems([user('q'), call('a')]),
    'with addItems and a result of no call': ({ agents }) =>
      agents.addItems([user('q'), call('a'), result('of nothing')]),
    'with append': ({ session }) => session.append({ messages: chat }, 'openai-chat'),
  };
  for (const [how, fill] of Object.entries(imports)) {
    for (const kind of ['plain', 'durable', 'compacting']) {
      test(`r53 ${how} has the result that it may have run, in a ${kind} run`, async () => {
        const { session, agents } = await newSession();
        await fill({ session, agents });
        const before = await agents.getItems();
        assert.ok(before.every(({ type }) => type !== 'function_call_result'));
        const ran = [];
        const compacted = [];
        const compact = async (items) => {
          compacted.push(items);
          return null;
        };
        const own = kind === 'compacting' ? agentsSession(session, { compact }) : agentsSession(session);
        const model = new ScriptedModel([[call('b')], [said('done')]]);
        const agent = agentOf(model, [lookTool(ran)]);
        await new Runner().run(kind === 'durable' ? own.durable(agent) : agent, 'hello?', { session: own });
        const [first] = model.requests;
        assert.deepEqual(
          first.map(({ type, callId }) => callId ?? type),
          ['message', 'a', 'a', 'message'],
        );
        assert.match(first[2].output.text, MAY_HAVE_RUN);
        assert.deepEqual(ran, ['look'], 'the new call ran');
        // What the run has stored is stored once, and the text is no stored result.
        const items = await agents.getItems();
        assert.deepEqual(
          items.filter(({ callId }) => callId === 'a').map(({ type }) => type),
          ['function_call'],
        );
        assert.equal(items.length, before.length + 4);
        // What has a result of no call is not compacted.
        assert.equal(compacted.length, kind === 'compacting' && !how.includes('no call') ? 1 : 0);
        if (compacted.length) {
          assert.match(compacted[0][2].output.text, MAY_HAVE_RUN);
        }
        await session.answer('a', { type: 'tool_result', content: 'paid long ago' });
        const again = new ScriptedModel([[said('done')]]);
        await new Runner().run(agentOf(again), 'and?', { session: own });
        assert.equal(
          again.requests[0].find(({ type }) => type === 'function_call_result').output.text,
          'paid long ago',
        );
      });
    }
  }

  test('r53 the call of a run that waits is not told as one that may have run, and runs when it is approved', async () => {
    for (const kind of ['plain', 'durable']) {
      const { agents } = await newSession();
      const ran = [];
      const model = new ScriptedModel([[call('a')], [said('meanwhile')], [said('done')]]);
      const plain = agentOf(model, [lookTool(ran, { needsApproval: true })]);
      const agent = kind === 'durable' ? agents.durable(plain) : plain;
      const waiting = (await new Runner().run(agent, 'q', { session: agents })).state.toString();
      await new Runner().run(agent, 'hello?', { session: agents });
      assert.ok(!JSON.stringify(model.requests[1]).includes('Interrupted'), kind);
      const state = await RunState.fromString(agent, waiting);
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      await new Runner().run(agent, state, { session: agents });
      assert.deepEqual(ran, ['look'], kind);
    }
  });
});

test('r53 addItems refuses messages of other formats, names them, and stores nothing', async () => {
  const { session, agents } = await newSession();
  const cases = [
    [{ role: 'assistant', content: null, tool_calls: [] }, /OpenAI Chat Completions.*"openai-chat"/],
    [{ role: 'assistant', content: 'Hi' }, /OpenAI Chat Completions/],
    [{ role: 'tool', tool_call_id: 'a', content: 'ok' }, /OpenAI Chat Completions/],
    [{ role: 'user', content: [{ type: 'text', text: 'Hi' }] }, /OpenAI Chat Completions/],
    [{ role: 'user', content: [{ type: 'tool_result', tool_use_id: 'a' }] }, /a message of Anthropic.*"anthropic"/],
    [{ type: 'function_call', call_id: 'a', name: 'look', arguments: '{}' }, /Responses API.*"openai-responses"/],
    [{ type: 'function_call', name: 'look', arguments: '{}' }, /without `callId`/],
    [{ id: 'u', role: 'user', parts: [{ type: 'text', text: 'Hi' }] }, /UIMessage.*fromUIMessages/],
    [{ role: 'assistant', parts: [{ type: 'tool', name: 'look', arguments: {} }] }, /a message of this session/],
    [{ content: 'Hi' }, /not an item/],
  ];
  for (const [item, message] of cases) {
    await assert.rejects(agents.addItems([user('q'), item]), { code: 'invalid_input', message });
    const transaction = { type: 'append_items', items: [item] };
    await assert.rejects(agents.applyHistoryTransaction({ operationId: 'o', transaction }), { code: 'invalid_input' });
  }
  assert.equal(session.revision, 0);
  await agents.addItems([{ role: 'user', content: 'q' }, { role: 'system', content: 's' }, said('Hi')]);
  assert.equal((await agents.getItems()).length, 3);
});
