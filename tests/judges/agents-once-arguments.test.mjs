// r18 r53: a tool of `once` in a run of the Agents SDK whose arguments or result are others than those that the runner
// stores: its call and its result are in the history once.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, Runner, RunState, setTracingDisabled, tool } from '@openai/agents';
import { once } from 'rethread/once';
import { z } from 'zod';
import { openings, waitFor } from '../bindings/once-senders.mjs';
import { agentsSession } from 'rethread/openai-agents';
import { call, elsewhere, newSession, said, ScriptedModel } from './agents.mjs';

setTracingDisabled(true);

const WRITTEN = '{ "to": "ann" }';
const mailed = call('a', { name: 'send_mail', arguments: WRITTEN });
const shape = ({ type, callId, content }) => (callId ? `${type} ${callId}` : (content?.[0]?.text ?? content));
const invocations = async (session) => (await session.invocations({ payload: true })).items;
const textsOf = async (agents) =>
  (await agents.getItems()).filter(({ type }) => type === 'function_call_result').map(({ output }) => output.text);

/** Each gives the tool of `once` other arguments than the model has written. */
const wrappers = {
  'a schema adds': (send) => (args, context, details) => send(args, context, details),
  'a wrapper changes': (send) => (args, context, details) => send({ ...args, to: `${args.to}@example.com` }, details),
  'a wrapper that passes the id alone changes': (send) => (args, _, details) =>
    send({ ...args, to: `${args.to}@example.com` }, { callId: details.toolCall.callId }),
};
const executes = {
  returns: (args) => `sent to ${args.to}`,
  throws: () => {
    throw new Error('no such person');
  },
};

function mailTool(session, { execute, wrap }) {
  const ran = [];
  const counted = (args) => {
    ran.push(args);
    return execute(args);
  };
  const parameters = z.object({ to: z.string(), cc: z.array(z.string()).default([]) });
  const send = once(session, { name: 'send_mail', execute: counted });
  const options = { name: 'send_mail', description: '', parameters };
  return { ran, counted, tool: tool({ ...options, execute: wrap(send) }) };
}

describe('r18 r53 a tool of once that gets other arguments than the model wrote', () => {
  for (const [who, wrap] of Object.entries(wrappers)) {
    for (const [what, execute] of Object.entries(executes)) {
      for (const kind of ['plain', 'durable']) {
        test(`r18 r53 ${who} arguments: a call that ${what} is in the history once, as the model wrote it, in a ${kind} run`, async () => {
          const { session, agents } = await newSession();
          const mail = mailTool(session, { execute, wrap });
          const model = new ScriptedModel([[mailed], [said('done')], [said('again')]]);
          const plain = new Agent({ name: 'A', model, tools: [mail.tool] });
          const agent = kind === 'durable' ? agents.durable(plain) : plain;
          await new Runner().run(agent, 'q', { session: agents });
          await new Runner().run(agent, 'q 2', { session: agents });
          const items = await agents.getItems();
          const calls = ['function_call a', 'function_call_result a'];
          assert.deepEqual(items.map(shape), ['q', ...calls, 'done', 'q 2', 'again']);
          assert.equal(items[1].arguments, WRITTEN);
          // The next run gets what the model was told in this one.
          assert.deepEqual(model.requests[2].slice(0, 4).map(shape), ['q', ...calls, 'done']);
          assert.deepEqual(model.requests[2][2].output, model.requests[1].at(-1).output);
          const [stored, ...others] = await invocations(session);
          assert.deepEqual([stored.arguments, others], [{ to: 'ann' }, []]);

          // What the tool got, and how it ended, is known to `once`.
          assert.equal(mail.ran.length, 1);
          const again = once(elsewhere(session), { name: 'send_mail', execute: mail.counted });
          if (what === 'returns') assert.equal(await again(mail.ran[0], { callId: 'a' }), `sent to ${mail.ran[0].to}`);
          else await assert.rejects(again(mail.ran[0], { callId: 'a' }), /no such person/);
          await assert.rejects(again({ to: 'eve' }, { callId: 'a' }), { code: 'conflict' });
          assert.equal(mail.ran.length, 1);
        });
      }
    }
  }
});

describe('r18 r53 a result of once of which the runner has another text', () => {
  const parameters = z.object({ to: z.string() });
  const options = { name: 'send_mail', description: '', parameters };
  const answered = [mailed, said('One moment.')];

  for (const kind of ['plain', 'durable']) {
    test(`r18 r53 is in the history once, also of a call that waited for an approval, in a ${kind} run`, async () => {
      const { session, agents } = await newSession();
      const send = once(session, { name: 'send_mail', execute: executes.throws });
      const model = new ScriptedModel([answered, [said('done')], [said('again')]]);
      const plain = new Agent({ name: 'A', model, tools: [tool({ ...options, needsApproval: true, execute: send })] });
      const agent = kind === 'durable' ? agents.durable(plain) : plain;
      const waiting = await new Runner().run(agent, 'q', { session: agents });
      const state = await RunState.fromString(agent, waiting.state.toString());
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      await new Runner().run(agent, state, { session: agents });
      await new Runner().run(agent, 'q 2', { session: agents });
      const shapes = ['q', 'function_call a', 'One moment.', 'function_call_result a', 'done', 'q 2', 'again'];
      assert.deepEqual((await agents.getItems()).map(shape), shapes);
      assert.match((await textsOf(agents))[0], /An error occurred/);
      const [stored, ...others] = await invocations(session);
      assert.deepEqual([stored.status, stored.result.content, others], ['error', 'no such person', []]);
      const again = once(elsewhere(session), { name: 'send_mail', execute: executes.throws });
      await assert.rejects(again({ to: 'ann' }, { callId: 'a' }), /no such person/);
    });

    test(`r53 is what an output guardrail has left of it, in a ${kind} run`, async () => {
      const { session, agents } = await newSession();
      const send = once(session, { name: 'send_mail', execute: () => 'sent with the password 1234' });
      const guardrail = {
        name: 'no passwords',
        run: async () => ({ behavior: { type: 'rejectContent', message: 'sent' } }),
      };
      const mail = { ...tool({ ...options, execute: send }), outputGuardrails: [guardrail] };
      const model = new ScriptedModel([answered, [said('done')], [said('again')]]);
      const plain = new Agent({ name: 'A', model, tools: [mail] });
      const agent = kind === 'durable' ? agents.durable(plain) : plain;
      await new Runner().run(agent, 'q', { session: agents });
      await new Runner().run(agent, 'q 2', { session: agents });
      assert.deepEqual(await textsOf(agents), ['sent']);
      assert.ok(!JSON.stringify(model.requests).includes('1234'));
    });
  }

  /** A run whose call waits for an approval, and that goes on with `resume`: of two processes, say. */
  async function waitingRun() {
    const { session, agents } = await newSession();
    const sending = [];
    const execute = () => new Promise((resolve) => sending.push(resolve));
    const agentOf = (own, model) =>
      new Agent({
        name: 'A',
        model,
        tools: [
          tool({
            ...options,
            needsApproval: true,
            execute: once(own, { name: 'send_mail', execute }),
            errorFunction: (_, error) => error.message,
          }),
        ],
      });
    const first = agentOf(session, new ScriptedModel([answered, [said('done')]]));
    const waiting = await new Runner().run(first, 'q', { session: agents });
    const resume = async (agent) => {
      const state = await RunState.fromString(agent, waiting.state.toString());
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      return new Runner().run(agent, state, { session: agents });
    };
    const done = resume(first);
    while (!sending.length) await new Promise((resolve) => setTimeout(resolve, 1));
    const again = () => once(elsewhere(session), { name: 'send_mail', execute })({ to: 'ann' }, { callId: 'a' });
    return { session, agents, agentOf, resume, again, sending, done };
  }

  for (const when of ['before', 'after'])
    test(`r18 r53 that comes ${when} another run stores what it was told takes its place`, async () => {
      const { session, agents, agentOf, resume, again, sending, done } = await waitingRun();
      const model = new ScriptedModel([[said('Who knows.')], [said('again')]]);
      const getResponse = model.getResponse.bind(model);
      const end = async () => {
        sending[0]('sent');
        await done;
      };
      model.getResponse = async (request) => {
        if (when === 'before' && model.requests.length === 0) await end();
        return getResponse(request);
      };
      const other = agentOf(elsewhere(session), model);
      await resume(other);
      assert.match(model.requests[0].at(-1).output.text, /^Interrupted: this call has no recorded result/);
      if (when === 'after') {
        await assert.rejects(again(), { code: 'wrong_state', details: { outcome: 'unknown', callId: 'a' } });
        await end();
      }
      await new Runner().run(other, 'q 2', { session: agents });
      assert.deepEqual(await textsOf(agents), ['sent']);
      assert.equal(model.requests[1].find(({ type }) => type === 'function_call_result').output.text, 'sent');
      assert.equal(await again(), 'sent');
      assert.equal(sending.length, 1);
    });

  test('r18 r53 of a call that was killed in its tool is that it may have run, in the next run', async () => {
    const { session, agents, agentOf } = await waitingRun();
    const model = new ScriptedModel([[said('Who knows.')]]);
    await new Runner().run(agentOf(elsewhere(session), model), 'q 2', { session: agents });
    assert.match(model.requests[0][3].output.text, /^Interrupted: this call has no recorded result/);
  });
});

test('r18 r53 a result that another process has stored is not replaced by what a run was told of an unknown call', async () => {
  const [first, second] = await openings(2);
  const sending = [];
  const execute = () => new Promise((resolve) => sending.push(resolve));
  const agentOf = (session, model, errorFunction) => {
    const send = once(session, { name: 'send_mail', execute });
    const options = { name: 'send_mail', description: '', parameters: z.object({ to: z.string() }) };
    return new Agent({
      name: 'A',
      model,
      tools: [tool({ ...options, needsApproval: true, execute: send, errorFunction })],
    });
  };
  const resume = async (agent, session, saved) => {
    const state = await RunState.fromString(agent, saved);
    for (const interruption of state.getInterruptions()) state.approve(interruption);
    return new Runner().run(agent, state, { session });
  };
  const agents = agentsSession(first);
  const agent = agentOf(first, new ScriptedModel([[mailed, said('One moment.')], [said('done')]]));
  const saved = (await new Runner().run(agent, 'q', { session: agents })).state.toString();
  const done = resume(agent, agents, saved);
  await waitFor(() => sending.length);
  // The result comes after this process was told that the call may have run, and before it stores that.
  const errorFunction = async () => {
    sending[0]('sent');
    await done;
    return 'Failed. Please try again.';
  };
  const other = agentOf(second, new ScriptedModel([[said('Who knows.')]]), errorFunction);
  await resume(other, agentsSession(second), saved);
  assert.deepEqual(await textsOf(agents), ['sent']);
  const model = new ScriptedModel([[said('again')]]);
  await new Runner().run(agentOf(first, model), 'q 2', { session: agents });
  const told = model.requests[0].filter(({ type }) => type === 'function_call_result');
  assert.deepEqual(
    told.map(({ output }) => output.text),
    ['sent'],
  );
});
