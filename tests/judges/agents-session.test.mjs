// r53: `rethread/openai-agents` with the SDK itself: its runner, its own session beside ours, and its types of items.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { Agent, MemorySession, RunContext, Runner, setTracingDisabled, Usage } from '@openai/agents';
import { open } from 'rethread';
import { agentsSession } from 'rethread/openai-agents';
import { beaten, call, elsewhere, lookTool, newSession, result, said, ScriptedModel, user } from './agents.mjs';

setTracingDisabled(true);

const LONG = 'A long text, which the record of a message need not have a second time.';
const reasoning = (id) => ({
  type: 'reasoning',
  id,
  content: [{ type: 'input_text', text: 'Let me see.' }],
  providerData: { encrypted_content: 'sealed' },
});

const ITEMS = [
  { type: 'message', role: 'system', content: 'Be brief.' },
  user('Hi'),
  user([
    { type: 'input_text', text: LONG },
    { type: 'input_image', image: `data:image/png;base64,${'iVBORw0K'.repeat(9)}`, detail: 'low' },
    { type: 'input_image', image: 'https://example.com/a.png' },
    { type: 'input_file', file: { id: 'file_1' }, filename: 'a.pdf' },
    { type: 'audio', audio: 'UklGRg==', format: 'wav' },
  ]),
  reasoning('rs_1'),
  said(LONG, { id: 'msg_1', providerData: { phase: 'commentary' } }),
  call('call_1', { arguments: `{ "place":  "${LONG}" }`, providerData: { $text: 0 } }),
  call('call_2', { namespace: 'places' }),
  result('call_2', 'as a text'),
  result('call_1'),
  call('call_3', { arguments: 'not JSON' }),
  result('call_3', [{ type: 'input_image', image: 'https://example.com/b.png' }]),
  call('call_4', { name: 'look' }),
  result('call_4', { type: 'text', text: LONG }),
  {
    type: 'hosted_tool_call',
    id: 'ws_1',
    name: 'web_search_call',
    status: 'completed',
    providerData: { type: 'web_search' },
  },
  { type: 'shell_call', callId: 'sh_1', status: 'completed', action: { commands: ['ls'] } },
  {
    type: 'shell_call_output',
    callId: 'sh_1',
    output: [{ stdout: 'a', stderr: '', outcome: { type: 'exit', exitCode: 0 } }],
  },
  { type: 'unknown', providerData: { type: 'of_the_future', bytes: new Uint8Array([0, 255, 7]) } },
  {
    ...said('Part one.'),
    content: [
      { type: 'output_text', text: 'One.' },
      { type: 'refusal', refusal: 'Not two.' },
    ],
  },
];

const rejects = (promise, code) => assert.rejects(promise, (error) => error.code === code);

describe('r53 the items of the Agents SDK', () => {
  test('r53 items of every type come back equal, added at once or one by one, and are popped as they were', async () => {
    const { agents, session } = await newSession();
    await agents.addItems(ITEMS);
    assert.deepEqual(await agents.getItems(), ITEMS);
    for (let left = ITEMS.length - 1; left >= 0; left -= 1) {
      assert.deepEqual(await agents.popItem(), ITEMS[left]);
      assert.deepEqual(await agentsSession(session).getItems(), ITEMS.slice(0, left));
    }
    assert.equal(await agents.popItem(), undefined);
    assert.deepEqual((await session.messages()).items, [], 'popped items are erased');
    for (const [at, item] of ITEMS.entries()) {
      await agents.addItems([item]);
      assert.deepEqual(await agents.getItems(), ITEMS.slice(0, at + 1));
    }
    assert.deepEqual(await agentsSession(session).getItems(), ITEMS);
    const stored = JSON.stringify((await session.messages()).items);
    assert.equal(
      stored.split(LONG).length - 1,
      5,
      'a long text is stored once: two texts, arguments (also parsed) and a result',
    );
    await agents.clearSession();
    assert.deepEqual(await agents.getItems(), []);
  });

  test('r53 what other parts of rethread have stored are items, and items are messages for them', async () => {
    const { agents, session } = await newSession();
    const wire = [
      { role: 'user', content: 'Hi' },
      { type: 'function_call', call_id: 'call_1', name: 'look', arguments: '{"a":1}' },
      { type: 'function_call_output', call_id: 'call_1', output: 'seen' },
      { role: 'assistant', content: [{ type: 'output_text', text: 'Hello.' }] },
    ];
    await session.append({ input: wire }, 'openai-responses');
    await agents.addItems([user('And now?'), call('call_2'), result('call_2'), said('Now.')]);
    assert.deepEqual(
      (await agents.getItems()).map((item) => item.callId ?? item.content[0].text ?? item.content),
      ['Hi', 'call_1', 'call_1', 'Hello.', 'And now?', 'call_2', 'call_2', 'Now.'],
    );
    const { body, report } = await session.render({ dialect: 'anthropic', params: { model: 'm', max_tokens: 9 } });
    assert.deepEqual(
      report.filter(({ severity }) => severity === 'error'),
      [],
    );
    assert.match(new TextDecoder().decode(body), /result of call_2.*Now\./s);
  });

  test('r53 a result without a call is never given, and a limit tears no pair apart', async () => {
    const { agents } = await newSession();
    const items = [user('q'), reasoning('rs_1'), call('a'), call('b'), result('a'), result('b'), said('done')];
    await agents.addItems([result('of nothing'), ...items]);
    assert.deepEqual(await agents.getItems(), items);
    for (const limit of [2, 3, 4, 5]) assert.deepEqual(await agents.getItems(limit), items.slice(1), `limit ${limit}`);
    assert.deepEqual(await agents.getItems(1), items.slice(-1));
    assert.deepEqual(await agents.getItems(6), items.slice(1));
    assert.deepEqual(await agents.getItems(7), items);
    assert.deepEqual(await agents.getItems(0), []);
  });
});

describe('r53 changes of history', () => {
  const append = (operationId, items) => ({ operationId, transaction: { type: 'append_items', items } });
  const replace = (operationId, expectedSuffix, replacement) => ({
    operationId,
    transaction: { type: 'replace_suffix', expectedSuffix, replacement },
  });

  test('r53 a transaction is applied once, and one that does not fit changes nothing', async () => {
    const { agents, session } = await newSession();
    const items = [user('q'), call('a'), result('a')];
    await agents.applyHistoryTransaction(append('op 1', items));
    await agents.applyHistoryTransaction(append('op 1', structuredClone(items)));
    assert.deepEqual(await agents.getItems(), items);
    await rejects(agents.applyHistoryTransaction(append('op 1', [user('another')])), 'conflict');
    await rejects(agents.applyHistoryTransaction(replace('op 2', [result('b')], [])), 'conflict');
    await rejects(agents.applyHistoryTransaction({ operationId: ' ', transaction: {} }), 'invalid_input');
    assert.deepEqual(await agents.getItems(), items);

    const accepted = result('a', { type: 'text', text: 'accepted' });
    const change = replace('op 2', [result('a')], [accepted, said('done')]);
    for (let time = 0; time < 2; time += 1) await agents.applyHistoryTransaction(change);
    assert.deepEqual(await agents.getItems(), [user('q'), call('a'), accepted, said('done')]);
    await agents.applyHistoryTransaction(replace('op 3', [said('done')], []));
    // An operation is known as long as the session, whatever became of its items, and whoever opens it.
    const reopened = agentsSession(session);
    await reopened.applyHistoryTransaction(append('op 1', items));
    await reopened.applyHistoryTransaction(change);
    assert.deepEqual(await reopened.getItems(), [user('q'), call('a'), accepted]);
    assert.ok(!JSON.stringify((await session.messages()).items).includes('result of a'), 'what was replaced is erased');
  });

  test('r53 a writer that another one beats changes the history as it is then', async () => {
    const { agents, session } = await newSession();
    await agents.addItems([user('q'), call('a')]);
    const change = append('op', [result('a')]);
    const late = agentsSession(beaten(session, () => agents.applyHistoryTransaction(change)));
    await late.applyHistoryTransaction(change);
    assert.deepEqual(await agents.getItems(), [user('q'), call('a'), result('a')]);
    const wrong = agentsSession(beaten(session, () => agents.addItems([said('first')])));
    await rejects(wrong.applyHistoryTransaction(replace('op 2', [result('a')], [])), 'conflict');
    assert.deepEqual(await agents.getItems(), [user('q'), call('a'), result('a'), said('first')]);
  });

  test('r53 two that take the last item at once get two items', async () => {
    const { agents, session } = await newSession();
    await agents.addItems([user('q 1')]);
    await agents.addItems([user('q 2')]);
    await agents.addItems([user('q 3')]);
    const popped = await Promise.all([agents, agentsSession(elsewhere(session))].map((one) => one.popItem()));
    assert.deepEqual(popped.map(({ content }) => content).sort(), ['q 2', 'q 3']);
    const late = agentsSession(beaten(session, () => agents.addItems([user('q 4')])));
    assert.deepEqual(await late.popItem(), user('q 4'));
    assert.deepEqual(await agents.getItems(), [user('q 1')]);
    assert.equal((await session.messages()).items.length, 1);
  });

  test('r53 what an unfinished run of the session keeps from being erased counts no longer, and goes with the next change', async () => {
    const { agents, session } = await newSession();
    await agents.addItems([user('q'), call('a'), result('a')]);
    const provider = { dialect: 'openai-chat', url: 'https://example.com/v1', params: { model: 'm' } };
    const run = await session.run({ input: 'run', provider });
    assert.deepEqual(await agents.popItem(), result('a'));
    assert.deepEqual(await agents.getItems(), [user('q'), call('a')]);
    assert.deepEqual([await agents.popItem(), await agents.popItem()], [call('a'), user('q')]);
    assert.deepEqual(await agents.getItems(), []);
    await agents.addItems([user('q'), call('a')]);
    assert.match(JSON.stringify((await session.messages()).items), /result of a/);
    await run.cancel();
    await agents.addItems([result('a', { type: 'text', text: 'another' })]);
    assert.ok(!JSON.stringify((await session.messages()).items).includes('result of a'));
    assert.equal((await agents.getItems()).length, 3);
  });

  test('r53 a call is rewritten, and a compaction keeps what the page shows', async () => {
    const { agents, session } = await newSession();
    await agents.addItems([user('q'), call('a'), result('a'), user('q 2'), call('b'), result('b')]);
    const replacement = call('b', { arguments: '{"edited":true}' });
    await agents.applyHistoryMutations({ mutations: [{ type: 'replace_function_call', callId: 'b', replacement }] });
    assert.deepEqual(await agents.getItems(), [
      user('q'),
      call('a'),
      result('a'),
      user('q 2'),
      replacement,
      result('b'),
    ]);

    const compacted = [{ type: 'compaction', id: 'cmp_1', encrypted_content: 'sealed' }, user('q 2')];
    await agents.replaceHistoryWithCompaction(compacted);
    await agents.addItems([said('done')]);
    assert.deepEqual(await agents.getItems(), [...compacted, said('done')]);
    const texts = (await session.messages()).items.flatMap(({ parts }) => parts.flatMap(({ text }) => text ?? []));
    assert.deepEqual(texts, ['q', 'q 2', 'done']);
  });

  test('r53 a run compacts only what it has read itself, and what its model was sent', async () => {
    const asked = [];
    const compact = async (items) => {
      asked.push(items.length);
      return { items: [{ type: 'compaction', encrypted_content: 'sealed' }], usage: new Usage({ totalTokens: 5 }) };
    };
    const store = await open();
    const session = await store.session('chat');
    const agents = agentsSession(session, { compact });
    await agents.addItems([user('q')]);
    const context = new RunContext();
    const exchange = { items: [user('q'), said('a', { id: 'msg_1' })] };

    const { ownership } = await agents.getItemsWithCompactionOwnership(context);
    assert.equal(JSON.stringify(ownership), '{}');
    await agents.addItemsWithCompactionOwnership([said('a')], ownership, context);
    assert.equal(await agents.runCompaction({}, context, null, exchange), null);
    assert.equal(
      await agents.runCompaction({}, context, ownership, { items: [user('q')] }),
      null,
      'a part was not sent',
    );
    await agentsSession(session).addItems([user('from elsewhere')]);
    exchange.items.push(user('from elsewhere'), said('b'));
    assert.equal(await agents.runCompaction({}, context, ownership, exchange), null, 'somebody else has written');
    await agents.addItemsWithCompactionOwnership([said('b')], ownership, context);
    assert.equal(await agents.runCompaction({}, context, ownership, exchange), null, 'an append does not renew it');
    assert.deepEqual(asked, []);

    const model = new ScriptedModel([[said('c')]]);
    const run = await new Runner().run(new Agent({ name: 'A', model }), 'q 2', { session: agents });
    assert.deepEqual(asked, [6]);
    assert.deepEqual(await agents.getItems(), [{ type: 'compaction', encrypted_content: 'sealed' }]);
    assert.equal(run.state.usage.totalTokens, 5);
  });

  test('r53 a compaction during which somebody writes changes nothing, and compact may read the session', async () => {
    const { session } = await newSession();
    const usage = new Usage({ totalTokens: 5 });
    const agents = agentsSession(session, {
      compact: async (items) => {
        if ((await agents.getItems()).length === 1) await agents.addItems([user('meanwhile')]);
        return { items: [{ type: 'compaction', encrypted_content: `${items.length}` }], usage };
      },
    });
    await agents.addItems([user('q')]);
    const context = new RunContext();
    const { ownership } = await agents.getItemsWithCompactionOwnership(context);
    const exchange = { items: [user('q'), user('meanwhile')] };
    assert.deepEqual(await agents.runCompaction({}, context, ownership, exchange), { usage });
    assert.deepEqual(await agents.getItems(), exchange.items);
    assert.equal(await agents.runCompaction({}, context, ownership, exchange), null, 'the receipt is as it was');
    const { ownership: renewed } = await agents.getItemsWithCompactionOwnership(context);
    await agents.runCompaction({}, context, renewed, exchange);
    assert.deepEqual(await agents.getItems(), [{ type: 'compaction', encrypted_content: '2' }]);
  });
});

describe('r53 run(agent, input, { session })', () => {
  const turns = () => [
    [reasoning('rs_1'), call('a', { id: 'fc_1' }), call('b', { id: 'fc_2' })],
    [said('done', { id: 'msg_1' })],
    [call('c', { id: 'fc_3' })],
    [said('done again', { id: 'msg_2' })],
  ];

  for (const stream of [false, true]) {
    test(`r53 sends and stores what the SDK's own session does, durable or not (stream: ${stream})`, async () => {
      const outcomes = [];
      for (const kind of ['memory', 'rethread', 'durable']) {
        const session = kind === 'memory' ? new MemorySession() : (await newSession()).agents;
        const model = new ScriptedModel(turns());
        const plain = new Agent({ name: 'A', model, tools: [lookTool([])] });
        const agent = kind === 'durable' ? session.durable(plain) : plain;
        for (const question of ['q 1', 'q 2']) {
          const run = await new Runner().run(agent, question, { session, stream });
          if (stream) await run.completed;
        }
        outcomes.push({ items: await session.getItems(), requests: model.requests });
      }
      const [memory, ...ours] = outcomes;
      assert.equal(memory.items.length, 11);
      // The SDK's own session has members that are undefined.
      for (const outcome of ours) assert.deepEqual(outcome, JSON.parse(JSON.stringify(memory)));
    });
  }

  const EDITING = {
    'an input filter': {
      run: {
        callModelInputFilter: ({ modelData: { input, instructions } }) => ({
          instructions,
          input: [user('added'), ...input.map((item) => (item.content === 'q 1' ? user('redacted') : item))],
        }),
      },
    },
    'a callback that joins history and input': {
      run: { sessionInputCallback: (past, input) => [user('added'), ...past.slice(-1), ...input] },
    },
    'reasoning without ids': { run: { reasoningItemIdPolicy: 'omit' } },
    'ids of calls that come again': { answers: () => [[call('a')], [said('done')], [call('a')], [said('done')]] },
    'outputs that are objects': { output: { found: 1 } },
    'an output that is an image': { output: { type: 'image', image: 'https://example.com/a.png' } },
    'an output that is a number': { output: 5 },
    'a guardrail of a tool': {
      tool: {
        outputGuardrails: [
          { name: 'g', run: async () => ({ behavior: { type: 'rejectContent', message: 'withheld' } }) },
        ],
      },
    },
    'a handoff with a filter': {
      agent: (more) => {
        const model = new ScriptedModel([[call('b')], [said('from B')], [said('again from B')]]);
        const handoffs = [new Agent({ name: 'B', ...more, model })];
        const start = [call('h', { name: 'transfer_to_B' })];
        return new Agent({ name: 'A', ...more, model: new ScriptedModel([start, start]), handoffs });
      },
      runner: {
        handoffInputFilter: (data) => ({ ...data, inputHistory: [user('summary')], preHandoffItems: [], newItems: [] }),
      },
    },
  };
  for (const [name, { run = {}, runner = {}, answers = turns, output = 'seen', ...more }] of Object.entries(EDITING)) {
    test(`r53 a durable run leaves the history that the SDK stores: ${name}`, async () => {
      const outcomes = [];
      for (const kind of ['memory', 'durable']) {
        const { agents } = kind === 'memory' ? {} : await newSession();
        const session = agents ?? new MemorySession();
        const tools = [lookTool([], { execute: async () => output, ...more.tool })];
        const model = new ScriptedModel(answers());
        const plain = more.agent?.({ tools }) ?? new Agent({ name: 'A', model, tools });
        const agent = kind === 'durable' ? session.durable(plain) : plain;
        for (const question of ['q 1', 'q 2']) await new Runner(runner).run(agent, question, { session, ...run });
        outcomes.push(JSON.parse(JSON.stringify(await session.getItems())));
      }
      assert.ok(outcomes[0].length >= 4);
      assert.deepEqual(outcomes[1], outcomes[0]);
    });
  }

  test('r53 a model that fails in the third call costs no result, and the run goes on', async () => {
    const kept = {};
    for (const kind of ['memory', 'durable']) {
      const session = kind === 'memory' ? new MemorySession() : (await newSession()).agents;
      const answers = [[call('a')], [call('b')], new Error('the service is down'), [said('done')]];
      const model = new ScriptedModel(answers);
      const ran = [];
      const plain = new Agent({ name: 'A', model, tools: [lookTool(ran)] });
      const agent = kind === 'durable' ? session.durable(plain) : plain;
      await assert.rejects(new Runner().run(agent, 'q', { session }), /the service is down/);
      kept[kind] = (await session.getItems()).length;
      if (kind === 'memory') continue;
      const run = await new Runner().run(agent, [], { session });
      assert.equal(run.finalOutput, 'done');
      assert.deepEqual(ran, ['look', 'look']);
      const seen = { type: 'text', text: 'seen' };
      const turn = [user('q'), call('a'), result('a', seen), call('b'), result('b', seen)];
      assert.deepEqual(model.requests.at(-1), turn);
      assert.deepEqual(await session.getItems(), [...turn, said('done')]);
    }
    assert.deepEqual(kept, { memory: 0, durable: 5 }, "the SDK's own session has forgotten both tools");
  });

  test('r53 a run that fails keeps the question and the results, and not what a filter adds to each request', async () => {
    const { agents } = await newSession();
    const model = new ScriptedModel([[call('a')], [call('b')], new Error('the service is down')]);
    const agent = agents.durable(new Agent({ name: 'A', model, tools: [lookTool([])] }));
    const callModelInputFilter = ({ modelData: { input, instructions } }) => ({
      instructions,
      input: [...input, user(`note ${model.requests.length}`)],
    });
    const failed = new Runner().run(agent, 'q', { session: agents, callModelInputFilter });
    await assert.rejects(failed, /the service is down/);
    const seen = { type: 'text', text: 'seen' };
    const turn = [call('a'), result('a', seen), call('b'), result('b', seen)];
    assert.deepEqual(await agents.getItems(), [user('q'), user('note 0'), ...turn]);
  });

  test('r53 an answer that a guardrail blocks is stored as the SDK stores it, also after tools', async () => {
    const outcomes = [];
    for (const kind of ['memory', 'durable']) {
      const session = kind === 'memory' ? new MemorySession() : (await newSession()).agents;
      const model = new ScriptedModel([[call('a')], [said('the secret')]]);
      const guardrail = { name: 'g', execute: async () => ({ tripwireTriggered: true, outputInfo: {} }) };
      const plain = new Agent({ name: 'A', model, tools: [lookTool([])], outputGuardrails: [guardrail] });
      const agent = kind === 'durable' ? session.durable(plain) : plain;
      await assert.rejects(new Runner().run(agent, 'q', { session }), /[Gg]uardrail/);
      outcomes.push(JSON.parse(JSON.stringify(await session.getItems())));
    }
    assert.deepEqual(outcomes[1], outcomes[0]);
    assert.ok(!JSON.stringify(outcomes).includes('the secret'));
  });

  test('r53 an agent with the name of a model needs a provider, and what is no session is refused', async () => {
    const { agents } = await newSession();
    const model = new ScriptedModel([[said('done')]]);
    const named = new Agent({ name: 'A', model: 'm' });
    assert.throws(() => agents.durable(named), { code: 'config_invalid' });
    const agent = agents.durable(named, { modelProvider: { getModel: (name) => (name === 'm' ? model : null) } });
    assert.equal((await new Runner().run(agent, 'q', { session: agents })).finalOutput, 'done');
    assert.throws(() => agentsSession({}), { code: 'config_invalid' });
    assert.throws(() => agentsSession({ append() {} }, { limit: 1 }), { code: 'config_invalid' });
  });
});
