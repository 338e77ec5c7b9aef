// R68: a credential that the host was given, at a server that quotes it. No import: the same file runs in a page and in
// Node.

export const DIALECTS = ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral'];

/** Keys without a known form, with one, and with what has to be escaped. */
export const KEYS = {
  plain: 'q7Hn2vXw90LmTtRb',
  known: 'sk-proj-0123456789abcdef',
  escaped: 'a/b+c&d<e>"f"=%25',
  short: 'hunter2',
};

/** Everything of a value that could be read: getters of errors too, in depth. */
export function textOf(value) {
  const seen = new Set();
  const all = [];
  const read = (one) => {
    if (typeof one === 'string') all.push(one);
    if ((typeof one !== 'object' && typeof one !== 'function') || one === null || seen.has(one)) return;
    seen.add(one);
    if (one instanceof Uint8Array) all.push(new TextDecoder('latin1').decode(one));
    else for (const name of [...Object.getOwnPropertyNames(one), 'message', 'stack', 'cause']) read(one[name]);
  };
  read(value);
  return all.join('\n');
}

/** Every record of every table of a database, as text: bytes as Latin-1. */
export async function databaseText(name) {
  const asked = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  const found = (await indexedDB.databases()).find((database) => database.name.includes(name));
  const database = await asked(indexedDB.open(found.name));
  const records = [];
  for (const table of database.objectStoreNames) {
    const store = database.transaction(table).objectStore(table);
    records.push(...(await asked(store.getAllKeys())), ...(await asked(store.getAll())));
  }
  database.close();
  return textOf(records);
}

/** A run against that address, and everything that an application can see of it afterwards. */
export async function seen(
  { rethread, drive },
  { store, name, url, dialect, headers, stream = true, params, tools, input = 'What is it?' },
) {
  const client = await rethread.open({ store, name });
  const session = await client.session('s');
  const request = {
    input,
    provider: { dialect, url, params: { model: 'm', ...params }, stream },
    tools,
    retry: { attempts: 2, backoffMs: 1 },
  };
  const run = await session.run(request);
  const driven = drive(run, { headers });
  const events = [];
  for await (const event of driven) events.push(event);
  const result = await driven.result.catch((error) => ({ status: 'rejected', error }));
  const pending = await client.pendingRuns();
  const facts = {
    events,
    result,
    again: run.result(),
    pending,
    ofSession: await session.pendingRuns(),
    messages: await session.messages({ limit: 100 }),
    view: session.view().getSnapshot(),
  };
  const text = textOf(facts);
  await client.close();
  const stored = store === 'indexeddb' ? await databaseText(name) : '';
  return {
    status: result.status,
    message: result.error?.message ?? null,
    details: result.error?.details ?? null,
    answer: result.text,
    pending: pending.length,
    text,
    stored,
    events: events.map(({ type }) => type),
  };
}

/** The forms of a key that must be nowhere. */
export const formsOf = (key) => [
  ...new Set([
    key,
    encodeURIComponent(key),
    JSON.stringify(key).slice(1, -1),
    key.replaceAll('&', '&amp;').replaceAll('<', '&lt;'),
    [...key].join('\0'),
  ]),
];

/** `params` with credentials in them, by dialect, and the paths that a resume has to give again. */
export const PARAMS = {
  'openai-chat': [
    (key) => ({ api_key: key, headers: { 'x-a': key }, extra_headers: { Authorization: `Bearer ${key}` } }),
    ['params.api_key', 'params.headers', 'params.extra_headers'],
  ],
  'openai-responses': [
    (key) => ({
      tools: [
        {
          type: 'mcp',
          server_label: 's',
          server_url: `https://h/?token=${encodeURIComponent(key)}`,
          authorization: key,
          headers: { 'x-a': key },
        },
      ],
    }),
    ['params.tools[0].server_url', 'params.tools[0].authorization', 'params.tools[0].headers'],
  ],
  anthropic: [
    (key) => ({ mcp_servers: [{ type: 'url', name: 's', url: 'https://h/', authorization_token: key }] }),
    ['params.mcp_servers[0].authorization_token'],
  ],
  gemini: [
    (key) => ({
      tools: [{ mcpServers: [{ name: 's', streamableHttpTransport: { url: 'https://h/', headers: { 'x-a': key } } }] }],
    }),
    ['params.tools[0].mcpServers[0].streamableHttpTransport.headers'],
  ],
  mistral: [
    (key) => ({ tools: [{ type: 'connector', authorization: { type: 'api-key', value: key } }] }),
    ['params.tools[0].authorization'],
  ],
};

/** A run whose `params` hold credentials fails; it is resumed without them, then with them. */
export async function resumed({ rethread, drive }, { store, name, dialect, url, key }) {
  const client = await rethread.open({ store, name });
  const session = await client.session('s');
  const params = { model: 'm', ...PARAMS[dialect][0](key) };
  const bodies = [];
  const answers = [];
  const fetch = async (_, init) => {
    bodies.push(new TextDecoder().decode(init.body));
    return answers.length > 0 ? answers.shift() : globalThis.fetch(url);
  };
  const refusal = () => new Response(JSON.stringify({ error: { message: `bad token ${key}` } }), { status: 400 });
  answers.push(refusal(), refusal());
  const provider = { dialect, url, params, stream: true, headers: { 'x-team': 'blue' }, allowHeaders: ['X-Team'] };
  const run = await session.run({ input: 'What is it?', provider });
  const result = await drive(run, { fetch }).result;
  const [pending] = await client.pendingRuns();
  const refused = await session.resume(pending.id, { provider: pending.provider }).then(
    () => null,
    (error) => error,
  );
  const afterwards = await client.pendingRuns();
  const given = { ...pending.provider, params };
  const again = await drive(await session.resume(pending.id, { provider: given }), { fetch }).result;
  const text = textOf([
    result,
    pending,
    refused,
    afterwards,
    again,
    await client.pendingRuns(),
    session.view().getSnapshot(),
    await session.messages(),
  ]);
  await client.close();
  const stored = store === 'indexeddb' ? await databaseText(name) : '';
  return {
    text,
    stored,
    sent: bodies.map((body) => body.includes(JSON.stringify(key).slice(1, -1))),
    withheld: pending.withheld,
    params: pending.provider.params,
    headers: pending.provider.headers,
    allowHeaders: pending.provider.allowHeaders,
    refused: { code: refused?.code, message: refused?.message },
    waits: afterwards.map(({ state }) => state),
    status: [result.status, again.status],
    message: result.error.message,
  };
}

export function checkResumed(assert, facts, dialect) {
  assert.deepEqual(facts.sent, [true, true], 'the provider gets them');
  assert.deepEqual(facts.withheld, PARAMS[dialect][1]);
  assert.equal(facts.params.model, 'm');
  assert.equal(facts.headers['x-team'], 'blue');
  assert.deepEqual(facts.allowHeaders, ['x-team']);
  assert.equal(facts.refused.code, 'config_invalid');
  assert.ok(facts.refused.message.includes(PARAMS[dialect][1][0]), facts.refused.message);
  assert.deepEqual(facts.waits, ['failed'], 'a resume that is refused changes nothing');
  assert.deepEqual(facts.status, ['failed', 'failed']);
  assert.match(facts.message, /bad token \[redacted\]/);
}
