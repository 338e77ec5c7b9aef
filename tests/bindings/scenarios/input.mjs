// Calls that are wrong. Each must be answered by a RethreadError with the code that is named, and change nothing.

import { caught, control, finish, plainTools, providerOf } from './kit.mjs';

const SECRET = 'sk-verysecret123456';

/** Calls that need no session: [what, expected code, work]. */
const ofPackage = ({ rethread }, env) => {
  const { open, validate, repair, convert, StreamAssembler } = rethread;
  const store = env.store;
  return [
    ['open: options of another type', 'invalid_input', () => open('memory')],
    ['open: an unknown store', 'config_invalid', () => open({ store: 'sqlite' })],
    ['open: a known store in other letters', 'config_invalid', () => open({ store: 'localStorage' })],
    ['open: a store object', 'config_invalid', () => open({ store: { get() {} } })],
    ['open: encryption', 'config_invalid', () => open({ store, encryption: { key: {} } })],
    ['open: an empty name', 'config_invalid', () => open({ store, name: '' })],
    ['open: a name of another type', 'config_invalid', () => open({ store, name: 5 })],
    ['open: durability', 'config_invalid', () => open({ store, durability: 'eventual' })],
    ['open: now', 'config_invalid', () => open({ store, now: 5 })],
    ['open: newId', 'config_invalid', () => open({ store, newId: 'x' })],
    ['open: onWarning', 'config_invalid', () => open({ store, onWarning: {} })],
    ['open: replay', 'config_invalid', () => open({ store, replay: 5 })],
    ['open: channels', 'config_invalid', () => open({ store, channels: [1] })],
    ['open: one channel', 'config_invalid', () => open({ store, channels: { a: 'x' } })],
    ['open: freshness below zero', 'config_invalid', () => open({ store, replay: { freshness: -1 } })],
    ['open: freshness NaN', 'config_invalid', () => open({ store, replay: { freshness: NaN } })],
    ['open: freshness as text', 'config_invalid', () => open({ store, channels: { a: { freshness: '5' } } })],
    [
      'open: reducers that are no list',
      'config_invalid',
      () => open({ store, replay: { reducers: { type: 'sliding_turns', turns: 3 } } }),
    ],
    ['open: an unknown reducer', 'config_invalid', () => open({ store, replay: { reducers: [{ type: 'magic' }] } })],
    ['open: a reducer of no type', 'config_invalid', () => open({ store, replay: { reducers: [5] } })],
    [
      'open: message_count 0',
      'config_invalid',
      () => open({ store, replay: { reducers: [{ type: 'message_count', count: 0 }] } }),
    ],
    [
      'open: systems',
      'config_invalid',
      () => open({ store, replay: { reducers: [{ type: 'message_count', count: 1, systems: 'last' }] } }),
    ],
    [
      'open: half a turn',
      'config_invalid',
      () => open({ store, replay: { reducers: [{ type: 'sliding_turns', turns: 1.5 }] } }),
    ],
    ['open: no tokens', 'config_invalid', () => open({ store, replay: { reducers: [{ type: 'token_budget' }] } })],
    [
      'open: a counter',
      'config_invalid',
      () => open({ store, replay: { reducers: [{ type: 'token_budget', tokens: 1, count: 5 }] } }),
    ],
    [
      'open: maxBytes',
      'config_invalid',
      () => open({ store, replay: { reducers: [{ type: 'tool_results', keepNewestTurns: 1, maxBytes: '5' }] } }),
    ],
    [
      'open: nobody who sums up',
      'config_invalid',
      () => open({ store, replay: { reducers: [{ type: 'summarize', target: 1 }] } }),
    ],
    [
      'open: threshold',
      'config_invalid',
      () =>
        open({
          store,
          replay: { reducers: [{ type: 'summarize', target: 1, threshold: -1, summarize: async () => '' }] },
        }),
    ],
    ['open: nobody who reduces', 'config_invalid', () => open({ store, replay: { reducers: [{ type: 'custom' }] } })],
    ['open: citations', 'config_invalid', () => open({ store, replay: { citations: 'always' } })],
    ['open: onStale', 'config_invalid', () => open({ store, replay: { onStale: 'keep' } })],
    ['open: staleUnit', 'config_invalid', () => open({ store, replay: { staleUnit: 'message' } })],
    ['open: danglingCalls', 'config_invalid', () => open({ store, replay: { danglingCalls: 'no' } })],
    ['open: toolFreshness', 'config_invalid', () => open({ store, replay: { toolFreshness: 5 } })],
    ['validate: no dialect', 'invalid_input', () => validate({ messages: [] })],
    ['validate: an unknown dialect', 'config_invalid', () => validate({ messages: [] }, 'morse')],
    ['repair: danglingCalls', 'config_invalid', () => repair({ messages: [] }, 'openai-chat', { danglingCalls: 'x' })],
    ['convert: no JSON', 'invalid_input', () => convert('{', 'openai-chat', 'anthropic')],
    ['convert: unknown dialect', 'config_invalid', () => convert('{}', 'openai-chat', 'x')],
    ['convert: dialect missing', 'invalid_input', () => convert('{}', 'openai-chat')],
    ['repair: options', 'invalid_input', () => repair({ messages: [] }, 'openai-chat', 'omit')],
    [
      'repair: a cycle',
      'invalid_input',
      () => {
        const body = {};
        body.self = body;
        return repair(body, 'openai-chat');
      },
    ],
    ['assembler: an unknown dialect', 'config_invalid', () => new StreamAssembler('morse')],
    ['assembler: none', 'invalid_input', () => new StreamAssembler()],
    ['assembler: text for bytes', 'invalid_input', () => new StreamAssembler('openai-chat').push('data: {}')],
    [
      'assembler: after its end',
      'wrong_state',
      () => {
        const one = new StreamAssembler('openai-chat');
        one.finish();
        return one.push(new Uint8Array(1));
      },
    ],
  ];
};

const ofClient = (client) => [
  ['session: an empty id', 'invalid_input', () => client.session('')],
  ['session: no id', 'invalid_input', () => client.session()],
  ['session: a number', 'invalid_input', () => client.session(5)],
  ['session: half of a surrogate pair', 'invalid_input', () => client.session('a\ud800')],
  ['session: options', 'invalid_input', () => client.session('s', 'channel')],
  ['session: title', 'config_invalid', () => client.session('s', { title: 5 })],
  ['session: channel', 'config_invalid', () => client.session('s', { channel: {} })],
  ['session: metadata', 'invalid_input', () => client.session('s', { metadata: { count: 1n } })],
  ['session: an owner of no kind', 'config_invalid', () => client.session('s', { owner: { kind: 'nobody' } })],
  [
    'session: two owners',
    'state_owner_conflict',
    () => client.session('s', { owner: { kind: 'caller', conversationId: 'c' } }),
  ],
  [
    'session: owner conversation without an id',
    'config_invalid',
    () => client.session('s', { owner: { kind: 'conversation' } }),
  ],
  ['session: owner response', 'config_invalid', () => client.session('s', { owner: { kind: 'response' } })],
  ['session: an owner of another type', 'config_invalid', () => client.session('s', { owner: 'session' })],
  ['session: a persistence that does not exist', 'config_invalid', () => client.session('s', { persistence: 'turn' })],
  ['session: persistence of another type', 'config_invalid', () => client.session('s', { persistence: true })],
  ['session: providers', 'config_invalid', () => client.session('s', { providers: 'rag' })],
  ['session: trimTrailingResults', 'config_invalid', () => client.session('s', { trimTrailingResults: 'yes' })],
  ['session: flushMs', 'config_invalid', () => client.session('s', { flushMs: 60_001 })],
  ['session: onConflict', 'config_invalid', () => client.session('s', { onConflict: 'maybe' })],
  ['session: onStop', 'config_invalid', () => client.session('s', { onStop: 'maybe' })],
  ['sessions: limit 0', 'config_invalid', () => client.sessions({ limit: 0 })],
  ['sessions: limit 1.5', 'config_invalid', () => client.sessions({ limit: 1.5 })],
  ['sessions: a query of another type', 'invalid_input', () => client.sessions('chat')],
  ['deleteSession: none', 'invalid_input', () => client.deleteSession()],
  ['invocations: status', 'config_invalid', () => client.invocations({ status: 'fine' })],
  ['invocations: since', 'config_invalid', () => client.invocations({ since: '2020' })],
  ['invocations: cursor', 'invalid_input', () => client.invocations({ cursor: 'nonsense' })],
  ['pendingRuns: session', 'config_invalid', () => client.pendingRuns({ session: 5 })],
  ['subscribe: no function', 'invalid_input', () => client.subscribe({})],
];

const ofSession = (session, env) => {
  const provider = providerOf(env);
  const run = (request) => () => session.run({ input: 'x', provider, ...request });
  const to = (extra) => run({ provider: { ...provider, ...extra } });
  const render = (request) => () => session.render({ dialect: env.dialect, params: { model: 'm' }, ...request });
  return [
    ['append: no JSON', 'invalid_input', () => session.append('{"messages":', 'openai-chat')],
    ['append: no UTF-8', 'invalid_input', () => session.append(new Uint8Array([0x7b, 0xff]), 'openai-chat')],
    ['append: a number as text', 'invalid_input', () => session.append('5', 'openai-chat')],
    ['append: no messages', 'invalid_input', () => session.append({ prompt: 'x' }, 'openai-chat')],
    ['append: messages that are none', 'invalid_input', () => session.append({ messages: 'x' }, 'openai-chat')],
    ['append: a number', 'invalid_input', () => session.append(5, 'openai-chat')],
    ['append: null', 'invalid_input', () => session.append(null, 'openai-chat')],
    [
      'append: a cycle',
      'invalid_input',
      () => {
        const body = { messages: [] };
        body.messages.push(body);
        return session.append(body, 'openai-chat');
      },
    ],
    ['append: an unknown dialect', 'config_invalid', () => session.append({ messages: [] }, 'morse')],
    ['append: neutral messages that are none', 'invalid_input', () => session.append([{ role: 'user', content: 'x' }])],
    [
      'append: a neutral message with a function',
      'invalid_input',
      () => session.append([{ role: 'user', parts: [{ type: 'data', name: 'x', value: () => 1 }] }]),
    ],
    ['append: no dialect', 'invalid_input', () => session.append({ messages: [] })],
    ['append: neutral, options of another type', 'invalid_input', () => session.append([], 5)],
    ['append: no such branch', 'not_found', () => session.append({ messages: [] }, 'openai-chat', { branch: 'other' })],
    ['append: at', 'config_invalid', () => session.append({ messages: [] }, 'openai-chat', { at: 'now' })],
    [
      'append: expectedRevision',
      'config_invalid',
      () => session.append({ messages: [] }, 'openai-chat', { expectedRevision: -1 }),
    ],
    [
      'append: source',
      'config_invalid',
      () => session.append({ messages: [] }, 'openai-chat', { source: { type: 'internal' } }),
    ],
    [
      'append: a source of another type',
      'config_invalid',
      () => session.append({ messages: [] }, 'openai-chat', { source: 'context' }),
    ],
    ['append: options', 'invalid_input', () => session.append({ messages: [] }, 'openai-chat', 5)],
    [
      'append: a stale expectedRevision',
      'conflict',
      () => session.append({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat', { expectedRevision: 0 }),
    ],
    [
      'append: an expectedRevision to come',
      'conflict',
      () => session.append({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat', { expectedRevision: 999 }),
    ],
    ['messages: limit', 'config_invalid', () => session.messages({ limit: 'all' })],
    ['messages: cursor', 'invalid_input', () => session.messages({ cursor: 'x' })],
    ['messages: an unknown branch', 'not_found', () => session.messages({ branch: 'other' })],
    ['messages: a branch of another type', 'config_invalid', () => session.messages({ branch: 5 })],
    ['update: title', 'config_invalid', () => session.update({ title: 5 })],
    ['update: nothing', 'invalid_input', () => session.update()],
    ['state.set: a BigInt', 'invalid_input', () => session.state.set('k', 1n)],
    ['state.set: a key that is none', 'invalid_input', () => session.state.set(5, 1)],
    ['view().subscribe: no function', 'invalid_input', () => session.view().subscribe()],
    ['discard: no run', 'not_found', () => session.discard('none')],
    ['discard: no id', 'invalid_input', () => session.discard()],
    ['resume: no run', 'not_found', () => session.resume('none', { provider })],
    ['resume: a number', 'invalid_input', () => session.resume(42, { provider })],
    ['resume: bytes that are no snapshot', 'invalid_input', () => session.resume(new Uint8Array(3), { provider })],
    ['render: nothing', 'invalid_input', () => session.render()],
    ['render: no dialect', 'config_invalid', () => session.render({})],
    ['render: an unknown dialect', 'config_invalid', render({ dialect: 'morse' })],
    ['render: no such branch', 'not_found', render({ branch: 'other' })],
    ['render: messages in params', 'config_invalid', render({ params: { messages: [] } })],
    ['render: params', 'config_invalid', render({ params: 'x' })],
    ['render: a negative window', 'config_invalid', render({ replay: { freshness: -5 } })],
    ['render: an input of another type', 'invalid_input', render({ input: 5 })],
    ['run: nothing', 'invalid_input', () => session.run()],
    ['run: no provider', 'config_invalid', () => session.run({ input: 'x' })],
    ['run: a provider of another type', 'config_invalid', run({ provider: 'openai' })],
    ['run: no dialect', 'config_invalid', to({ dialect: undefined })],
    ['run: an unknown dialect', 'config_invalid', to({ dialect: 'morse' })],
    ['run: no url', 'config_invalid', to({ url: '' })],
    ['run: a url of another type', 'config_invalid', to({ url: 5 })],
    ['run: params', 'config_invalid', to({ params: [] })],
    ['run: stream', 'config_invalid', to({ stream: 'no' })],
    ['run: headers', 'config_invalid', to({ headers: 'x: y' })],
    ['run: a header that is no text', 'config_invalid', to({ headers: { x: 5 } })],
    ['run: messages in params', 'config_invalid', to({ params: { messages: [] } })],
    ['run: compat', 'config_invalid', to({ compat: { systemRole: 'user' } })],
    ['run: compat of another type', 'config_invalid', to({ compat: 'groq' })],
    ['run: a key in the address', 'config_invalid', to({ url: `https://example.com/v1?key=${SECRET}` })],
    ['run: an api_key in the address', 'config_invalid', to({ url: `https://example.com/v1?x=1&API_KEY=${SECRET}#x` })],
    ['run: a password in the address', 'config_invalid', to({ url: `https://me:${SECRET}@example.com/v1` })],
    ['run: authorization', 'config_invalid', to({ headers: { Authorization: `Bearer ${SECRET}` } })],
    ['run: x-api-key', 'config_invalid', to({ headers: { 'x-api-key': SECRET } })],
    ['run: a cookie', 'config_invalid', to({ headers: { cookie: SECRET } })],
    ['run: an empty input', 'invalid_input', run({ input: '' })],
    ['run: no part', 'invalid_input', run({ input: [] })],
    ['run: an unknown part', 'invalid_input', run({ input: [{ type: 'audio' }] })],
    ['run: an image of nothing', 'invalid_input', run({ input: [{ type: 'image' }] })],
    ['run: an input that is no body', 'invalid_input', run({ input: { prompt: 'x' } })],
    [
      'run: tool results as input',
      'invalid_input',
      run({
        provider: { ...provider, dialect: 'openai-chat' },
        input: { messages: [{ role: 'tool', tool_call_id: 'call_9', content: 'x' }] },
      }),
    ],
    ['run: instructions', 'config_invalid', run({ instructions: 5 })],
    ['run: whenBusy', 'config_invalid', run({ whenBusy: 'wait' })],
    ['run: onStop', 'config_invalid', run({ onStop: 'forget' })],
    ['run: maxTurns 0', 'config_invalid', run({ maxTurns: 0 })],
    ['run: maxTurns', 'config_invalid', run({ maxTurns: '3' })],
    ['run: retry', 'config_invalid', run({ retry: 3 })],
    ['run: no attempt', 'config_invalid', run({ retry: { attempts: 0 } })],
    ['run: backoffMs', 'config_invalid', run({ retry: { backoffMs: -1 } })],
    ['run: approveUnsafeReplay', 'config_invalid', run({ retry: { approveUnsafeReplay: true } })],
    ['run: replay', 'config_invalid', run({ replay: 'all' })],
    ['run: persistence', 'config_invalid', run({ persistence: 'turn' })],
    ['run: inputFilter', 'config_invalid', run({ inputFilter: true })],
    ['run: replace', 'not_found', run({ replace: 'id' })],
    ['run: providers', 'config_invalid', run({ providers: 'rag' })],
    ['run: a branch', 'not_found', run({ branch: 'other' })],
    ['run: reducers', 'config_invalid', run({ replay: { reducers: [{ type: 'sliding_turns', turns: 0 }] } })],
    ['run: tools as a list', 'config_invalid', run({ tools: [{ type: 'function', function: { name: 'f' } }] })],
    ['run: a tool of another type', 'config_invalid', run({ tools: { f: () => 1 } })],
    ['run: execute', 'config_invalid', run({ tools: { f: { execute: 'f' } } })],
    ['run: needsApproval', 'config_invalid', run({ tools: { f: { needsApproval: 'always' } } })],
    ['run: persist', 'config_invalid', run({ tools: { f: { persist: 'no' } } })],
    ['run: onInterrupted', 'config_invalid', run({ tools: { f: { onInterrupted: 'retry' } } })],
    ['run: onInterrupted in capitals', 'config_invalid', run({ tools: { f: { onInterrupted: 'Ask' } } })],
    ['run: endsRun', 'config_invalid', run({ tools: { f: { endsRun: 'yes' } } })],
    ["run: a tool's window", 'config_invalid', run({ tools: { f: { freshness: NaN } } })],
    ['run: an inputId that is taken', 'invalid_input', run({ inputId: 'taken' })],
  ];
};

/** Calls on a client that is closed. */
const ofClosed = (client, session, env) => [
  ['closed: session', 'closed', () => client.session('s')],
  ['closed: sessions', 'closed', () => client.sessions()],
  ['closed: deleteSession', 'closed', () => client.deleteSession('s')],
  ['closed: invocations', 'closed', () => client.invocations()],
  ['closed: pendingRuns', 'closed', () => client.pendingRuns()],
  ['closed: status', 'closed', () => client.status()],
  ['closed: append', 'closed', () => session.append({ messages: [{ role: 'user', content: 'x' }] }, 'openai-chat')],
  ['closed: messages', 'closed', () => session.messages()],
  ['closed: session.invocations', 'closed', () => session.invocations()],
  ['closed: render', 'closed', () => session.render({ dialect: 'openai-chat' })],
  ['closed: run', 'closed', () => session.run({ input: 'x', provider: providerOf(env) })],
  ['closed: refresh', 'closed', () => session.refresh()],
  ['closed: update', 'closed', () => session.update({ title: 'x' })],
  ['closed: save', 'closed', () => session.save()],
  ['closed: resume', 'closed', () => session.resume('x', { provider: providerOf(env) })],
  ['closed: discard', 'closed', () => session.discard('x')],
];

/** Every wrong call: [{what, want, fact, right}], and whether the session is as it was. */
export async function misuse(kit, env) {
  const { rethread } = kit;
  const facts = [];
  const judge = async (list) => {
    for (const [what, want, work] of list) {
      const fact = await caught(async () => work());
      facts.push({
        what,
        want,
        ...fact,
        right:
          fact.code === want &&
          fact.name === 'RethreadError' &&
          fact.message.length >= 15 &&
          typeof fact.details === 'object' &&
          !fact.message.includes(SECRET),
      });
    }
  };
  await judge(ofPackage(kit, env));
  const client = await rethread.open({ store: env.store, name: env.name });
  await judge(ofClient(client));
  const session = await client.session('s');
  await session.append(
    {
      messages: [
        { role: 'user', content: 'one' },
        { role: 'assistant', content: 'two' },
      ],
    },
    'openai-chat',
  );
  const taken = (await session.messages()).items[0].id;
  const before = JSON.stringify([(await session.messages()).items, session.revision, session.title]);
  await judge(
    ofSession(session, env).map(([what, want, work]) => [
      what,
      want,
      what === 'run: an inputId that is taken'
        ? () => session.run({ input: 'x', inputId: taken, provider: providerOf(env) })
        : work,
    ]),
  );
  const after = JSON.stringify([(await session.messages()).items, session.revision, session.title]);
  const listed = (await client.sessions()).items.map(({ id }) => id);
  await client.close();
  await client.close();
  await judge(ofClosed(client, session, env));
  return { facts, same: before === after, listed };
}

/** A run that is told nonsense goes on as if nothing had been said. */
export async function protocol({ rethread, drive }, env) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const session = await client.session('s');
  const run = await session.run({
    input: 'Weather?',
    provider: providerOf(env, { stream: true }),
    tools: { get_weather: plainTools().get_weather },
  });
  const [model] = run.effects();
  const codes = {};
  const say = async (name, work) => {
    codes[name] = (await caught(async () => work())).code;
  };
  await say('unknown effect', () => run.answer('e99', { type: 'waited' }));
  await say('an id that is none', () => run.answer(5, { type: 'waited' }));
  await say('no answer', () => run.answer(model.id));
  await say('a type that is none', () => run.answer(model.id, { type: 'done' }));
  await say('no status', () => run.answer(model.id, { type: 'response_started', headers: {} }));
  await say('a tool result for a model', () => run.answer(model.id, { type: 'tool_result', content: 1 }));
  await say('bytes before the start', () => run.feed(model.id, new Uint8Array(1)));
  await say('the end before the start', () => run.answer(model.id, { type: 'response_end' }));
  await say('text for bytes', () => run.feed(model.id, 'data'));
  await say('nothing to save', () => run.save());
  const sameEffect = run.effects()[0] === model;

  const response = await fetch(model.request.url, {
    method: 'POST',
    headers: model.request.headers,
    body: model.request.body,
  });
  await run.answer(model.id, { type: 'response_started', status: response.status, headers: {} });
  await say('started twice', () => run.answer(model.id, { type: 'response_started', status: 200, headers: {} }));
  await say('whole after the start', () => run.answer(model.id, { type: 'response', status: 200, body: '{}' }));
  await run.feed(model.id, new Uint8Array(await response.arrayBuffer()));
  await run.answer(model.id, { type: 'response_end' });
  await say('late bytes', () => run.feed(model.id, new Uint8Array(1)));
  await say('a late end', () => run.answer(model.id, { type: 'response_end' }));

  const tools = run.effects();
  const [first, second] = tools;
  await say('a response for a tool', () => run.answer(first.id, { type: 'response', status: 200, body: '' }));
  await run.answer(first.id, { type: 'started' });
  await say('a tool started twice', () => run.answer(first.id, { type: 'started' }));
  await run.answer(first.id, { type: 'tool_result', content: { n: 1 } });
  await say('a result twice', () => run.answer(first.id, { type: 'tool_result', content: { n: 2 } }));
  if (second) await run.answer(second.id, { type: 'failed', error: { message: 'broke' } });
  const busy = (await caught(() => session.run({ input: 'second', provider: providerOf(env) }))).code;
  const deleting = (await caught(() => client.deleteSession('s'))).code;
  const { result } = await finish(drive, run);
  await say('after the end', () => run.answer(first.id, { type: 'tool_result', content: 3 }));
  await run.cancel();
  const calls = (await session.invocations({ payload: true })).items.toSorted(
    (a, b) => a.turn - b.turn || a.roundIndex - b.roundIndex || a.sequenceIndex - b.sequenceIndex,
  );
  const rows = calls.map(({ status, result: own }) => [status, own.content]);
  const requests = await control.requests(env);
  await client.close();
  return {
    codes,
    sameEffect,
    tools: tools.map(({ type, name, attempt }) => [type, name, attempt]),
    busy,
    deleting,
    status: result.status,
    after: run.status,
    rows: rows.slice(0, 2),
    refused: requests.filter(({ status }) => status !== 200).length,
  };
}

export const IDS = [
  '__proto__',
  'constructor',
  'a/b',
  'a\u0000b',
  'a',
  'a\u0000',
  'ab',
  ' ',
  '.',
  '😀',
  'é',
  'e\u0301',
  '\uffff',
  '\u{10ffff}',
  'x'.repeat(10_240),
  '%2F',
  '[1]',
  '0',
];

/** Session ids are any text. */
export async function ids({ rethread }, env) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const state = {};
  for (const id of IDS) {
    const session = await client.session(id);
    await session.append(
      {
        messages: [
          { role: 'user', content: `of ${id.slice(0, 40)}` },
          {
            role: 'assistant',
            content: null,
            tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }],
          },
          { role: 'tool', tool_call_id: 'call_1', content: id.slice(0, 40) },
        ],
      },
      'openai-chat',
    );
    session.state.set('__proto__', id.length);
    session.state.set('own', id.slice(0, 5));
    await session.save();
  }
  await client.close();
  const again = env.store === 'memory' ? null : await rethread.open({ store: env.store, name: env.name });
  if (again) {
    for (const id of IDS) {
      const session = await again.session(id);
      const { items } = await session.messages();
      const rows = (await session.invocations({ payload: true })).items;
      state[`id:${id}`] = [
        session.id === id,
        items.length,
        items[0].parts[0].text,
        rows.length,
        rows[0].sessionId === id,
        rows[0].result.content,
        session.state.get('__proto__'),
        session.state.get('own'),
        session.state.keys().join(),
      ];
    }
    const listed = [];
    let cursor;
    do {
      const page = await again.sessions({ limit: 4, ...(cursor ? { cursor } : {}) });
      listed.push(...page.items.map(({ id }) => id));
      cursor = page.cursor;
    } while (cursor);
    const paged = [];
    do {
      const page = await again.invocations({ limit: 5, ...(cursor ? { cursor } : {}) });
      paged.push(...page.items.map(({ sessionId }) => sessionId));
      cursor = page.cursor;
    } while (cursor);
    await again.deleteSession('a');
    const left = (await again.sessions({ limit: 100 })).items.length;
    const neighbours = [
      (await (await again.session('a\u0000')).messages()).items.length,
      (await (await again.session('ab')).messages()).items.length,
      (await (await again.session('a')).messages()).items.length,
    ];
    await again.close();
    return { state, listed: listed.sort(), paged: paged.sort(), left, neighbours };
  }
  return null;
}
