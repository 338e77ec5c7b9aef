// History providers: messages from elsewhere, and stores beside the session's log (R33 to R35). `pp N` is a case of
// persistence-and-providers.md.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open, validate } from 'rethread';

const provider = { dialect: 'openai-chat', url: 'https://m.example/v1/chat/completions', params: { model: 'm' } };
const say = (text, role = 'user') => ({ role, parts: [{ type: 'text', text }] });
const textOf = ({ parts }) => parts.map(({ text, name }) => text ?? name).join(' ');
const shown = (messages) =>
  messages.map(
    (message) => `${message.source.type[0]}${message.source.id ? `(${message.source.id})` : ''} ${textOf(message)}`,
  );
const sent = (run) =>
  JSON.parse(new TextDecoder().decode(run.effects()[0].request.body)).messages.map(({ content }) => content);
const completion = (message, finish = 'stop') => ({
  type: 'response',
  status: 200,
  body: JSON.stringify({
    choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason: finish }],
  }),
});
const reply = async (run, answer) => {
  await run.answer(run.effects()[0].id, typeof answer === 'string' ? completion({ content: answer }) : answer);
  return run.result();
};

async function chat(providers, options) {
  const warnings = [];
  const client = await open({ store: 'memory', onWarning: (finding) => warnings.push(finding) });
  const session = await client.session('s', { ...options, providers });
  const ask = async (input, answer, more) => reply(await session.run({ input, provider, ...more }), answer);
  const stored = async () => shown((await session.messages()).items);
  return { client, session, warnings, ask, stored };
}
/** A provider that keeps what it gets, as `i` input, `o` output, `e` error. */
const recorder = (more) => {
  const got = [];
  return {
    got,
    name: 'audit',
    ...more,
    store: ({ input, output, error }) => {
      got.push([
        ...shown(input).map((text) => `i ${text}`),
        ...shown(output).map((text) => `o ${text}`),
        ...(error ? [`e ${error.code}`] : []),
      ]);
    },
  };
};

test('r33 pp 32 pp 33 provided context stands between history and input, is sent, and is not stored again', async () => {
  for (const persistence of ['run', 'call', 'result']) {
    const asked = [];
    const rag = {
      name: 'rag',
      provide: ({ session, input }) => {
        asked.push([session.id, ...shown(input)]);
        return [say(`fact ${asked.length}`)];
      },
    };
    const { session, ask, stored } = await chat([rag], { persistence });
    await session.append([say('old'), say('reply', 'assistant')]);
    const run = await session.run({ input: 'question', provider });
    assert.deepEqual(sent(run), ['old', 'reply', 'fact 1', 'question'], persistence);
    assert.deepEqual(
      session.view().getSnapshot().messages.map(textOf),
      ['old', 'reply', 'question'],
      'the view does not show it',
    );
    const result = await reply(run, 'answer');
    assert.deepEqual([result.status, result.saved, result.messageIds.length], ['finished', true, 2]);
    assert.deepEqual(await stored(), ['e old', 'e reply', 'e question', 'e answer']);
    await ask('more?', 'yes');
    assert.deepEqual(asked, [
      ['s', 'e question'],
      ['s', 'e more?'],
    ]);
    assert.equal((await stored()).length, 6);
  }
});

test('r33 a render has what the providers provide; the order of the providers is kept', async () => {
  const named = (name) => ({
    name,
    provide: async ({ input }) => [say(`${name} 1 for ${textOf(input[0])}`, 'system'), say(`${name} 2`)],
  });
  const { session } = await chat([named('a'), named('b'), { name: 'none' }]);
  const { body } = await session.render({ dialect: 'openai-chat', input: 'x' });
  assert.deepEqual(
    JSON.parse(new TextDecoder().decode(body)).messages.map(({ content }) => content),
    ['a 1 for x', 'a 2', 'b 1 for x', 'b 2', 'x'],
  );
  const anthropic = await session.render({ dialect: 'anthropic', params: { max_tokens: 9 }, input: 'x' });
  assert.match(new TextDecoder().decode(anthropic.body), /a 2.*b 2.*"x"/);
  // A request may have providers of its own.
  const run = await session.run({ input: 'x', provider, providers: [named('c')] });
  assert.deepEqual(sent(run), ['c 1 for x', 'c 2', 'x']);
  await run.cancel();
});

test('r33 pp 35 filterProvided comes before the stamp, filterStored before storing', async () => {
  const rag = {
    name: 'rag',
    provide: () => [say('keep'), say('drop')],
    filterProvided: (messages) =>
      messages.filter((message) => message.source === undefined && textOf(message) !== 'drop'),
  };
  const audit = recorder({
    storeContextMessages: true,
    filterStored: (messages) => messages.filter((message) => textOf(message) !== 'secret'),
  });
  const { session, ask, stored } = await chat([rag, audit]);
  const run = await session.run({ input: 'secret', provider });
  assert.deepEqual(sent(run), ['keep', 'secret']);
  await reply(run, 'answer');
  await ask('open', 'secret');
  assert.deepEqual(audit.got, [
    ['i c(rag) keep', 'o e answer'],
    ['i c(rag) keep', 'i e open'],
  ]);
  assert.deepEqual(await stored(), ['e secret', 'e answer', 'e open', 'e secret'], 'the session has all of it');
});

test('r33 provided calls are sent with their results, by every owner and dialect, and are in no history', async () => {
  const call = { type: 'tool', callId: 'call_p', name: 'search', arguments: { q: 1 }, result: 'the result' };
  const rag = {
    name: 'rag',
    provide: () => [say('earlier'), { role: 'assistant', parts: [call] }, say('reply', 'assistant')],
  };
  const { client, session, ask, stored } = await chat([rag], { persistence: 'result' });
  const add = { id: 'call_p', type: 'function', function: { name: 'add', arguments: '{}' } };
  for (const turn of [1, 2]) {
    const run = await session.run({ input: `q${turn}`, provider, tools: { add: { execute() {} } } });
    await reply(run, completion({ tool_calls: [add] }, 'tool_calls'));
    await run.answer(run.effects()[0].id, { type: 'tool_result', content: `sum ${turn}` });
    const messages = JSON.parse(new TextDecoder().decode(run.effects()[0].request.body)).messages;
    const own = messages.slice(messages.findIndex(({ content }) => content === 'earlier'));
    assert.deepEqual(
      own.map(({ role, content }) => content ?? role),
      ['earlier', 'assistant', 'the result', 'reply', `q${turn}`, 'assistant', `sum ${turn}`],
    );
    const ids = messages.filter(({ role }) => role === 'tool').map(({ tool_call_id }) => tool_call_id);
    assert.equal(new Set(ids).size, ids.length, `each call has an id of its own: ${ids}`);
    await reply(run, 'done');
  }
  assert.deepEqual(
    (await client.invocations({})).items.map(({ name }) => name),
    ['add', 'add'],
  );
  assert.equal((await stored()).length, 6);
  for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral']) {
    const { body } = await session.render({ dialect, params: { model: 'm' }, input: 'x' });
    assert.deepEqual(
      validate(body, dialect).filter(({ severity }) => severity === 'error'),
      [],
      dialect,
    );
    assert.match(new TextDecoder().decode(body), /the result/, dialect);
  }
  const kept = await chat([rag], { owner: { kind: 'response', auto: true } });
  const responses = { dialect: 'openai-responses', url: 'https://m.example/v1/responses', params: { model: 'm' } };
  const run = await kept.session.run({ input: 'q', provider: responses });
  const { input } = JSON.parse(new TextDecoder().decode(run.effects()[0].request.body));
  assert.deepEqual(
    input.map(({ type, role }) => type ?? role),
    ['user', 'function_call', 'function_call_output', 'assistant', 'user'],
  );
  await run.cancel();
  // What a session has can be provided by another one.
  const source = await client.session('source');
  await source.append([say('old'), { role: 'assistant', parts: [call] }]);
  const other = await chat([
    {
      name: 'source',
      provide: async () =>
        (await source.view().getSnapshot()).messages.flatMap(({ role, parts }) => [
          {
            role,
            parts: parts.map((part) =>
              part.type === 'tool'
                ? {
                    type: 'tool',
                    callId: part.call.callId,
                    name: part.call.name,
                    arguments: part.call.argumentsText,
                    result: part.call.result.content,
                  }
                : part,
            ),
          },
        ]),
    },
  ]);
  assert.deepEqual(sent(await other.session.run({ input: 'x', provider })), ['old', null, 'the result', 'x']);
  assert.equal((await ask('bye', 'bye')).status, 'finished');
});

test('r33 source stamps survive storage', async () => {
  const { session, client, stored } = await chat([]);
  await session.append([say('note')], { source: { type: 'context', id: 'rag' } });
  await session.append([say('old')], { source: { type: 'history', id: 'archive' } });
  await session.append([say('new')]);
  assert.deepEqual(await stored(), ['c(rag) note', 'h(archive) old', 'e new']);
  await session.refresh();
  assert.deepEqual(shown((await (await client.session('s')).messages()).items), [
    'c(rag) note',
    'h(archive) old',
    'e new',
  ]);
});

test('r33 pp 41 pp 42 what store gets: inputs, outputs with their calls, and context by option', async () => {
  const rag = { name: 'rag', provide: () => [say('fact')] };
  const web = { name: 'web', provide: () => [say('page')] };
  const all = recorder({ storeContextMessages: true, provide: () => [say('own')] });
  const ofRag = recorder({ name: 'of-rag', storeContextFrom: ['rag'], storeInputs: false, storeOutputs: false });
  const plain = recorder({ name: 'plain' });
  const nothing = recorder({ name: 'nothing', storeInputs: false, storeOutputs: false });
  const { session } = await chat([rag, web, all, ofRag, plain, nothing]);
  const calls = [{ id: 'call_1', type: 'function', function: { name: 'add', arguments: '{"a":2}' } }];
  let output;
  const run = await session.run({
    input: 'x',
    provider,
    tools: { add: { execute() {}, persist: (_, result) => ({ result: result && 'hidden' }) } },
    providers: [
      rag,
      web,
      all,
      ofRag,
      plain,
      nothing,
      {
        name: 'calls',
        store: (turn) => {
          output = turn.output;
        },
      },
    ],
  });
  assert.deepEqual(sent(run), ['fact', 'page', 'own', 'x']);
  await reply(run, completion({ tool_calls: calls }, 'tool_calls'));
  const [{ id }] = run.effects();
  await run.answer(id, { type: 'started' });
  await run.answer(id, { type: 'tool_result', content: 'secret' });
  await reply(run, 'done');
  assert.deepEqual(all.got, [['i c(rag) fact', 'i c(web) page', 'i e x', 'o e add', 'o e done']]);
  assert.deepEqual(ofRag.got, [['i c(rag) fact']]);
  assert.deepEqual(plain.got, [['i e x', 'o e add', 'o e done']]);
  assert.deepEqual(nothing.got, [[]]);
  const [{ callId, name, arguments: args, result }] = output[0].parts;
  assert.deepEqual([callId, name, args, result.content], ['call_1', 'add', { a: 2 }, 'hidden'], 'as it is stored');
});

test('r33 pp 36 a run that fails or is cancelled gives its error, and nothing to store', async () => {
  for (const persistence of ['run', 'call']) {
    const audit = recorder({ storeContextMessages: true });
    const { session, stored } = await chat([{ name: 'rag', provide: () => [say('fact')] }, audit], { persistence });
    const failed = await reply(await session.run({ input: 'x', provider }), {
      type: 'response',
      status: 400,
      body: '{"error":{"message":"no"}}',
    });
    assert.equal(failed.status, 'failed');
    const cancelled = await session.run({ input: 'y', provider });
    await cancelled.cancel();
    assert.deepEqual(audit.got, [['e model_error'], ['e aborted']]);
    assert.ok(
      (await stored()).every((text) => text.startsWith('e ')),
      'no context is in history',
    );
    const kept = await session.run({ input: 'z', provider, onStop: 'keep' });
    await kept.cancel();
    assert.deepEqual(audit.got[2].slice(-2), ['i e z', 'e aborted']);
  }
});

test('r33 a provider that throws in provide is named; nothing is stored, nothing is sent', async () => {
  for (const [provide, reason] of [
    [
      () => {
        throw new Error('index is down');
      },
      /"rag".*index is down/,
    ],
    [() => Promise.reject(new Error('index is down')), /"rag".*index is down/],
    [() => 'text', /"rag".*list of messages/],
    [() => [{ role: 'user' }], /"rag".*message 0/],
    [
      () => [{ role: 'tool', parts: [{ type: 'tool_result', callId: 'c', result: 1 }] }],
      /"rag".*no stored call has the id "c"/,
    ],
    [() => [{ role: 'user', parts: [], metadata: () => {} }], /"rag".*cannot be stored/],
    [
      () => {
        const message = { role: 'user', parts: [] };
        return [{ ...message, metadata: Object.assign(message, { message }) }];
      },
      /"rag".*circular/s,
    ],
    [() => [{ role: 'user', parts: [], metadata: 1n }], /"rag".*BigInt/],
  ]) {
    const audit = recorder();
    const { session, stored } = await chat([{ name: 'rag', provide }, audit]);
    const thrown = { code: 'callback_failed', message: reason };
    await assert.rejects(session.run({ input: 'x', provider }), thrown);
    await assert.rejects(session.render({ dialect: 'openai-chat', input: 'x' }), thrown);
    assert.deepEqual([await stored(), await session.pendingRuns(), session.revision, audit.got], [[], [], 0, []]);
    const run = await session.run({ input: 'x', provider, providers: [] });
    assert.equal((await reply(run, 'y')).status, 'finished');
  }
});

test('r33 a provider that throws in store is reported, and the turn is not lost', async () => {
  const audit = recorder();
  const { session, warnings, stored } = await chat([
    { name: 'broken', store: () => Promise.reject(new Error('disk full')) },
    audit,
  ]);
  const run = await session.run({ input: 'x', provider });
  const result = await reply(run, 'y');
  assert.deepEqual([result.status, result.saved, await stored()], ['finished', true, ['e x', 'e y']]);
  assert.equal(audit.got.length, 1);
  const events = run.events();
  assert.deepEqual(
    events.slice(-2).map(({ type }) => type),
    ['warning', 'finished'],
  );
  for (const finding of [
    events.at(-2).finding,
    events.at(-1).result.report.at(-1),
    result.report.at(-1),
    warnings.at(-1),
  ]) {
    assert.equal(finding.code, 'callback_failed');
    assert.match(finding.message, /"broken".*disk full/);
  }
});

test('r33 a resumed run keeps what was provided, asks nobody again, and gives its turn to the providers', async () => {
  for (const persistence of ['run', 'call', 'result']) {
    let asked = 0;
    const audit = recorder();
    const { session, stored } = await chat(
      [
        {
          name: 'rag',
          provide: () => {
            asked += 1;
            return [say('fact')];
          },
        },
        audit,
      ],
      { persistence },
    );
    const run = await session.run({ input: 'x', provider });
    run[Symbol.dispose]();
    const [pending] = await session.pendingRuns();
    assert.deepEqual(pending.input.map(textOf), ['x']);
    const resumed = await session.resume(run.id, { provider });
    assert.deepEqual(sent(resumed), ['fact', 'x']);
    const result = await reply(resumed, 'y');
    assert.deepEqual(
      [result.status, asked, await stored(), audit.got],
      ['finished', 1, ['e x', 'e y'], [['i e x', 'o e y']]],
      persistence,
    );
  }
});

test('r34 pp 43 pp 44 one source loads the history: two are rejected at configuration', async () => {
  const client = await open({ store: 'memory' });
  const loader = (name) => ({ name, loadMessages: true, provide: () => [] });
  const session = await client.session('s', { providers: [recorder()] });
  for (const providers of [[loader('a'), loader('b')], [loader('a')], [recorder(), loader('a')]]) {
    await assert.rejects(client.session('s', { providers }), { code: 'two_loaders', message: /"a"/ });
    await assert.rejects(session.run({ input: 'x', provider, providers }), { code: 'two_loaders' });
  }
  await assert.rejects(client.session('c', { owner: { kind: 'caller' }, providers: [loader('a'), loader('b')] }), {
    code: 'two_loaders',
    message: /"a" and "b"/,
  });
  assert.equal(session.revision, 0);
});

/** A store of an application: messages by id, in their order. */
function database() {
  const rows = new Map();
  const calls = [];
  const upsert = (messages) => {
    for (const message of structuredClone(messages)) rows.set(message.id, message);
  };
  const saved = {
    name: 'saved',
    loadMessages: true,
    provide: () => [...rows.values()],
    store: ({ input, output }) => {
      calls.push([...input, ...output].map(textOf));
      upsert([...input, ...output]);
    },
  };
  return { rows, calls, saved, upsert };
}
const CALLER = { owner: { kind: 'caller' } };

test('r34 a provider loads the history where the application holds it, and an audit provider never stores it again', async () => {
  const { rows, calls, saved } = database();
  const audit = recorder({ storeContextMessages: true });
  const filtered = recorder({ name: 'filtered', storeContextFrom: ['saved', 'rag'] });
  const { client, session } = await chat(
    [{ name: 'rag', provide: () => [say('fact')] }, audit, saved, filtered],
    CALLER,
  );
  const add = { id: 'call_1', type: 'function', function: { name: 'add', arguments: '{ "a": 2 }' } };
  const tools = { add: { execute() {} } };
  const first = await session.run({ input: 'q1', provider, tools });
  assert.deepEqual(sent(first), ['fact', 'q1']);
  await reply(first, completion({ tool_calls: [add], reasoning_content: 'hm' }, 'tool_calls'));
  await first.answer(first.effects()[0].id, { type: 'tool_result', content: 'five' });
  const { body } = first.effects()[0].request;
  await reply(first, 'a1');
  const second = await session.run({ input: 'q2', provider, tools });
  // What was sent is repeated, except the context, which is new for each run.
  const messages = (bytes) =>
    JSON.parse(new TextDecoder().decode(bytes)).messages.filter(({ content }) => content !== 'fact');
  const again = messages(second.effects()[0].request.body);
  assert.deepEqual(again, [...messages(body), { role: 'assistant', content: 'a1' }, { role: 'user', content: 'q2' }]);
  assert.deepEqual(sent(second), ['q1', null, 'five', 'a1', 'fact', 'q2']);
  const result = await reply(second, 'a2');
  assert.deepEqual(
    result.replay.messages.map(({ content }) => content),
    ['q1', null, 'five', 'a1', 'q2', 'a2'],
  );
  assert.deepEqual(calls, [
    ['q1', 'hm add', 'a1'],
    ['q2', 'a2'],
  ]);
  assert.equal(rows.size, 5);
  assert.deepEqual(audit.got, [
    ['i c(rag) fact', 'i e q1', 'o e hm add', 'o e a1'],
    ['i c(rag) fact', 'i e q2', 'o e a2'],
  ]);
  assert.deepEqual(filtered.got, audit.got);
  assert.equal((await session.messages()).items.length, 5, 'the log has each turn once');
  // The conversation comes from one place.
  await assert.rejects(session.run({ input: result.replay, provider }), { code: 'two_loaders', message: /"saved"/ });
  await assert.rejects(session.render({ dialect: 'openai-chat', input: result.replay }), { code: 'two_loaders' });
  const rendered = await session.render({ dialect: 'openai-chat', input: 'q3' });
  assert.deepEqual(
    JSON.parse(new TextDecoder().decode(rendered.body)).messages.map(({ content }) => content),
    ['q1', null, 'five', 'a1', 'q2', 'a2', 'fact', 'q3'],
  );
  // Without input a loaded question is answered, and an answered one is not.
  await assert.rejects(session.run({ provider }), { code: 'invalid_input', message: /no message to answer/ });
  rows.set('asked', { ...say('q3'), id: 'asked' });
  assert.deepEqual(sent(await session.run({ provider })), ['q1', null, 'five', 'a1', 'q2', 'a2', 'q3', 'fact']);
  await client.close();
});

test('r34 a run that is resumed keeps what was loaded, and asks nobody again', async () => {
  const { rows, calls, saved } = database();
  let asked = 0;
  const counted = {
    ...saved,
    provide: () => {
      asked += 1;
      return saved.provide();
    },
  };
  rows.set('old', { ...say('old'), id: 'old' }).set('reply', { ...say('reply', 'assistant'), id: 'reply' });
  const { session } = await chat([counted], CALLER);
  const run = await session.run({ input: 'x', provider });
  run[Symbol.dispose]();
  const [pending] = await session.pendingRuns();
  assert.deepEqual(pending.input.map(textOf), ['x']);
  const resumed = await session.resume(run.id, { provider });
  assert.deepEqual(sent(resumed), ['old', 'reply', 'x']);
  assert.equal((await reply(resumed, 'y')).status, 'finished');
  assert.deepEqual([asked, calls, [...rows.keys()].length], [1, [['x', 'y']], 4]);
});

test('r34 store gets what append, answer, external and discard have stored, in every mode, each once', async () => {
  const shownCalls = ({ parts }) =>
    parts.filter(({ type }) => type === 'tool_call').map(({ name, result }) => `${name}=${result?.content ?? 'open'}`);
  const got = [];
  const audit = {
    name: 'audit',
    store: ({ input, output, error }) => {
      got.push([
        ...input.map((one) => `i ${textOf(one)}`),
        ...output.map((one) => `o ${[textOf(one), ...shownCalls(one)].join(' ')}`),
        ...(error ? [error.code] : []),
      ]);
    },
  };
  const taken = () => got.splice(0);
  const { session } = await chat([audit]);
  const call = { type: 'tool', callId: 'c1', name: 'f', arguments: {} };
  await session.append([say('q'), { role: 'assistant', parts: [call, { ...call, callId: 'c2' }] }]);
  assert.deepEqual(taken(), [['i q', 'o f f f=open f=open']]);
  await session.answer('c1', { type: 'tool_result', content: 'one' });
  assert.deepEqual(taken(), [['o f f f=one f=open']]);
  await session.append(
    {
      messages: [
        { role: 'tool', tool_call_id: 'c2', content: 'two' },
        { role: 'assistant', content: 'done' },
      ],
    },
    'openai-chat',
  );
  assert.deepEqual(taken(), [['o f f f=one f=two', 'o done']]);
  const sentBody = JSON.parse(
    new TextDecoder().decode((await session.render({ dialect: 'openai-chat', input: 'next' })).body),
  ).messages;
  assert.deepEqual(taken(), []);
  for (const persistence of ['call', 'run']) {
    const loop = session.external({ persistence });
    const messages = [...sentBody.slice(0, -1), { role: 'user', content: persistence }];
    await loop.checkpoint({ messages }, 'openai-chat');
    assert.deepEqual(taken(), persistence === 'run' ? [] : [['i call']]);
    messages.push({ role: 'assistant', content: 'said' });
    await loop.checkpoint({ messages }, 'openai-chat');
    await loop.checkpoint({ messages }, 'openai-chat');
    await loop.end();
    assert.deepEqual(taken(), persistence === 'run' ? [['i run', 'o said']] : [['o said']]);
    sentBody.splice(-1, 1, ...messages.slice(-2), {});
  }
  const run = await session.run({ input: 'cut', provider });
  run[Symbol.dispose]();
  await session.discard(run.id, { keep: true });
  assert.deepEqual(taken(), [['i cut']]);
  const other = await session.run({ input: 'gone', provider });
  other[Symbol.dispose]();
  await session.discard(other.id);
  assert.deepEqual(taken(), []);
});

test('r34 store of an append that fails is a warning, and may append itself', async () => {
  const { session, warnings } = await chat([{ name: 'broken', store: () => Promise.reject(new Error('disk full')) }]);
  assert.equal((await session.append([say('q')])).messageIds.length, 1);
  assert.deepEqual(
    warnings.map(({ code, message }) => [code, /"broken".*disk full/.test(message)]),
    [['callback_failed', true]],
  );
  let noted = false;
  const noting = {
    name: 'noting',
    store: async ({ session: one }) => {
      if (!noted) {
        noted = true;
        await one.append([say('noted')]);
      }
    },
  };
  const { session: second, stored } = await chat([noting]);
  await second.append([say('q')]);
  assert.deepEqual(await stored(), ['e q', 'e noted']);
});

test('r34 a kill between log and store loses and doubles nothing for a provider that compares ids', async () => {
  const { rows, saved, upsert } = database();
  const catchUp = async (session) => {
    let page = await session.messages({ limit: 2 });
    let missing = page.items.filter(({ id }) => !rows.has(id));
    while (missing.length === page.items.length && page.cursor !== null) {
      page = await session.messages({ limit: 2, cursor: page.cursor });
      missing = [...page.items.filter(({ id }) => !rows.has(id)), ...missing];
    }
    upsert(missing);
  };
  const log = new Map();
  const store = {
    get: (key) => {
      const entry = log.get(key);
      return entry ? { value: entry.value.slice(), version: entry.version } : null;
    },
    list: (prefix) => ({ keys: [...log.keys()].filter((key) => key.startsWith(prefix)).sort(), cursor: null }),
    put: (key, value) => {
      log.set(key, { value: value.slice(), version: String(Math.random()) });
    },
    delete: (key) => {
      log.delete(key);
    },
    commit(checks, writes) {
      if (checks.some(({ key, version }) => (log.get(key)?.version ?? null) !== version)) return false;
      for (const { key, value } of writes) value ? this.put(key, value) : this.delete(key);
      return true;
    },
  };
  const expected = [];
  for (let turn = 1; turn <= 6; turn += 1) {
    const client = await open({ store });
    const isKilled = turn % 2 === 0;
    const provide = async ({ session }) => {
      await catchUp(session);
      return saved.provide();
    };
    let reached = 0;
    // The process is killed while `store` has not begun to write.
    const killed = {
      ...saved,
      provide,
      store: () => {
        reached += 1;
        return new Promise(() => {});
      },
    };
    const session = await client.session('s', { ...CALLER, providers: [isKilled ? killed : { ...saved, provide }] });
    const run = await session.run({ input: `q${turn}`, provider });
    assert.deepEqual(sent(run), [...expected, `q${turn}`]);
    const ended = reply(run, `a${turn}`);
    if (isKilled) {
      while (reached === 0)
        await new Promise((resolve) => {
          setTimeout(resolve, 1);
        });
      await client.close();
      await ended.catch(() => {});
    } else {
      await ended;
      await client.close();
    }
    expected.push(`q${turn}`, `a${turn}`);
  }
});

test('r34 a service that owns the conversation has its history: a loading provider only stores', async () => {
  const loader = recorder({ name: 'log', loadMessages: true, provide: () => [say('old')] });
  const { client, session } = await chat([loader, { name: 'rag', provide: () => [say('fact')] }], {
    owner: { kind: 'response', auto: true },
  });
  const responses = { dialect: 'openai-responses', url: 'https://m.example/v1/responses', params: { model: 'm' } };
  for (const turn of [1, 2]) {
    const run = await session.run({ input: `q${turn}`, provider: responses });
    const { input } = JSON.parse(new TextDecoder().decode(run.effects()[0].request.body));
    assert.deepEqual(
      input.map(({ content }) => content),
      ['fact', `q${turn}`],
    );
    const output = [
      {
        type: 'message',
        id: `m${turn}`,
        role: 'assistant',
        status: 'completed',
        content: [{ type: 'output_text', text: 'yes', annotations: [] }],
      },
    ];
    await reply(run, {
      type: 'response',
      status: 200,
      body: JSON.stringify({
        id: `r${turn}`,
        object: 'response',
        model: 'm',
        status: 'completed',
        error: null,
        output,
      }),
    });
  }
  assert.deepEqual(loader.got, [
    ['i e q1', 'o e yes'],
    ['i e q2', 'o e yes'],
  ]);
  // Now the session's own log is in each request.
  await client.session('s', { owner: { kind: 'session' } });
  await assert.rejects(session.run({ input: 'x', provider }), { code: 'two_loaders' });
  await assert.rejects(session.render({ dialect: 'openai-chat' }), { code: 'two_loaders' });
});

test('r33 r22 what is provided is not in the conversation that the application holds', async () => {
  let count = 0;
  const { session } = await chat(
    [{ name: 'rag', provide: () => [say(`fact ${(count += 1)}`), say('rules', 'system')] }],
    { owner: { kind: 'caller' } },
  );
  let input = { messages: [{ role: 'user', content: 'q1' }] };
  const run = await session.run({ input, provider });
  assert.deepEqual(sent(run), ['fact 1', 'rules', 'q1']);
  const { replay } = await reply(run, 'a1');
  assert.deepEqual(
    replay.messages.map(({ content }) => content),
    ['q1', 'a1'],
  );
  input = { ...replay, messages: [...replay.messages, { role: 'user', content: 'q2' }] };
  assert.deepEqual(sent(await session.run({ input, provider })), ['q1', 'a1', 'fact 2', 'rules', 'q2']);
});

test('r34 an audit provider never stores loaded history again: what it gets does not grow', async () => {
  const audit = recorder({ storeContextMessages: true });
  const { session, ask } = await chat([{ name: 'rag', provide: () => [say('fact')] }, audit]);
  await session.append([say('imported')], { source: { type: 'history', id: 'archive' } });
  for (let turn = 1; turn <= 4; turn += 1) await ask(`u${turn}`, `a${turn}`);
  await session.append([say('note')], { source: { type: 'context', id: 'rag' } });
  assert.deepEqual(audit.got.pop(), ['i c(rag) note']);
  assert.deepEqual(
    audit.got,
    [1, 2, 3, 4].map((turn) => ['i c(rag) fact', `i e u${turn}`, `o e a${turn}`]),
  );
});

test('r35 pp 38 one provider serves many sessions; its state is in each, by its key', async () => {
  const client = await open({ store: 'memory' });
  const counting = (name, stateKey) => ({
    name,
    stateKey,
    provide({ session }) {
      const count = (session.state.get(stateKey ?? name) ?? 0) + 1;
      session.state.set(stateKey ?? name, count);
      return [say(`${name} ${count}`)];
    },
  });
  const providers = [counting('a'), counting('b', 'key')];
  const sessions = [await client.session('one', { providers }), await client.session('two', { providers })];
  for (const session of [sessions[0], sessions[0], sessions[1]])
    await reply(await session.run({ input: 'x', provider }), 'y');
  assert.deepEqual(
    sessions.map(({ state }) => state.keys().map((key) => `${key} ${state.get(key)}`)),
    [
      ['a 2', 'key 2'],
      ['a 1', 'key 1'],
    ],
  );
});

test('r35 two providers with one state key are rejected, and so are wrong options', async () => {
  const client = await open({ store: 'memory' });
  const rejects = async (providers, code, message) => {
    await assert.rejects(client.session('s', { providers }), { code, message });
    const session = await client.session('s');
    await assert.rejects(session.run({ input: 'x', provider, providers }), { code, message });
  };
  await rejects([{ name: 'a' }, { name: 'a' }], 'state_key_conflict', /"a"/);
  await rejects([{ name: 'a' }, { name: 'b', stateKey: 'a' }], 'state_key_conflict', /"a" and "b"/);
  await rejects(
    [
      { name: 'a', stateKey: 'k' },
      { name: 'b', stateKey: 'k' },
    ],
    'state_key_conflict',
    /"k"/,
  );
  await rejects(
    [
      { name: 'a', stateKey: 'k' },
      { name: 'a', stateKey: 'l' },
    ],
    'config_invalid',
    /the name "a"/,
  );
  await rejects({}, 'config_invalid', /list/);
  await rejects([null], 'config_invalid', /providers\[0\]/);
  await rejects([{}], 'config_invalid', /name/);
  await rejects([{ name: 'a', loadMessage: true }], 'config_invalid', /providers\[0\]\.loadMessage/);
  await rejects([{ name: 'a', provide: 1 }], 'config_invalid', /provide.*function/);
  await rejects([{ name: 'a', storeInputs: 'no' }], 'config_invalid', /storeInputs/);
  await rejects([{ name: 'a', storeContextFrom: [1] }], 'config_invalid', /storeContextFrom/);
});

test('r36 pp 37 a reducer is called before a request, and by nothing else', async () => {
  let calls = 0;
  const { session } = await chat([], {
    replay: {
      reducers: [
        {
          type: 'custom',
          reduce: (messages) => {
            calls += 1;
            return messages;
          },
        },
      ],
    },
  });
  await session.append([say('a'), say('b', 'assistant')]);
  await session.external({ persistence: 'call' }).checkpoint(
    {
      messages: [
        { role: 'user', content: 'a' },
        { role: 'assistant', content: 'b' },
        { role: 'user', content: 'c' },
      ],
    },
    'openai-chat',
  );
  assert.equal(calls, 0);
  await session.render({ dialect: 'openai-chat' });
  assert.equal(calls, 1);
});
