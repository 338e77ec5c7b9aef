// What is kept, found and sent again. Each scenario gives facts; the test judges them.

import { control, finish, plainTools, providerOf } from './kit.mjs';

const read = ({ body }) => JSON.parse(new TextDecoder().decode(body));
const textOf = ({ body }) => new TextDecoder().decode(body);

const ROUNDS = [
  {
    text: 'Two things.',
    calls: [
      { name: 'get_weather', arguments: { city: 'Oslo' } },
      { name: 'get_time', arguments: { city: 'Oslo' } },
    ],
  },
  { calls: [{ name: 'get_weather', arguments: { city: 'Rome' } }] },
  { text: 'Mild.' },
];

/** r01, r13: what the audit table says of a run, by every filter and page. */
export async function audit({ rethread, drive }, env) {
  let clock = 1_000_000;
  const client = await rethread.open({ store: env.store, name: env.name, now: () => (clock += 10) });
  for (const [id, channel] of [
    ['one', 'chat'],
    ['two', 'mail'],
  ]) {
    const session = await client.session(id, { channel });
    await control.script(env, ROUNDS);
    const tools = plainTools();
    if (id === 'two')
      tools.get_time.execute = () => {
        throw new Error('no clock');
      };
    await finish(drive, await session.run({ input: `Ask ${id}`, provider: providerOf(env), tools }));
  }
  const one = await client.session('one');
  const { items: messages } = await one.messages();
  const { items: rows } = await one.invocations({ payload: true });
  const { items: bare } = await one.invocations();
  const count = async (query) => (await client.invocations(query)).items.length;
  const middle = rows[1].finishedAt;
  const counts = {
    all: await count(),
    session: await count({ session: 'two' }),
    tool: await count({ tool: 'get_time' }),
    ok: await count({ status: 'ok' }),
    error: await count({ status: 'error' }),
    channel: await count({ channel: 'mail' }),
    both: await count({ channel: 'mail', tool: 'get_weather' }),
    none: await count({ session: 'three' }),
    until: await count({ session: 'one', until: middle }),
    since: await count({ session: 'one', since: middle + 1 }),
    message: await count({ messageId: messages[1].id }),
  };
  const paged = [];
  let cursor;
  do {
    const page = await client.invocations({ limit: 2, ...(cursor ? { cursor } : {}) });
    paged.push(page.items.map(({ sessionId, callId }) => `${sessionId} ${callId}`));
    cursor = page.cursor;
  } while (cursor);
  const all = (await client.invocations()).items.map(({ sessionId, callId }) => `${sessionId} ${callId}`);
  await client.close();
  return { messages, rows, bare, counts, paged, all };
}

/** r10: who wins where several speak, and the one warning of the built-in window. */
export async function freshness({ rethread }, env) {
  let clock = 1_000_000;
  const warnings = [];
  const open = (options = {}) =>
    rethread.open({
      store: env.store,
      name: `${env.name}-${Math.random()}`,
      now: () => clock,
      onWarning: ({ code }) => warnings.push(code),
      ...options,
    });
  const body = {
    messages: [
      { role: 'user', content: 'Weather and time?' },
      {
        role: 'assistant',
        content: null,
        tool_calls: ['get_weather', 'get_time'].map((name, at) => ({
          id: `call_${at}`,
          type: 'function',
          function: { name, arguments: '{}' },
        })),
      },
      { role: 'tool', tool_call_id: 'call_0', content: 'mild' },
      { role: 'tool', tool_call_id: 'call_1', content: 'noon' },
      { role: 'assistant', content: 'Mild, noon.' },
      { role: 'user', content: 'Thanks' },
    ],
  };
  const tools = (freshness) => ({ get_weather: { freshness }, get_time: {} });
  /** Which results are replayed, `age` after they came. */
  const shown = async (session, age, request = {}) => {
    clock = 1_000_000 + age;
    const rendered = await session.render({ dialect: 'openai-chat', params: { model: 'm' }, ...request });
    return read(rendered)
      .messages.filter(({ role }) => role === 'tool')
      .map(({ content }) => content)
      .join(' ');
  };
  const stored = async (options, sessionOptions) => {
    clock = 1_000_000;
    const session = await (await open(options)).session('s', sessionOptions);
    await session.append(body, 'openai-chat');
    return session;
  };

  const facts = {};
  const plain = await stored();
  facts.builtIn = [await shown(plain, 300_000), await shown(plain, 300_001), await shown(plain, 300_002)];
  facts.warnings = warnings.slice();
  facts.call = [
    await shown(plain, 1e9, { replay: { freshness: Infinity } }),
    await shown(plain, 0, { replay: { freshness: 0 } }),
    await shown(plain, 1e9, { replay: { toolFreshness: { get_time: Infinity } } }),
  ];
  facts.tool = [
    await shown(plain, 1e9, { tools: tools(Infinity) }),
    await shown(plain, 1, { tools: tools(0) }),
    await shown(plain, 1e9, { tools: tools(Infinity), replay: { freshness: 5 } }),
  ];
  facts.placeholder = await shown(plain, 1e9, { replay: { onStale: 'placeholder' } });
  facts.unit = await shown(plain, 1000, { replay: { toolFreshness: { get_time: 0 }, staleUnit: 'round' } });

  const levels = { replay: { freshness: 1000 }, channels: { slow: { freshness: 2000 } } };
  const inChannel = await stored(levels, { channel: 'slow' });
  const own = await stored(levels, { channel: 'slow', replay: { freshness: 3000 } });
  const inherits = await stored(levels, { channel: 'slow', replay: { freshness: null } });
  const elsewhere = await stored(levels, { channel: 'other' });
  facts.global = [await shown(elsewhere, 1000), await shown(elsewhere, 1001)];
  facts.channel = [await shown(inChannel, 2000), await shown(inChannel, 2001)];
  facts.session = [await shown(own, 3000), await shown(own, 3001)];
  facts.inherits = [await shown(inherits, 2000), await shown(inherits, 2001)];
  facts.toolOverSession = await shown(own, 3001, { tools: tools(4000) });
  return facts;
}

/** r08, r09: what is cited, what is not, and the numbers that go on. */
export async function citations({ rethread, drive }, env) {
  let clock = 1_000_000;
  const client = await rethread.open({
    store: env.store,
    name: env.name,
    now: () => clock,
    replay: { citations: 'replay' },
  });
  const found = [
    { source_number: 4, content: 'four', content_id: 'c4' },
    { source_number: 9, content: 'nine' },
  ];
  const body = {
    messages: [
      { role: 'user', content: 'Search.' },
      {
        role: 'assistant',
        content: null,
        tool_calls: [{ id: 'call_s', type: 'function', function: { name: 'search', arguments: '{}' } }],
      },
      { role: 'tool', tool_call_id: 'call_s', content: JSON.stringify(found) },
      { role: 'assistant', content: 'As [source4] says.' },
      { role: 'user', content: 'Thanks' },
    ],
  };
  const shown = async (session, request = {}) => {
    const rendered = await session.render({ dialect: 'openai-chat', params: { model: 'm' }, ...request });
    const results = read(rendered)
      .messages.filter(({ role }) => role === 'tool')
      .map(({ content }) => content);
    return {
      results,
      max: rendered.maxSourceNumber,
      sources: rendered.sources,
      codes: rendered.report.map(({ code }) => code),
    };
  };
  const facts = {};
  const session = await client.session('s');
  facts.empty = await shown(session, { input: 'Hi' });
  await session.append(body, 'openai-chat');
  facts.replay = await shown(session);
  facts.off = await shown(session, { replay: { citations: 'off' } });
  clock += 1e9;
  facts.later = await shown(session);

  const storing = await client.session('t', { replay: { citations: 'store' } });
  await control.script(env, [{ calls: [{ name: 'search', arguments: {} }] }, { text: 'As [source9] says.' }]);
  const tools = { search: { parameters: { type: 'object', properties: {} }, execute: () => found } };
  const { result } = await finish(drive, await storing.run({ input: 'Search.', provider: providerOf(env), tools }));
  facts.run = {
    status: result.status,
    codes: result.report.map(({ code }) => code),
    stored: (await storing.invocations({ payload: true })).items.map(({ result: { content } }) => content),
    seen: (await control.requests(env)).at(-1).bodyText.includes('four'),
  };
  facts.stored = await shown(storing);
  const imported = await client.session('u', { replay: { citations: 'store' } });
  await imported.append(body, 'openai-chat');
  facts.imported = {
    stored: (await imported.invocations({ payload: true })).items.map(({ result: { content } }) => content),
    max: (await shown(imported)).max,
  };
  await client.close();
  return facts;
}

/** r55: tools, as each dialect wants them. */
export async function shapes({ rethread }, env) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const session = await client.session('s');
  await session.append({ messages: [{ role: 'user', content: 'Hi' }] }, 'openai-chat');
  const tools = plainTools();
  const extra = { type: 'function', function: { name: 'extra', parameters: { type: 'object', properties: {} } } };
  const chat = read(
    await session.render({
      dialect: 'openai-chat',
      params: { model: 'm', tools: [extra], tool_choice: { type: 'any' } },
      tools,
      instructions: 'Be brief.',
      input: 'Go',
    }),
  );
  const claude = read(
    await session.render({
      dialect: 'anthropic',
      params: { model: 'm', max_tokens: 5, tool_choice: 'required' },
      tools,
      instructions: 'Be brief.',
      input: [
        { type: 'text', text: 'Go' },
        { type: 'image', data: new Uint8Array([1, 2, 255]), mediaType: 'image/png' },
      ],
    }),
  );
  const twice = await session.render({ dialect: 'openai-chat', params: { tools: [extra] }, tools: { extra: {} } }).then(
    () => null,
    ({ code, message }) => ({ code, message }),
  );
  await client.close();
  return { chat, claude, twice };
}

/** r45: texts that JSON.parse would destroy. */
export const EXACT = {
  'openai-chat': [
    String.raw`{"role":"user","content":"caf\u00e9 \ud83d\ude00 \/ lone \ud800 end","name":"n\u0061me"}`,
    String.raw`{"role":"assistant","content":null,"tool_calls":[{"id":"call_a","type":"function","function":{"name":"get_weather","arguments":"{\"n\": 12345678901234567890, \"n\": 1.0, \"s\": \"\\u00e9\\ud83d\\ude00\"}"}}],"x":1e400}`,
    String.raw`{"role":"tool","tool_call_id":"call_a","content":"{\"big\":900719925474099312345,\"a\":1,\"a\":2,\"f\":1.10}"}`,
    String.raw`{"role":"assistant","content":"ok\u2028 \udfff","vendor":{"id":12345678901234567890,"k":1,"k":2,"z":-0.0}}`,
  ],
  anthropic: [
    String.raw`{"role":"user","content":"caf\u00e9 \/ lone \ud800 end"}`,
    String.raw`{"role":"assistant","content":[{"type":"tool_use","id":"toolu_a","name":"get_weather","input":{"n":12345678901234567890,"n":1.0,"s":"\u00e9\ud83d\ude00","z":-0.0,"e":1E+2}}]}`,
    String.raw`{"role":"user","content":[{"type":"tool_result","tool_use_id":"toolu_a","content":[{"type":"text","text":"a\u002fb \udfff"}]}]}`,
    String.raw`{"role":"assistant","content":[{"type":"text","text":"ok \ud83d\ude00","vendor":{"id":12345678901234567890,"k":1,"k":2}}]}`,
  ],
};

export async function storeExact({ rethread }, env) {
  const client = await rethread.open({ store: env.store, name: env.name });
  for (const [dialect, messages] of Object.entries(EXACT)) {
    const text = `{"messages":[${messages.join(',')}]}`;
    await (await client.session(`${dialect} text`)).append(text, dialect);
    await (await client.session(`${dialect} bytes`)).append(new TextEncoder().encode(text), dialect);
  }
  return client;
}

export async function readExact({ rethread }, env, kept) {
  const client = kept ?? (await rethread.open({ store: env.store, name: env.name }));
  const facts = {};
  for (const dialect of Object.keys(EXACT)) {
    for (const way of ['text', 'bytes']) {
      const session = await client.session(`${dialect} ${way}`);
      facts[`${dialect} ${way}`] = textOf(
        await session.render({ dialect, params: { model: 'm' }, replay: { freshness: Infinity } }),
      );
    }
  }
  await client.close();
  return facts;
}

/** r45, the model's own words: arguments as it wrote them go back as it wrote them. */
export const RAW = '{"n": 12345678901234567890, "n": 1.0,  "s": "\\u00e9\\/ \\ud83d\\ude00 \\ud800"}';

export async function exactAnswer({ rethread, drive }, env, stream) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const session = await client.session(`exact ${stream}`);
  await control.script(env, [
    {
      calls: [
        { id: env.dialect === 'anthropic' ? 'toolu_01exact' : 'call_exact', name: 'get_weather', arguments: RAW },
      ],
    },
    { text: 'Done.' },
  ]);
  const seen = [];
  const tools = {
    get_weather: {
      execute: (_, { argumentsText }) => {
        seen.push(argumentsText);
      },
    },
  };
  const { result } = await finish(
    drive,
    await session.run({ input: 'Go', provider: providerOf(env, { stream }), tools }),
  );
  const requests = await control.requests(env);
  await client.close();
  return { status: result.status, seen, body: requests.at(-1).bodyText };
}

/** r20: streamed or not, the same is stored. */
export async function streamedOrNot({ rethread, drive }, env) {
  const facts = [];
  for (const stream of [true, false]) {
    let id = 0;
    const client = await rethread.open({
      store: env.store,
      name: `${env.name}-${stream}`,
      now: () => 1_000_000,
      newId: () => `id-${(id += 1)}`,
    });
    const session = await client.session('s');
    const steps = structuredClone(ROUNDS);
    if (env.dialect === 'anthropic')
      for (const [at, step] of steps.entries()) step.thinking = { text: `Thought ${at}.` };
    for (const step of steps)
      for (const [at, call] of (step.calls ?? []).entries())
        call.id = `${env.dialect === 'anthropic' ? 'toolu_01' : 'call_'}${call.name}${steps.indexOf(step)}${at}`;
    await control.script(env, steps);
    const params =
      env.dialect === 'anthropic'
        ? { model: 'm', max_tokens: 4000, thinking: { type: 'enabled', budget_tokens: 1024 } }
        : { model: 'm' };
    const { result } = await finish(
      drive,
      await session.run({ input: 'Weather?', provider: providerOf(env, { stream, params }), tools: plainTools() }),
    );
    const again = textOf(await session.render({ dialect: env.dialect, params }));
    // What a stream and a whole answer cannot share: the request's own size and the id that the model drew from it.
    const messages = (await session.messages()).items.map(({ usage, dialectData, ...message }) => {
      const { responseId, ...data } = JSON.parse(dialectData ?? '{}');
      return { ...message, dialectData: data };
    });
    facts.push({
      status: result.status,
      error: result.error,
      text: result.text,
      turns: result.turns,
      messages,
      invocations: (await session.invocations({ payload: true })).items,
      again,
    });
    await client.close();
  }
  return facts;
}
