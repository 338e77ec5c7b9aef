// r53: the items of the Agents SDK keep their order, also where parts of an answer stand between its calls, and where
// an id comes again.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, MemorySession, RunContext, Runner, RunState, setTracingDisabled } from '@openai/agents';
import { agentsSession } from 'rethread/openai-agents';
import { call, elsewhere, lookTool, newSession, result, said, ScriptedModel, user } from './agents.mjs';
import { seeded } from './ui-messages.mjs';

setTracingDisabled(true);
const CASES = Number(process.env.RETHREAD_CASES ?? (process.env.RETHREAD_LONG ? 1000 : 30));
const SEED = Number(process.env.RETHREAD_SEED ?? 20261128);

const reasoning = (id) => ({ type: 'reasoning', id, content: [{ type: 'input_text', text: `Let me see ${id}.` }] });
const text = (value) => ({ type: 'text', text: value });
const edited = (n) => ({ arguments: `{"n":${n}}` });

/** The calls of the session, with what they have as a result. */
async function callsOf(session) {
  const { items } = await session.messages({ limit: 1000 });
  const calls = items.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool_call'));
  return calls.map(({ callId, result: told }) => [callId, told?.content ?? null]);
}

describe('r53 the order of items', () => {
  const answers = {
    'reasoning between calls': [reasoning('r1'), call('a'), reasoning('r2'), call('b')],
    'a text after a call': [call('a'), said('One moment.')],
    'a text between calls': [call('a', { id: 'fc_1' }), said('And the other one.'), call('b')],
    'a hosted call between calls': [
      call('a'),
      { type: 'hosted_tool_call', id: 'ws_1', name: 'web_search_call', status: 'completed' },
      call('b'),
    ],
  };
  for (const [name, answer] of Object.entries(answers)) {
    test(`r53 an answer with ${name} comes back once and in order, in a run and after it`, async () => {
      const outcomes = [];
      for (const kind of ['memory', 'plain', 'durable']) {
        const { agents, session } = kind === 'memory' ? {} : await newSession();
        const own = agents ?? new MemorySession();
        const model = new ScriptedModel([answer, [said('done')], [said('again')]]);
        const plain = new Agent({ name: 'A', model, tools: [lookTool([])] });
        const agent = kind === 'durable' ? own.durable(plain) : plain;
        for (const question of ['q', 'and?']) await new Runner().run(agent, question, { session: own });
        outcomes.push(JSON.parse(JSON.stringify({ items: await own.getItems(), requests: model.requests })));
        if (!session) continue;
        const { json, report } = await session.render({ dialect: 'openai-chat', params: { model: 'm' } });
        assert.deepEqual(
          report.filter(({ severity }) => severity === 'error'),
          [],
        );
        const ids = json.messages.flatMap(({ tool_calls: calls }) => calls?.map(({ id }) => id) ?? []);
        assert.deepEqual(
          ids,
          answer.flatMap(({ callId }) => callId ?? []),
        );
      }
      const [memory, ...ours] = outcomes;
      for (const outcome of ours) assert.deepEqual(outcome, memory);
    });

    test(`r53 an answer with ${name} is imported once and in order, with one result or all`, async () => {
      const calls = answer.filter(({ type }) => type === 'function_call');
      for (const results of [calls.slice(0, 1), calls, calls.toReversed()]) {
        for (const output of [undefined, 'a text alone']) {
          const { agents, session } = await newSession();
          const items = [user('q'), ...answer, ...results.map(({ callId }) => result(callId, output))];
          await agents.addItems(items);
          assert.deepEqual(await agents.getItems(), items);
          const told = (await callsOf(session)).filter(([, content]) => content !== null);
          assert.equal(told.length, results.length);
        }
      }
    });
  }
});

describe('r53 an id that comes again', () => {
  test('r53 the result of an older call goes to no later one that has its id', async () => {
    const { agents, session } = await newSession();
    await agents.addItems([user('q'), call('a', edited(1))]);
    // As a run stores what was not stored early: the result, and with it the next answer.
    await agents.addItems([result('a', text('one')), call('a', edited(2))], new RunContext());
    assert.deepEqual(await callsOf(session), [
      ['a', 'one'],
      ['a', null],
    ]);
    await agents.addItems([result('a', text('two'))]);
    const items = [user('q'), call('a', edited(1)), result('a', text('one')), call('a', edited(2))];
    assert.deepEqual(await agents.getItems(), [...items, result('a', text('two'))]);
    for (const item of [result('a', text('two')), ...items.toReversed()])
      assert.deepEqual(await agents.popItem(), item);
    assert.deepEqual((await session.messages()).items, []);
  });

  test('r53 two calls of one answer with one id have their results in order', async () => {
    const items = [
      user('q'),
      call('a', edited(1)),
      call('a', edited(2)),
      result('a', text('one')),
      result('a', text('two')),
    ];
    for (const cuts of [[], [3], [3, 4], [4]]) {
      const { agents, session } = await newSession();
      const starts = [0, ...cuts];
      for (const [at, start] of starts.entries()) await agents.addItems(items.slice(start, starts[at + 1]));
      assert.deepEqual((await agents.store.read()).items, items);
      assert.deepEqual(await callsOf(session), [
        ['a', 'one'],
        ['a', 'two'],
      ]);
    }
  });

  test('r53 the result of one of two calls with one id is not that of the other one after popItem', async () => {
    const { agents, session } = await newSession();
    const calls = [user('q'), call('a', edited(1)), call('a', edited(2))];
    await agents.addItems(calls);
    await agents.addItems([user('q 2'), said('s'), result('a', text('one')), result('x')]);
    assert.deepEqual(await agents.popItem(), result('x'));
    assert.deepEqual((await agents.store.read()).items, [...calls, user('q 2'), said('s'), result('a', text('one'))]);
    assert.deepEqual(await callsOf(session), [
      ['a', 'one'],
      ['a', null],
    ]);
  });

  test('r53 a second result of a call is kept and not sent', async () => {
    const { agents, session } = await newSession();
    const items = [user('q'), call('a'), result('a', text('one')), user('q 2')];
    await agents.addItems(items);
    await agents.addItems([result('a', text('two'))]);
    assert.deepEqual(await agents.getItems(), items);
    assert.deepEqual(await callsOf(session), [['a', 'one']]);
    assert.deepEqual(await agents.popItem(), result('a', text('two')));
    assert.deepEqual((await agents.store.read()).items, items);
  });

  test('r53 a second result of a call keeps no later turn from being compacted, and is not compacted', async () => {
    const { session } = await newSession();
    const asked = [];
    const compact = async (items) => asked.push(items) && null;
    const agents = agentsSession(session, { compact });
    const items = [user('q'), call('a'), result('a', text('one'))];
    await agents.addItems([...items, result('a', text('two'))]);
    const agent = new Agent({ name: 'A', model: new ScriptedModel([[said('done')]]) });
    await new Runner().run(agent, 'q 2', { session: agents });
    assert.deepEqual(asked, [[...items, user('q 2'), said('done')]]);
  });
});

test('r53 a state that goes on without a tool stores its next answer once', async () => {
  const outcomes = [];
  for (const kind of ['memory', 'plain', 'durable']) {
    const own = kind === 'memory' ? new MemorySession() : (await newSession()).agents;
    const ran = [];
    const answers = [[call('a')], [reasoning('r1'), call('b'), said('And this one.')], [said('done')], [said('last')]];
    const model = new ScriptedModel(answers);
    const plain = new Agent({ name: 'A', model, tools: [lookTool(ran, { needsApproval: true })] });
    const agent = kind === 'durable' ? own.durable(plain) : plain;
    let waiting = await new Runner().run(agent, 'q', { session: own });
    for (const decide of ['reject', 'approve']) {
      const state = await RunState.fromString(agent, waiting.state.toString());
      for (const interruption of state.getInterruptions()) state[decide](interruption);
      waiting = await new Runner().run(agent, state, { session: own });
    }
    await new Runner().run(agent, 'q 2', { session: own });
    assert.deepEqual(ran, ['look']);
    outcomes.push(JSON.parse(JSON.stringify({ items: await own.getItems(), requests: model.requests })));
  }
  const [memory, ...ours] = outcomes;
  for (const outcome of ours) assert.deepEqual(outcome, memory);
});

/** Changes of a history by chance, made to a list and to the session. */
class RandomHistory {
  /** @type {any[]} */
  list = [];
  #random;
  #session;
  #agents;
  #made = 0;

  constructor(random, session) {
    this.#random = random;
    this.#session = session;
    this.#open();
  }

  #open() {
    const { below } = this.#random;
    this.#agents = agentsSession(below(2) ? this.#session : elsewhere(this.#session));
  }

  #item() {
    const { below } = this.#random;
    this.#made += 1;
    const kind = below(6);
    if (kind === 0) return user(`q ${this.#made}`);
    if (kind === 1) return said(`s ${this.#made}`);
    const callId = `c${below(6)}`;
    if (kind < 4) return call(callId, edited(this.#made));
    return result(callId, below(2) ? text(`r ${this.#made}`) : `r ${this.#made}`);
  }

  #items(count) {
    return Array.from({ length: count }, () => this.#item());
  }

  async #replace() {
    const { below } = this.#random;
    const count = below(Math.min(4, this.list.length) + 1);
    const expectedSuffix = this.list.splice(this.list.length - count, count);
    const replacement = this.#items(below(3));
    this.list.push(...replacement);
    const transaction = { type: 'replace_suffix', expectedSuffix, replacement };
    const operationId = `op ${(this.#made += 1)}`;
    await this.#agents.applyHistoryTransaction({ operationId, transaction }, below(2) ? new RunContext() : undefined);
  }

  async #mutate() {
    const found = this.list.find(({ type }) => type === 'function_call');
    if (!found) return;
    const replacement = { ...found, ...edited(0) };
    const isCall = ({ type, callId }) => type === 'function_call' && callId === found.callId;
    this.list = this.list.flatMap((item) => (item === found ? [replacement] : isCall(item) ? [] : [item]));
    const mutations = [{ type: 'replace_function_call', callId: found.callId, replacement }];
    await this.#agents.applyHistoryMutations({ mutations });
  }

  async #compact() {
    const compaction = { type: 'compaction', id: `cmp_${(this.#made += 1)}`, encrypted_content: 'sealed' };
    this.list = [compaction, ...this.list.slice(this.list.length - this.#random.below(4))];
    await this.#agents.replaceHistoryWithCompaction(this.list);
  }

  async step() {
    const { below } = this.#random;
    const kind = below(10);
    if (kind < 4) {
      const items = this.#items(1 + below(4));
      this.list.push(...items);
      await this.#agents.addItems(items, below(2) ? new RunContext() : undefined);
    } else if (kind < 6) assert.deepEqual(await this.#agents.popItem(), this.list.pop());
    else if (kind === 6) await this.#replace();
    else if (kind === 7) await this.#mutate();
    else if (kind === 8 && below(3) === 0) await this.#compact();
    else this.#open();
    assert.deepEqual((await this.#agents.store.read()).items, this.list);
  }
}

test('r53 items of the Agents SDK are those of a list, whatever changes are made, and a request has no error', async () => {
  for (let at = 0; at < CASES; at += 1) {
    const label = `RETHREAD_SEED=${SEED + at} RETHREAD_CASES=1`;
    const { session } = await newSession();
    const history = new RandomHistory(seeded(SEED + at), session);
    for (let step = 0; step < 25; step += 1) {
      await history.step().catch((cause) => {
        throw new Error(`${label} step ${step}: ${cause.message}`, { cause });
      });
    }
    const { report } = await session.render({
      dialect: 'anthropic',
      params: { model: 'm', max_tokens: 9 },
      input: 'q',
    });
    assert.deepEqual(
      report.filter(({ severity }) => severity === 'error'),
      [],
      label,
    );
  }
});
