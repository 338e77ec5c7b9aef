import assert from 'node:assert/strict';
import http from 'node:http';
import test, { after, before } from 'node:test';
import { think } from './brain.mjs';
import { createStandIn, startStandIn } from './server.mjs';
import { viewOf } from './view.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

let laneCount = 0;
/** A lane of its own for every test. */
function lane() {
  const base = `${standIn.url}/lane/t${(laneCount += 1)}`;
  const send = (path, body) => fetch(base + path, { method: 'POST', body: JSON.stringify(body ?? {}) });
  const control = async (path, body) =>
    (await (body ? send(`/control/${path}`, body) : fetch(`${base}/control/${path}`))).json();
  return { base, send, control };
}
const until = async (ask, most = 3000) => {
  for (const end = Date.now() + most; ; ) {
    const got = await ask();
    if (got) return got;
    if (Date.now() > end) throw new Error('waited in vain');
    await new Promise((r) => setTimeout(r, 10));
  }
};
const city = { type: 'object', properties: { city: { type: 'string' } }, required: ['city'] };
const NAMES = ['get_weather', 'get_time', 'book_table'];
const chatBody = (messages, more) => ({
  model: 'gpt-x',
  stream: true,
  stream_options: { include_usage: true },
  messages,
  tools: NAMES.map((name) => ({ type: 'function', function: { name, parameters: city } })),
  ...more,
});
const claudeBody = (messages, more) => ({
  model: 'claude-x',
  max_tokens: 500,
  stream: true,
  messages,
  tools: NAMES.map((name) => ({ name, input_schema: city })),
  ...more,
});

function readChat(text) {
  const out = { text: '', calls: [], finish: null, usage: null, done: /data: \[DONE\]\n\n$/.test(text), fragments: 0 };
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: {')) continue;
    const data = JSON.parse(line.slice(6));
    if (data.error) out.error = data.error;
    if (data.usage) out.usage = data.usage;
    const choice = data.choices?.[0];
    if (!choice) continue;
    out.text += choice.delta.content ?? '';
    for (const c of choice.delta.tool_calls ?? []) {
      out.fragments += 1;
      out.calls[c.index] ??= { id: c.id, name: c.function.name, arguments: '' };
      out.calls[c.index].arguments += c.function.arguments;
    }
    out.finish = choice.finish_reason ?? out.finish;
  }
  return out;
}
function readClaude(text) {
  const out = { blocks: [], stop: null, events: [] };
  for (const line of text.split('\n')) {
    if (!line.startsWith('data: ')) continue;
    const e = JSON.parse(line.slice(6));
    out.events.push(e.type);
    const b = out.blocks[e.index];
    if (e.type === 'content_block_start') out.blocks[e.index] = { ...e.content_block, raw: '' };
    if (e.delta?.type === 'text_delta') b.text += e.delta.text;
    if (e.delta?.type === 'thinking_delta') b.thinking += e.delta.thinking;
    if (e.delta?.type === 'signature_delta') b.signature += e.delta.signature;
    if (e.delta?.type === 'input_json_delta') b.raw += e.delta.partial_json;
    if (e.type === 'message_delta') Object.assign(out, { stop: e.delta.stop_reason, usage: e.usage });
    if (e.type === 'error') out.error = e.error;
  }
  for (const b of out.blocks) if (b.type === 'tool_use') b.input = JSON.parse(b.raw || '{}');
  return out;
}

test('openai-chat: two calls, one call, then the answer that quotes the results', async () => {
  const { send, control } = lane();
  await control('options', { delayMs: 0 });
  const messages = [{ role: 'user', content: 'Weather in Oslo, please' }];
  const ids = new Set();
  for (const count of [2, 1]) {
    const turn = readChat(await (await send('/v1/chat/completions', chatBody(messages))).text());
    assert.equal(turn.calls.length, count);
    assert.equal(turn.finish, 'tool_calls');
    assert.ok(turn.text && turn.done && turn.usage.total_tokens > 0 && turn.fragments > count * 2);
    messages.push({
      role: 'assistant',
      content: turn.text,
      tool_calls: turn.calls.map(({ id, name, arguments: a }) => ({
        id,
        type: 'function',
        function: { name, arguments: a },
      })),
    });
    for (const c of turn.calls) {
      assert.deepEqual(JSON.parse(c.arguments), { city: 'Oslo' });
      ids.add(c.id);
      messages.push({ role: 'tool', tool_call_id: c.id, content: `RESULT-${c.name}` });
    }
  }
  assert.equal(ids.size, 3);
  const last = readChat(await (await send('/v1/chat/completions', chatBody(messages))).text());
  assert.equal(last.finish, 'stop');
  assert.equal(last.calls.length, 0);
  assert.ok(last.text.split(/\s+/).length >= 40);
  for (const n of NAMES) assert.match(last.text, new RegExp(`RESULT-${n}`));
  const whole = await (
    await send('/v1/chat/completions', chatBody(messages.slice(0, 1), { stream: false, stream_options: undefined }))
  ).json();
  assert.equal(whole.choices[0].message.tool_calls.length, 2);
  assert.equal((await control('requests')).length, 4);
});

test('anthropic: the same loop, with signed thinking', async () => {
  const { send, control } = lane();
  await control('options', { delayMs: 0, chunkBytes: 7 });
  const thinking = { type: 'enabled', budget_tokens: 100 };
  const messages = [{ role: 'user', content: 'Weather in Zürich and Rome?' }];
  for (const count of [2, 1]) {
    const turn = readClaude(await (await send('/v1/messages', claudeBody(messages, { thinking }))).text());
    assert.equal(turn.stop, 'tool_use');
    assert.equal(turn.events[0], 'message_start');
    assert.equal(turn.events.at(-1), 'message_stop');
    assert.ok(turn.events.includes('ping') && turn.usage.output_tokens > 1);
    assert.equal(turn.blocks[0].type, 'thinking');
    const uses = turn.blocks.filter((b) => b.type === 'tool_use');
    assert.equal(uses.length, count);
    const content = turn.blocks.map(({ raw, ...b }) => b);
    const spoilt = content.map((b) => (b.type === 'thinking' ? { ...b, thinking: 'other' } : b));
    const answers = {
      role: 'user',
      content: uses.map((b) => ({ type: 'tool_result', tool_use_id: b.id, content: `RESULT-${b.name}` })),
    };
    const refused = await send(
      '/v1/messages',
      claudeBody([...messages, { role: 'assistant', content: spoilt }, answers], { thinking }),
    );
    assert.equal(refused.status, 400);
    assert.match((await refused.json()).error.message, /Invalid `signature`/);
    messages.push({ role: 'assistant', content }, answers);
  }
  const last = readClaude(await (await send('/v1/messages', claudeBody(messages, { thinking }))).text());
  assert.equal(last.stop, 'end_turn');
  for (const n of NAMES) assert.match(last.blocks.at(-1).text, new RegExp(`RESULT-${n}`));
  // New text behind results starts a new turn.
  messages.push(
    { role: 'assistant', content: [{ type: 'text', text: 'ok' }] },
    { role: 'user', content: 'And in Rome?' },
  );
  const whole = await (await send('/v1/messages', claudeBody(messages, { stream: false }))).json();
  assert.deepEqual(
    whole.content.filter((b) => b.type === 'tool_use').map((b) => b.input.city),
    ['Rome', 'Rome'],
  );
});

test('a person is asked if there is a tool for it, and what came back later is said', () => {
  const body = (...messages) => ({
    messages: [{ role: 'user', content: 'Ask Ada whether Friday suits her.' }, ...messages],
    tools: [{ type: 'function', function: { name: 'ask_person', parameters: {} } }],
  });
  const say = (...messages) => think(viewOf('openai-chat', body(...messages)));
  const [call] = say().calls;
  assert.deepEqual(call, { name: 'ask_person', arguments: { name: 'Ada', question: 'whether Friday suits her' } });
  const tool_calls = [{ id: 'call_1', function: { name: call.name, arguments: JSON.stringify(call.arguments) } }];
  const asked = { role: 'assistant', tool_calls };
  const result = (content) => ({ role: 'tool', tool_call_id: 'call_1', content });
  assert.match(say(asked, result('Pending: later.')).text, /^I have asked Ada\./);
  assert.equal(say(asked, result('Friday is fine.')).text, 'Ada answered: "Friday is fine."');
  const late = {
    role: 'user',
    content: '[Late output of a tool, not written by the user] The call returned:\nFriday is fine.',
  };
  assert.equal(say(asked, result('Pending: later.'), late).text, 'The answer has come: "Friday is fine."');
});

test('a single tool is called with different arguments', async () => {
  const { send } = lane();
  const body = chatBody([{ role: 'user', content: 'hi' }], { stream: false, stream_options: undefined });
  body.tools.length = 1;
  const { choices } = await (await send('/v1/chat/completions', body)).json();
  const given = choices[0].message.tool_calls.map((c) => c.function.arguments);
  assert.equal(new Set(given).size, 2);
});

test('records every body, rejected ones too, and no secret', async () => {
  const { base, control } = lane();
  const headers = { authorization: 'Bearer sk-secret', 'content-type': 'application/json' };
  const bad = await fetch(`${base}/v1/chat/completions`, {
    method: 'POST',
    headers,
    body: '{"model":"m","messages":[{"role":"tool","tool_call_id":"x","content":""}]}',
  });
  assert.equal(bad.status, 400);
  assert.equal((await fetch(`${base}/v1/messages`, { method: 'POST', body: 'nonsense' })).status, 400);
  const [first, second] = await control('requests');
  assert.equal(first.status, 400);
  assert.match(first.error.error.message, /preceeding/);
  assert.equal(first.headers.authorization, 'present');
  assert.equal(first.headers['x-api-key'], 'absent');
  assert.ok(!JSON.stringify(first).includes('sk-secret'));
  assert.equal(first.body.messages[0].role, 'tool');
  assert.equal(second.bodyText, 'nonsense');
  await control('reset', {});
  assert.deepEqual(await control('requests'), []);
});

test('the steps of a script', async () => {
  const { send, control } = lane();
  const ask = () => send('/v1/chat/completions', chatBody([{ role: 'user', content: 'q' }]));
  const argued = { quote: 'a "b" \\ c', n: 1 };
  await control('script', {
    delayMs: 0,
    then: 'error',
    steps: [
      { status: 429, headers: { 'retry-after': '2' } },
      { text: 'one two three', pieces: 3 },
      {
        calls: [
          { id: 'mine', name: 'f', arguments: argued },
          { name: 'g', arguments: '{"raw": ' },
        ],
      },
      { text: 'x', calls: [{ name: 'f', arguments: { city: 'Paris' } }], finish: 'length' },
      { garbage: true },
      { garbage: 'sse' },
      { text: 'half', inBandError: { message: 'boom' } },
      { text: 'a b c d', cutClean: 3 },
      { text: 'hello', json: true },
      { status: 500 },
    ],
  });
  const limited = await ask();
  assert.equal(limited.status, 429);
  assert.equal(limited.headers.get('retry-after'), '2');
  assert.equal(readChat(await (await ask()).text()).text, 'one two three');
  const two = readChat(await (await ask()).text());
  assert.equal(two.calls[0].id, 'mine');
  assert.deepEqual(JSON.parse(two.calls[0].arguments), argued);
  assert.equal(two.calls[1].arguments, '{"raw": ');
  const short = readChat(await (await ask()).text());
  assert.equal(short.finish, 'length');
  assert.throws(() => JSON.parse(short.calls[0].arguments));
  const page = await ask();
  assert.match(page.headers.get('content-type'), /html/);
  await page.text();
  await (await ask()).text();
  const broken = readChat(await (await ask()).text());
  assert.deepEqual([broken.text, broken.error.message, broken.finish, broken.done], ['half', 'boom', null, false]);
  const ended = readChat(await (await ask()).text());
  assert.deepEqual([ended.text, ended.finish, ended.done], ['a b', null, false]);
  assert.equal((await (await ask()).json()).choices[0].message.content, 'hello');
  assert.equal((await ask()).status, 500);
  assert.equal((await ask()).status, 500, 'the script is used up');
});

test('a rejected request uses no step of the script', async () => {
  const { send, control } = lane();
  await control('script', { steps: [{ text: 'kept' }] });
  await (await send('/v1/messages', { model: 'm' })).text();
  const out = readClaude(await (await send('/v1/messages', claudeBody([{ role: 'user', content: 'q' }]))).text());
  assert.equal(out.blocks[0].text, 'kept');
});

test('anthropic: in-band error, cut by max_tokens, thinking', async () => {
  const { send, control } = lane();
  await control('script', {
    delayMs: 0,
    steps: [
      { text: 'half', inBandError: true },
      { calls: [{ name: 'f', arguments: { city: 'Paris' } }], finish: 'length' },
      { thinking: { text: 'hm', signature: 'sig' }, text: 'ok' },
    ],
  });
  const ask = async () => (await send('/v1/messages', claudeBody([{ role: 'user', content: 'q' }]))).text();
  assert.equal(readClaude(await ask()).error.type, 'overloaded_error');
  assert.match(await ask(), /"stop_reason":"max_tokens"/);
  assert.equal(readClaude(await ask()).blocks[0].signature, 'sig');
});

test('a cut stream breaks the connection', async () => {
  const { send, control } = lane();
  await control('script', {
    delayMs: 0,
    steps: [
      { text: 'a b c d', cut: 3 },
      { text: 'a b c d', cutBytes: 400 },
      { text: 'a', json: true, cut: 1 },
    ],
  });
  for (let i = 0; i < 3; i += 1) {
    await assert.rejects(
      (async () => (await send('/v1/chat/completions', chatBody([{ role: 'user', content: 'q' }]))).text())(),
    );
  }
  assert.deepEqual(
    (await control('requests')).map((r) => r.ended),
    ['cut', 'cut', 'cut'],
  );
});

test('a gate stops the stream after k chunks, and the client can disconnect meanwhile', async () => {
  const { send, control, base } = lane();
  await control('script', {
    delayMs: 0,
    steps: [{ text: 'a b c d', gate: 'g', atPiece: 2 }, { text: 'a b c d', gate: 'h', atPiece: 2 }, { hang: true }],
  });
  const text = send('/v1/chat/completions', chatBody([{ role: 'user', content: 'q' }])).then((r) => r.text());
  const [waits] = await until(async () => {
    const w = await control('waiting');
    return w.length && w;
  });
  assert.deepEqual([waits.kind, waits.name, waits.piece], ['gate', 'g', 2]);
  assert.equal((await control('gate/g/open', {})).released, 1);
  assert.equal(readChat(await text).text, 'a b c d');
  for (const kind of ['gate', 'hang']) {
    const stop = new AbortController();
    const left = fetch(`${base}/v1/chat/completions`, {
      method: 'POST',
      signal: stop.signal,
      body: JSON.stringify(chatBody([{ role: 'user', content: 'q' }])),
    }).then((r) => r.text());
    await until(async () => (await control('waiting')).some((w) => w.kind === kind));
    stop.abort();
    await assert.rejects(left);
    await until(async () => (await control('requests')).at(-1).ended === 'client-closed');
    assert.deepEqual(await control('waiting'), []);
  }
});

test('tool runs are counted and can be held', async () => {
  const { control } = lane();
  const run = (phase, callId) =>
    control('tool', { name: 'get_weather', callId, invocationId: `i-${callId}`, phase, arguments: { city: 'Oslo' } });
  const one = await run('start', 'c1');
  assert.equal(one.count, 1);
  assert.equal(one.result.city, 'Oslo');
  await control('hold', { name: 'get_weather', phase: 'start', ordinal: 2 });
  const held = run('start', 'c2');
  await until(async () => (await control('waiting')).some((w) => w.phase === 'start' && w.callId === 'c2'));
  assert.equal((await control('tools')).length, 2, 'counted before it hangs');
  assert.equal((await control('release', { name: 'get_weather', phase: 'start' })).released, 1);
  assert.deepEqual((await held).result, one.result);
  assert.equal((await run('start', 'c2')).countForCall, 2);
});

test('a model request can be held before it is answered', async () => {
  const { send, control } = lane();
  await control('hold', { phase: 'model', ordinal: 1 });
  const answer = send(
    '/v1/messages',
    claudeBody([{ role: 'user', content: 'q' }], { tools: undefined, stream: false }),
  );
  await until(async () => (await control('waiting')).some((w) => w.kind === 'model'));
  await control('release', { phase: 'model' });
  assert.match((await (await answer).json()).content[0].text, /You said: "q"/);
});

test('any origin may call, with any header', async () => {
  const { base } = lane();
  const pre = await fetch(`${base}/v1/messages`, {
    method: 'OPTIONS',
    headers: { 'access-control-request-headers': 'x-api-key, anthropic-version' },
  });
  assert.equal(pre.status, 204);
  assert.equal(pre.headers.get('access-control-allow-headers'), 'x-api-key, anthropic-version');
  const out = await fetch(`${base}/control/requests`);
  assert.equal(out.headers.get('access-control-allow-origin'), '*');
  assert.match(out.headers.get('access-control-expose-headers'), /retry-after/);
});

test('mounts in another server', async () => {
  const { handle, state } = createStandIn({ base: '/model' });
  const host = http.createServer(async (req, res) => {
    if (!(await handle(req, res))) res.end('page');
  });
  await new Promise((r) => host.listen(0, '127.0.0.1', r));
  const url = `http://127.0.0.1:${host.address().port}`;
  assert.equal(await (await fetch(`${url}/index.html`)).text(), 'page');
  assert.deepEqual(await (await fetch(`${url}/model/lane/a/control/tools`)).json(), []);
  state.dispose();
  host.closeAllConnections();
  await new Promise((r) => host.close(r));
});
