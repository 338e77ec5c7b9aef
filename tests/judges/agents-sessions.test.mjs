// r53: an agent that is durable for one session, in runs of another one, and of none.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, MemorySession, Runner, RunState, setTracingDisabled } from '@openai/agents';
import { open } from 'rethread';
import { agentsSession } from 'rethread/openai-agents';
import { call, lookTool, newSession, said, ScriptedModel, user } from './agents.mjs';

setTracingDisabled(true);

/** A durable agent of session a; `b` is another one. `wrap` makes the agent that is run. */
async function twoSessions(answers, more, wrap = (agent) => agent) {
  const store = await open();
  const [a, b] = await Promise.all(['a', 'b'].map(async (id) => agentsSession(await store.session(id))));
  const model = new ScriptedModel(answers);
  const ran = [];
  const agent = wrap(a.durable(new Agent({ name: 'A', model, tools: [lookTool(ran)], ...more })));
  return { store, a, b, agent, model, ran };
}

const refused = (promise, words) =>
  assert.rejects(promise, (error) => error.code === 'config_invalid' && words.test(error.message));

async function finished(run) {
  await run.completed;
  return run;
}

describe('r53 one durable agent has one session', () => {
  for (const stream of [false, true]) {
    const begin = async (agent, input, session) =>
      stream
        ? finished(await new Runner().run(agent, input, { session, stream }))
        : new Runner().run(agent, input, { session });

    test(`r53 a run with another session is rejected, and neither stored nor sent${stream ? ', as a stream' : ''}`, async () => {
      const { store, a, b, agent, model, ran } = await twoSessions([[call('c')], [said('done')], [said('own')]]);
      await a.addItems([user('of a')]);
      await refused(begin(agent, 'of b', b), /another session.*history\.durable\(agent\)/);
      await refused(begin(agent, 'of b', agentsSession(await store.session('a'))), /another session/);
      assert.deepEqual(await a.getItems(), [user('of a')]);
      assert.deepEqual([model.requests, ran], [[], []]);
      await begin(agent, 'of a, too', a);
      assert.deepEqual(ran, ['look']);
      assert.deepEqual(model.requests[0], [user('of a'), user('of a, too')]);
    });

    test(`r53 a run without its session is rejected, and neither stored nor sent${stream ? ', as a stream' : ''}`, async () => {
      const { a, agent, model } = await twoSessions([[call('c')], [said('done')]]);
      await a.addItems([user('of a')]);
      await a.getItems();
      for (const session of [undefined, new MemorySession()]) {
        await refused(begin(agent, 'of b', session), /has not read its session.*session: history/);
        await refused(begin(agent, [], session), /has not read its session/);
      }
      assert.deepEqual(await a.getItems(), [user('of a')]);
      assert.deepEqual(model.requests, []);
    });
  }

  test('r53 an agent that hands a run of another session off to a durable one is rejected', async () => {
    const handoff = { ...call('h'), name: 'transfer_to_A' };
    const front = (agent) => new Agent({ name: 'F', model: new ScriptedModel([[handoff]]), handoffs: [agent] });
    const { a, b, agent, model } = await twoSessions([[said('done')]], {}, front);
    await refused(new Runner().run(agent, 'of b', { session: b }), /another session/);
    assert.deepEqual([await a.getItems(), model.requests], [[], []]);
  });

  test('r53 a state that was stored when the model failed goes on in another process', async () => {
    const { agents } = await newSession();
    const model = new ScriptedModel([new Error('overloaded'), [call('c')], [said('done')]]);
    const agent = agents.durable(new Agent({ name: 'A', model, tools: [lookTool([])] }));
    const failed = await new Runner().run(agent, 'q', { session: agents, stream: true });
    await assert.rejects(failed.completed, /overloaded/);
    const again = await RunState.fromString(agent, failed.state.toString());
    assert.equal((await new Runner().run(agent, again, { session: agents })).finalOutput, 'done');
    assert.deepEqual(
      (await agents.getItems()).map(({ type, role }) => role ?? type),
      ['user', 'function_call', 'function_call_result', 'assistant'],
    );
  });

  for (const asksAnew of [true, false]) {
    test(`r53 a state from before the first answer goes on${asksAnew ? ' with more input' : ', of a question that a guardrail checks'}`, async () => {
      const { session, agents } = await newSession();
      let checks = 0;
      const execute = async () => {
        checks += 1;
        if (checks === 1) throw new Error('overloaded');
        return { tripwireTriggered: false, outputInfo: {} };
      };
      const model = new ScriptedModel([...(asksAnew ? [new Error('overloaded')] : []), [call('c')], [said('done')]]);
      const guards = asksAnew ? {} : { inputGuardrails: [{ name: 'g', execute, runInParallel: false }] };
      const original = new Agent({ name: 'A', model, tools: [lookTool([])], ...guards });
      const options = { session: agents, stream: asksAnew };
      const saved = await new Runner().run(agents.durable(original), 'q', /** @type {any} */ (options)).then(
        (failed) => failed.completed.catch(() => failed.state.toString()),
        (error) => error.state?.toString(),
      );
      assert.equal((await agents.getItems()).length, asksAnew ? 1 : 0);
      // Another process has objects of its own.
      const here = agentsSession(session);
      const agent = here.durable(original);
      const again = await RunState.fromString(agent, saved);
      if (asksAnew) again.addInput([user('and?')]);
      assert.equal((await new Runner().run(agent, again, { session: here })).finalOutput, 'done');
      const types = (await here.getItems()).map(({ type, role }) => role ?? type);
      assert.deepEqual(types.slice(-3), ['function_call', 'function_call_result', 'assistant']);
    });
  }

  test('r53 an approved tool of a state of another session does not run', async () => {
    const { a, b, model, ran } = await twoSessions([[call('c')], [call('c')], [said('done')]]);
    const mine = new Agent({ name: 'A', model, tools: [lookTool(ran, { needsApproval: true })] });
    const stateOf = async (history, original) => {
      const waiting = await new Runner().run(history.durable(original), 'q', { session: history });
      return waiting.state.toString();
    };
    const approved = async (durable, saved) => {
      const state = await RunState.fromString(durable, saved);
      for (const interruption of state.getInterruptions()) state.approve(interruption);
      return state;
    };
    const ofB = await stateOf(b, mine);
    const durable = a.durable(mine);
    for (const session of [undefined, a, b]) {
      const run = new Runner().run(durable, await approved(durable, ofB), { session });
      await assert.rejects(
        run,
        ({ error }) => error.code === 'config_invalid' && /does not have the call c /.test(error.message),
      );
    }
    assert.deepEqual([ran, await a.getItems()], [[], []]);
    assert.equal((await b.getItems()).length, 2);
    const own = await stateOf(a, mine);
    const done = await new Runner().run(durable, await approved(durable, own), { session: a });
    assert.deepEqual([done.finalOutput, ran], ['done', ['look']]);
  });

  for (const isDurable of [false, true]) {
    for (const isWaiting of [false, true]) {
      test(`r53 a tool of a durable agent is ${isDurable ? 'a durable' : 'an'} agent with a session of its own${isWaiting ? ', after an approval' : ''}`, async () => {
        const { a, b } = await twoSessions([]);
        const ran = [];
        const helper = new Agent({
          name: 'H',
          model: new ScriptedModel([[call('inner')], [said('helped')]]),
          tools: [lookTool(ran)],
        });
        const toolOf = isDurable ? b.durable(helper) : helper;
        const help = toolOf.asTool({
          toolName: 'help',
          toolDescription: '',
          needsApproval: isWaiting,
          runOptions: { session: b },
        });
        const asks = call('c', { name: 'help', arguments: '{"input":"help me"}' });
        const model = new ScriptedModel([[asks], [said('done')]]);
        const agent = a.durable(new Agent({ name: 'A', model, tools: [help] }));
        let done = await new Runner().run(agent, 'q', { session: a });
        if (isWaiting) {
          const state = await RunState.fromString(agent, done.state.toString());
          for (const interruption of state.getInterruptions()) state.approve(interruption);
          done = await new Runner().run(agent, state, { session: a });
        }
        assert.deepEqual([done.finalOutput, ran], ['done', ['look']]);
        assert.equal((await a.getItems()).length, 4);
        assert.equal((await b.getItems()).length, 4);
      });
    }
  }
});
