// `Session.compact` and stored summaries of reducers, in Node.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { keyValueService } from './key-value-service.mjs';

const turn = (n) => [
  { role: 'user', content: `<q${n}>` },
  {
    role: 'assistant',
    content: null,
    tool_calls: [{ id: `c${n}`, type: 'function', function: { name: 'f', arguments: '{}' } }],
  },
  { role: 'tool', tool_call_id: `c${n}`, content: `<r${n}>` },
  { role: 'assistant', content: `<a${n}>` },
];
const turns = (from, to) => ({ messages: Array.from({ length: to - from }, (_, n) => turn(from + n)).flat() });
const decode = (body) => JSON.parse(new TextDecoder().decode(body));

async function filled(count, options = {}) {
  const client = await open({ store: 'memory', ...options });
  const session = await client.session('s');
  if (count > 0) await session.append(turns(0, count), 'openai-chat');
  return { client, session };
}

async function shown(session, dialect = 'openai-chat', replay = undefined) {
  return JSON.stringify(decode((await session.render({ dialect, input: '<next>', replay })).body));
}

const provider = {
  dialect: 'openai-chat',
  url: 'https://model.test/v1/chat/completions',
  params: { model: 'm', temperature: 0 },
};
const answer = (message) => ({
  type: 'response',
  status: 200,
  body: JSON.stringify({
    id: 'x',
    model: 'm',
    choices: [
      {
        index: 0,
        finish_reason: message.tool_calls ? 'tool_calls' : 'stop',
        message: { role: 'assistant', ...message },
      },
    ],
  }),
});
const until = async (condition) => {
  for (let turns = 0; turns < 500 && !(await condition()); turns += 1)
    await new Promise((resolve) => {
      setTimeout(resolve, 1);
    });
  assert.ok(await condition());
};

test('r30 a summary replaces the turns that are over; the originals stay', async () => {
  const { client, session } = await filled(4);
  const bodies = [];
  const summarize = async (body) => {
    assert.ok(body instanceof Uint8Array);
    bodies.push(decode(body));
    return '<sum>';
  };
  assert.deepEqual(await session.compact({ summarize }), { compacted: true, reason: 'threshold' });
  assert.equal(bodies[0].messages.at(-1).role, 'user');
  assert.ok(JSON.stringify(bodies[0]).includes('<r3>'));
  assert.deepEqual(await session.compact({ summarize }), { compacted: false, reason: 'nothing_new' });
  await session.append(turns(4, 5), 'openai-chat');
  assert.deepEqual(await session.compact({ summarize }), { compacted: false, reason: 'below_threshold' });
  assert.equal(bodies.length, 1);
  for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral']) {
    const text = await shown(session, dialect);
    assert.ok(text.includes('<sum>') && text.includes('<r4>') && !text.includes('<r3>'), text);
  }
  assert.equal((await session.messages({ limit: 100 })).items.length, 15);
  const copies = [
    await client.importSession(await client.exportSession('s'), { id: 'lines' }),
    await client.restore(await session.serialize(), { id: 'bytes' }),
  ];
  for (const copy of copies) {
    assert.ok((await shown(copy)).includes('<sum>'));
    assert.equal((await copy.messages({ limit: 100 })).items.length, 15);
  }
  assert.deepEqual(await session.compact({ summarize, force: true }), { compacted: true, reason: 'forced' });
  assert.ok(
    JSON.stringify(bodies[1]).includes('<sum>') &&
      JSON.stringify(bodies[1]).includes('<q4>') &&
      !JSON.stringify(bodies[1]).includes('<q3>'),
  );
  await client.close();
});

test('r30 the request for the summary is one to the model of the session', async () => {
  const { client, session } = await filled(3);
  const bodies = [];
  const summarize = (body) => {
    bodies.push(decode(body));
    throw new Error('later');
  };
  const ask = (options) =>
    assert.rejects(session.compact({ summarize, force: true, ...options }), { code: 'callback_failed' });
  await ask();
  // A run that could not begin says nothing about the model.
  const url = 'https://user:password@model.test/v1/responses';
  await assert.rejects(
    session.run({ input: 'x', provider: { dialect: 'openai-responses', url, params: { model: 'gpt' } } }),
    { code: 'config_invalid' },
  );
  await ask();
  assert.deepEqual(bodies.pop(), bodies[0]);
  await ask({ dialect: 'anthropic', params: { model: 'claude', max_tokens: 9 } });
  assert.ok(bodies[0].messages && !bodies[0].max_tokens);
  assert.deepEqual([bodies[1].model, bodies[1].max_tokens], ['claude', 9]);
  await session.render({
    dialect: 'openai-responses',
    params: { model: 'gpt', tool_choice: 'required', stream: true },
  });
  await ask();
  assert.deepEqual(
    [bodies[2].model, bodies[2].tool_choice, bodies[2].stream, Array.isArray(bodies[2].input)],
    ['gpt', undefined, undefined, true],
  );
  await client.close();
});

test('r30 a summary that fails stores nothing', async () => {
  const { client, session } = await filled(4);
  for (const summarize of [
    () => {
      throw new Error('boom');
    },
    async () => {
      throw new Error('boom');
    },
    () => '',
    async () => ' \n',
    () => 5,
    () => undefined,
  ]) {
    await assert.rejects(session.compact({ summarize }), { code: 'callback_failed' });
  }
  await assert.rejects(session.compact(), { code: 'invalid_input' });
  for (const options of [
    {},
    { summarize: 'x' },
    { summarize: () => '', mode: 'x' },
    { summarize: () => '', params: {} },
    { summarize: () => '', more: 1 },
  ]) {
    await assert.rejects(session.compact(options), { code: 'config_invalid' });
  }
  assert.ok((await shown(session)).includes('<q0>'));
  await client.close();
});

test('r30 an owner whose conversation cannot be shortened is an error that says why', async () => {
  const client = await open({ store: 'memory' });
  const summarize = () => assert.fail('nobody is asked');
  const rejected = async (owner, mode) => {
    const session = await client.session(JSON.stringify([owner, mode]), { owner });
    await session.append(turns(0, 4), 'openai-chat');
    await assert.rejects(session.compact({ summarize, mode }), { code: 'state_owner_conflict' });
  };
  for (const mode of ['auto', 'input', 'previous_response_id']) {
    await rejected({ kind: 'conversation', conversationId: 'conv_1' }, mode);
  }
  await rejected({ kind: 'response', previousResponseId: 'resp_1' }, 'input');
  await rejected({ kind: 'session' }, 'previous_response_id');
  await client.close();
});

/** A turn of a service with a chain of responses; returns the request's body. */
async function chained(session, id, input) {
  const url = 'https://model.test/v1/responses';
  const run = await session.run({ input, provider: { dialect: 'openai-responses', url, params: { model: 'gpt' } } });
  const [{ id: effect, request }] = run.effects();
  const message = {
    type: 'message',
    id: `msg_${id}`,
    role: 'assistant',
    status: 'completed',
    content: [{ type: 'output_text', text: `<${id}>`, annotations: [] }],
  };
  await run.answer(effect, {
    type: 'response',
    status: 200,
    body: JSON.stringify({ id, object: 'response', status: 'completed', model: 'gpt', output: [message] }),
  });
  assert.equal(run.result().status, 'finished');
  return decode(request.body);
}

test('r30 a chain of responses is restarted with a summary, or with the items of the service', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s', { owner: { kind: 'response', auto: true } });
  await chained(session, 'resp_1', '<q1>');
  assert.equal((await chained(session, 'resp_2', '<q2>')).previous_response_id, 'resp_1');
  const asked = [];
  const summarize = (body, mode) => {
    asked.push([decode(body), mode]);
    return '<sum>';
  };
  assert.deepEqual(await session.compact({ summarize, force: true }), { compacted: true, reason: 'forced' });
  assert.deepEqual([asked[0][1], asked[0][0].previous_response_id, asked[0][0].input.length], ['input', undefined, 5]);
  const anew = await chained(session, 'resp_3', '<q3>');
  assert.equal(anew.previous_response_id, undefined);
  assert.deepEqual(
    anew.input.map((item) => JSON.stringify(item).match(/<\w+>/)[0]),
    ['<sum>', '<q3>'],
  );
  assert.equal((await chained(session, 'resp_4', '<q4>')).previous_response_id, 'resp_3');
  // The service shortens it.
  const items = [{ type: 'compaction', id: 'cmp_1', encrypted_content: '<sealed>' }];
  const service = (body, mode) => {
    asked.push([decode(body), mode]);
    return JSON.stringify({ id: 'resp_c', object: 'response.compaction', output: items });
  };
  const mode = 'previous_response_id';
  await assert.rejects(session.compact({ summarize, mode, force: true }), { code: 'callback_failed' });
  assert.equal((await session.compact({ summarize: service, mode, force: true })).compacted, true);
  assert.deepEqual(asked.at(-1), [{ model: 'gpt', previous_response_id: 'resp_4' }, mode]);
  assert.deepEqual(await session.compact({ summarize: service, mode, force: true }), {
    compacted: false,
    reason: 'nothing_new',
  });
  const sealed = await chained(session, 'resp_5', '<q5>');
  assert.deepEqual([sealed.previous_response_id, sealed.input[0], sealed.input.length], [undefined, items[0], 2]);
  assert.ok(
    (await shown(await client.restore(await session.serialize(), { id: 'copy' }), 'openai-responses')).includes(
      'resp_5',
    ),
  );
  assert.equal((await session.messages({ limit: 50 })).items.length, 10);
  await client.close();
});

test('r30 a chain after a response of the application is shortened by its service', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s', { owner: { kind: 'response', previousResponseId: 'resp_0' } });
  assert.equal((await chained(session, 'resp_1', '<q1>')).previous_response_id, 'resp_0');
  const summarize = (body, mode) => {
    assert.deepEqual([decode(body).previous_response_id, mode], ['resp_1', 'previous_response_id']);
    return JSON.stringify({
      object: 'response.compaction',
      output: [{ type: 'compaction', encrypted_content: '<sealed>' }],
    });
  };
  assert.equal((await session.compact({ summarize, force: true })).compacted, true);
  const anew = await chained(session, 'resp_2', '<q2>');
  assert.deepEqual([anew.previous_response_id, anew.input[0].encrypted_content], [undefined, '<sealed>']);
  assert.equal((await chained(session, 'resp_3', '<q3>')).previous_response_id, 'resp_2');
  await client.close();
});

test('r30 what is appended while the summary is written survives', async () => {
  const { client, session } = await filled(4);
  const summarize = async () => {
    await session.append(turns(4, 5), 'openai-chat');
    assert.deepEqual(await session.compact({ summarize: () => 'another' }), { compacted: false, reason: 'under_way' });
    return '<sum>';
  };
  assert.equal((await session.compact({ summarize })).compacted, true);
  const text = await shown(session);
  assert.ok(text.includes('<sum>') && text.includes('<q4>') && text.includes('<r4>') && !text.includes('<q3>'), text);
  await client.close();
});

test('r30 two tabs compact at once: one summary is used, the other tab learns of it', async () => {
  const store = keyValueService();
  const { client, session } = await filled(4, { store, name: 'one' });
  const other = await open({ store, name: 'two' });
  const theirs = await other.session('s');
  const summarize = async () => {
    assert.equal((await theirs.compact({ summarize: () => '<theirs>' })).compacted, true);
    return '<ours>';
  };
  assert.deepEqual(await session.compact({ summarize }), { compacted: false, reason: 'superseded' });
  for (const one of [session, theirs]) {
    await one.refresh();
    const text = await shown(one);
    assert.ok(text.includes('<theirs>') && !text.includes('<ours>'), text);
  }
  await Promise.all([client.close(), other.close()]);
});

test('r30 a compaction waits for the run to end', { timeout: 20_000 }, async () => {
  const { client, session } = await filled(1);
  let asked = 0;
  const summarize = async () => {
    asked += 1;
    return '<sum>';
  };
  const run = await session.run({ input: '<question>', provider, tools: { f: { execute: () => 1 } } });
  assert.deepEqual(await session.compact({ summarize, force: true }), { compacted: false, reason: 'deferred' });
  await run.answer(
    run.effects()[0].id,
    answer({ content: null, tool_calls: [{ id: 'k', type: 'function', function: { name: 'f', arguments: '{}' } }] }),
  );
  assert.deepEqual(await session.compact({ summarize }), { compacted: false, reason: 'deferred' });
  const [tool] = run.effects();
  await run.answer(tool.id, { type: 'started' });
  await run.answer(tool.id, { type: 'tool_result', content: '<tool>' });
  assert.equal(asked, 0);
  await run.answer(run.effects()[0].id, answer({ content: '<done>' }));
  await until(async () => (await shown(session)).includes('<sum>'));
  const text = await shown(session);
  assert.ok(!text.includes('<done>') && !text.includes('<tool>') && asked === 1, text);
  assert.equal((await session.messages({ limit: 50 })).items.length, 6);
  await client.close();
});

test('r30 a compaction that waits for an approval leaves time for others, and is made when the run is over', {
  timeout: 20_000,
}, async () => {
  const { client, session } = await filled(1);
  const run = await session.run({
    input: '<question>',
    provider,
    tools: { f: { needsApproval: true, execute: () => 1 } },
  });
  await run.answer(
    run.effects()[0].id,
    answer({ content: null, tool_calls: [{ id: 'k', type: 'function', function: { name: 'f', arguments: '{}' } }] }),
  );
  for (const _ of [1, 2])
    assert.deepEqual(await session.compact({ summarize: async () => '<sum>', force: true }), {
      compacted: false,
      reason: 'deferred',
    });
  // Trying again and again would leave no time for a timer.
  await new Promise((resolve) => {
    setTimeout(resolve, 5);
  });
  assert.ok(!(await shown(session)).includes('<sum>'));
  await run.reject(run.approvals()[0].invocationId);
  await run.answer(run.effects()[0].id, answer({ content: '<done>' }));
  await until(async () => (await shown(session)).includes('<sum>'));
  await client.close();
});

test('r30 a compaction that waits for an approval is made when the run is discarded', { timeout: 20_000 }, async () => {
  const { client, session } = await filled(1);
  const run = await session.run({
    input: '<question>',
    provider,
    tools: { f: { needsApproval: true, execute: () => 1 } },
  });
  await run.answer(
    run.effects()[0].id,
    answer({ content: null, tool_calls: [{ id: 'k', type: 'function', function: { name: 'f', arguments: '{}' } }] }),
  );
  assert.deepEqual(await session.compact({ summarize: async () => '<sum>', force: true }), {
    compacted: false,
    reason: 'deferred',
  });
  await session.discard(run.id);
  await until(async () => (await shown(session)).includes('<sum>'));
  await client.close();
});

test('r30 a compaction waits for a decision of a person, here and in another tab', { timeout: 20_000 }, async () => {
  const store = keyValueService();
  const { client, session } = await filled(2, { store });
  const other = await open({ store });
  const elsewhere = await other.session('s');
  const run = await session.run({
    input: '<question>',
    provider,
    tools: { f: { execute: () => 1, needsApproval: true } },
  });
  await run.answer(
    run.effects()[0].id,
    answer({ content: null, tool_calls: [{ id: 'k', type: 'function', function: { name: 'f', arguments: '{}' } }] }),
  );
  assert.equal(run.status, 'waiting_approval');
  const asked = [];
  const compact = (target, name) => target.compact({ summarize: async () => `<sum ${asked.push(name)}>`, force: true });
  for (const [target, name] of [
    [session, 'here'],
    [elsewhere, 'elsewhere'],
  ])
    assert.deepEqual(await compact(target, name), { compacted: false, reason: 'deferred' });
  // The page goes on: deferring it again and again would leave no time for a timer.
  await new Promise((resolve) => {
    setTimeout(resolve, 20);
  });
  assert.deepEqual(asked, []);
  await run.reject('k');
  await run.answer(run.effects()[0].id, answer({ content: '<done>' }));
  await until(async () => (await shown(session)).includes('<sum 1>'));
  assert.ok(!(await shown(session)).includes('<done>'));
  assert.deepEqual(asked, ['here']);
  await Promise.all([client.close(), other.close()]);
});

test('r30 a turn of the application that waits for the model is not compacted', async () => {
  const { client, session } = await filled(3);
  const [question, call, result, last] = turn(9);
  await session.append({ messages: [question, call] }, 'openai-chat');
  const summarize = async () => '<sum>';
  assert.deepEqual(await session.compact({ summarize }), { compacted: false, reason: 'deferred' });
  await session.append({ messages: [result] }, 'openai-chat');
  assert.ok(!(await shown(session)).includes('<sum>'));
  await session.append({ messages: [last] }, 'openai-chat');
  await until(async () => (await shown(session)).includes('<sum>'));
  assert.ok(!(await shown(session)).includes('<a9>'));
  await client.close();
});

test('r30 a deferred compaction is made after a reload, however short the history is', async () => {
  const store = keyValueService();
  const { client, session } = await filled(1, { store });
  await session.append({ messages: turn(9).slice(0, 3) }, 'openai-chat');
  assert.equal((await session.compact({ summarize: () => 'gone' })).reason, 'deferred');
  await client.close();
  const reopened = await open({ store });
  const again = await reopened.session('s');
  const summarize = () => '<sum>';
  assert.equal((await again.compact({ summarize })).reason, 'deferred');
  again[Symbol.dispose]();
  const last = await open({ store });
  const reopenedSession = await last.session('s');
  await reopenedSession.append({ messages: turn(9).slice(3) }, 'openai-chat');
  assert.deepEqual(await reopenedSession.compact({ summarize }), { compacted: true, reason: 'was_deferred' });
  await reopenedSession.append(turns(3, 4), 'openai-chat');
  assert.equal((await reopenedSession.compact({ summarize })).reason, 'below_threshold');
  await Promise.all([reopened.close(), last.close()]);
});

test('r30 a deferred compaction that fails is a warning', async () => {
  const warnings = [];
  const { client, session } = await filled(1, { onWarning: (warning) => warnings.push(warning) });
  await session.append({ messages: turn(9).slice(0, 3) }, 'openai-chat');
  assert.equal(
    (
      await session.compact({
        summarize: () => {
          throw new Error('boom');
        },
      })
    ).reason,
    'deferred',
  );
  await session.append({ messages: turn(9).slice(3) }, 'openai-chat');
  await until(async () => warnings.some(({ code }) => code === 'callback_failed'));
  assert.ok((await shown(session)).includes('<a9>'));
  await client.close();
});

test('r30 a deferred compaction that the store fails is another warning, and is made later', async () => {
  const store = keyValueService();
  const { commit } = store;
  let isFull = false;
  store.commit = async (...given) => {
    if (isFull) throw new Error('the disk is full');
    return commit(...given);
  };
  const warnings = [];
  const { client, session } = await filled(1, { store, onWarning: (warning) => warnings.push(warning) });
  await session.append({ messages: turn(9).slice(0, 3) }, 'openai-chat');
  const summarize = () => {
    isFull = true;
    return '<sum>';
  };
  assert.equal((await session.compact({ summarize })).reason, 'deferred');
  await session.append({ messages: turn(9).slice(3) }, 'openai-chat');
  await until(async () => warnings.length > 0);
  assert.deepEqual(
    warnings.map(({ code, severity }) => [code, severity]),
    [['compaction_failed', 'warning']],
  );
  assert.match(warnings[0].message, /the deferred compaction of session "s" failed: .*the disk is full/);
  isFull = false;
  assert.ok((await shown(session)).includes('<a9>'));
  assert.deepEqual(await session.compact({ summarize: () => '<sum>' }), { compacted: true, reason: 'was_deferred' });
  await client.close();
});

test('r30 a deferred compaction is made when another tab ended the turn, whoever reads that first', {
  timeout: 20_000,
}, async (step) => {
  const reads = {
    'a call of `refresh`': (session) => session.refresh(),
    'a call of `compact` that fails while the session changes': async (session) => {
      const summarize = async () => {
        await session.append(turns(5, 6), 'openai-chat');
        throw new Error('boom');
      };
      await assert.rejects(session.compact({ summarize }), { code: 'callback_failed' });
    },
  };
  for (const [name, read] of Object.entries(reads)) {
    await step.test(name, async () => {
      const store = keyValueService();
      const { client, session } = await filled(1, { store });
      const other = await open({ store });
      const [question, call, result, last] = turn(9);
      await session.append({ messages: [question, call, result] }, 'openai-chat');
      assert.equal((await session.compact({ summarize: () => '<sum>' })).reason, 'deferred');
      const elsewhere = await other.session('s');
      await elsewhere.append({ messages: [last] }, 'openai-chat');
      await read(session);
      await until(async () => (await shown(session)).includes('<sum>'));
      await Promise.all([client.close(), other.close()]);
    });
  }
});

test('r36 the summary of a reducer is stored, and not asked for again after reopening', async () => {
  const store = keyValueService();
  let asked = 0;
  const replay = () => ({
    reducers: [{ type: 'summarize', target: 4, threshold: 4, summarize: async () => `<sum ${(asked += 1)}>` }],
  });
  const { client, session } = await filled(4, { store });
  assert.ok((await shown(session, 'openai-chat', replay())).includes('<sum 1>'));
  await session.append(turns(4, 5), 'openai-chat');
  await client.close();
  const reopened = await open({ store });
  const again = await reopened.session('s');
  const text = await shown(again, 'openai-chat', replay());
  assert.ok(text.includes('<sum 1>') && text.includes('<r4>') && !text.includes('<q0>'), text);
  assert.equal(asked, 1);
  // A reducer of other settings asks for its own, and `save` stores it, too.
  const other = { reducers: [{ type: 'summarize', target: 2, summarize: async () => '<other>' }] };
  assert.ok((await shown(again, 'openai-chat', other)).includes('<other>'));
  await again.save();
  await reopened.close();
  const last = await open({ store });
  const unused = { reducers: [{ type: 'summarize', target: 2, summarize: () => assert.fail('asked again') }] };
  assert.ok((await shown(await last.session('s'), 'anthropic', unused)).includes('<other>'));
  await last.close();
});

test('r36 the summary of messages that `custom` selected is not stored, since other requests may contain what it lacks', async () => {
  const store = keyValueService();
  let asked = 0;
  const reduce = (messages) => messages.filter((message) => !JSON.stringify(message).includes('<q0>'));
  const summarize = { type: 'summarize', target: 4, threshold: 4, summarize: async () => `<sum ${(asked += 1)}>` };
  const replay = { reducers: [{ type: 'custom', reduce }, summarize] };
  const { client, session } = await filled(4, { store });
  assert.ok((await shown(session, 'openai-chat', replay)).includes('<sum 1>'));
  // Here it is kept, for as long as the session is open.
  assert.ok((await shown(session, 'openai-chat', replay)).includes('<sum 1>'));
  await session.append(turns(4, 5), 'openai-chat');
  await session.save();
  await client.close();
  const reopened = await open({ store });
  const text = await shown(await reopened.session('s'), 'openai-chat', replay);
  assert.ok(text.includes('<sum 2>') && !text.includes('<sum 1>'), text);
  assert.equal(asked, 2);
  await reopened.close();
});

/** A run that a tool hands off; returns the body of the next agent's request. */
async function handedOff(session, replay, handoff) {
  const run = await session.run({ input: '<question>', provider, replay, tools: { f: { execute: () => 1 } } });
  const effect = async (type) => {
    await until(() => run.effects()[0]?.type === type);
    return run.effects()[0];
  };
  await run.answer(
    (await effect('call_model')).id,
    answer({ content: null, tool_calls: [{ id: 'k', type: 'function', function: { name: 'f', arguments: '{}' } }] }),
  );
  const tool = await effect('run_tool');
  await run.answer(tool.id, { type: 'started' });
  await run.handoff(handoff);
  await run.answer(tool.id, { type: 'tool_result', content: '<tool>' });
  const call = await effect('call_model');
  const body = new TextDecoder().decode(call.request.body);
  await run.answer(call.id, answer({ content: '<done>' }));
  assert.equal(run.result().status, 'finished');
  return body;
}

test('r31 r36 the summary of messages that the filter of a handoff selected is not stored', async () => {
  const store = keyValueService();
  let asked = 0;
  const replay = {
    reducers: [{ type: 'summarize', target: 4, threshold: 20, summarize: async () => `<sum ${(asked += 1)}>` }],
  };
  const handoff = {
    name: 'billing',
    inputFilter: (messages) => messages.filter((message) => !JSON.stringify(message).includes('<q0>')),
  };
  const { client, session } = await filled(12, { store });
  assert.match(await handedOff(session, replay, handoff), /<sum 2>/);
  await client.close();
  const reopened = await open({ store });
  // The first agent's summary is stored; the next one's is asked for again.
  assert.match(await handedOff(await reopened.session('s'), replay, handoff), /<sum 3>/);
  assert.equal(asked, 3);
  await reopened.close();
});
