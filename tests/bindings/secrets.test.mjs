// R68: a credential given to the host appears nowhere else. A real server quotes it in every form; in Node, with
// sessions in memory. tests/browser does the same in Chromium and reads the database.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import * as rethread from 'rethread';
import { drive } from 'rethread/host';
import { PLAIN_HEADERS } from '../../js/credentials.js';
import { CASES, startEcho } from './echo.mjs';
import { DIALECTS, KEYS, checkResumed, formsOf, resumed, seen, textOf } from './scenarios/secrets.mjs';

let echo;
before(async () => {
  echo = await startEcho();
});
after(() => echo.close());

const HEADERS = {
  authorization: (key) => ({ Authorization: `Bearer ${key}` }),
  'x-api-key': (key) => ({ 'x-api-key': key }),
  'a header of its own': (key) => ({ 'x-mine': key }),
  'a function': (key) => async () => new Headers({ 'x-api-key': key }),
};

function holdsNone(text, key, what) {
  for (const form of formsOf(key))
    assert.ok(
      !text.includes(form),
      `${what}: ${text.slice(Math.max(0, text.indexOf(form) - 80), text.indexOf(form) + 80)}`,
    );
}

const look = (given) => seen({ rethread, drive }, { store: 'memory', name: 'secrets', ...given });

for (const dialect of DIALECTS) {
  describe(`r68: ${dialect}: a key that the server quotes appears nowhere`, { concurrency: 4 }, () => {
    for (const name of Object.keys(CASES)) {
      test(name, { timeout: 20_000 }, async () => {
        for (const [form, key] of Object.entries(KEYS)) {
          for (const [header, headers] of Object.entries(HEADERS)) {
            const facts = await look({ dialect, url: `${echo.url}/case/${dialect}/${name}`, headers: headers(key) });
            assert.equal(facts.status, 'failed', `${form}, ${header}: ${facts.text}`);
            assert.equal(facts.pending, 1);
            holdsNone(facts.text, key, `${form}, ${header}`);
          }
        }
      });
    }

    test('the redacted error still states the reason', async () => {
      const facts = await look({
        dialect,
        url: `${echo.url}/case/${dialect}/json`,
        headers: { 'x-api-key': KEYS.plain },
      });
      assert.match(facts.message, /the provider answered 400: Incorrect API key: \[redacted\]\./);
      assert.deepEqual(facts.details, { status: 400, providerCode: '[redacted]' });
      const streamed = await look({
        dialect,
        url: `${echo.url}/case/${dialect}/stream-error-split`,
        headers: { 'x-api-key': KEYS.plain },
      });
      assert.match(streamed.message, /Incorrect API key: \[redacted\]/);
      assert.ok(streamed.events.includes('error') && streamed.events.includes('message_started'));
    });

    test('an answer of the model is unchanged, streamed or not', async () => {
      for (const key of Object.values(KEYS)) {
        for (const stream of [true, false]) {
          const { status, answer } = await look({
            dialect,
            stream,
            url: `${echo.url}/answer/${dialect}`,
            headers: { 'x-api-key': key },
          });
          assert.deepEqual([status, answer], ['finished', `You said ${key}`]);
        }
      }
    });
  });
}

for (const dialect of DIALECTS) {
  test(`r68: ${dialect}: credentials in params are sent, stored nowhere, and required again at a resume`, async () => {
    for (const key of [KEYS.plain, KEYS.known, KEYS.escaped]) {
      const facts = await resumed({ rethread, drive }, { store: 'memory', dialect, url: `${echo.url}/v1`, key });
      checkResumed(assert, facts, dialect);
      holdsNone(facts.text, key, 'params');
    }
  });
}

test('r68: `provider.headers` accepts headers known to hold no credential, and those in `allowHeaders`', async () => {
  const client = await rethread.open({ store: 'memory' });
  const session = await client.session('s');
  const asked = (headers, more) =>
    session.run({ input: 'x', provider: { ...provider('/answer/openai-chat'), headers, ...more } });
  for (const name of PLAIN_HEADERS) {
    const run = await asked({ [name]: 'some value' });
    await run.cancel();
  }
  const refuses = (headers, more) =>
    assert.rejects(
      asked(headers, more),
      (error) =>
        error.code === 'config_invalid' &&
        !textOf(error).includes(KEYS.plain) &&
        /`headers` of `drive`/.test(error.message),
    );
  for (const name of ['x-mine', 'x-key-id', 'Helicone-User', 'authorization']) await refuses({ [name]: KEYS.plain });
  await (await asked({ 'X-Mine': 'a' }, { allowHeaders: ['x-mine'] })).cancel();
  await refuses({ authorization: KEYS.plain }, { allowHeaders: ['authorization'] });
  await refuses({ 'x-mine': `Bearer ${KEYS.plain}` }, { allowHeaders: ['x-mine'] });
  for (const allowHeaders of ['x-mine', [5], { a: 1 }])
    await assert.rejects(asked({}, { allowHeaders }), { code: 'config_invalid' });
  await client.close();
});

test('r68: a URL with a credential or a fragment is rejected and not quoted', async () => {
  const client = await rethread.open({ store: 'memory' });
  const session = await client.session('s');
  for (const url of [
    `https://me:${KEYS.plain}@h/v1`,
    `https:${KEYS.plain}@h`,
    `https://h/v1?appKey=${KEYS.plain}`,
    `https://h/v1?x=1#${KEYS.plain}`,
    `https://h/v1?%74oken=${KEYS.plain}`,
    `https://h/\n@${KEYS.plain}`,
  ]) {
    await assert.rejects(
      session.run({ input: 'x', provider: { ...provider(''), url } }),
      (error) => error.code === 'config_invalid' && !textOf(error).includes(KEYS.plain),
    );
  }
  assert.deepEqual(await client.pendingRuns(), []);
  await client.close();
});

const provider = (path) => ({
  dialect: 'openai-chat',
  url: `${echo.url}${path}`,
  params: { model: 'm' },
  stream: true,
});
const once = { retry: { attempts: 1 } };

async function driven(path, options, request = {}) {
  const client = await rethread.open({ store: 'memory' });
  const session = await client.session('s');
  const run = await session.run({ input: 'x', provider: provider(path), ...once, ...request });
  const events = [];
  const driving = drive(run, options);
  for await (const event of driving) events.push(event);
  const result = await driving.result;
  const text = textOf([
    events,
    result,
    await client.pendingRuns(),
    await session.messages(),
    await session.invocations({ payload: true }),
  ]);
  await client.close();
  return { result, text };
}

for (const status of [301, 302, 303, 307, 308]) {
  test(`r68: a redirect by ${status} to another host is not followed, and the error reports it`, async () => {
    const before = echo.other.length;
    for (const headers of Object.values(HEADERS)) {
      const { result, text } = await driven(
        `/redirect/${status}`,
        { headers: headers(KEYS.plain) },
        { retry: { attempts: 3, backoffMs: 1 } },
      );
      assert.equal(result.status, 'failed');
      assert.match(result.error.message, /redirect.*`provider\.url`/);
      assert.equal(result.error.details.hostCode, 'redirect');
      assert.doesNotMatch(text, /retrying/);
      holdsNone(text, KEYS.plain, 'a redirect');
    }
    assert.equal(echo.other.length, before, 'the other host was asked');
  });
}

test('r68: a redirect that the platform returns as a response is the same error', async () => {
  for (const response of [
    new Response(null, { status: 302, headers: { location: 'https://h/' } }),
    { type: 'opaqueredirect', status: 0, headers: [], body: null },
  ]) {
    const { result } = await driven('/', { headers: { 'x-api-key': KEYS.plain }, fetch: async () => response });
    assert.match(result.error.message, /the server answered with a redirect: redirects are not followed/);
  }
});

test('a response with chunks that are not bytes fails the run', async () => {
  for (const piece of ['data: x\n\n', undefined, 5, [1, 2]]) {
    const body = () =>
      new ReadableStream({
        start: (controller) => {
          controller.enqueue(piece);
          controller.close();
        },
      });
    const fetch = async () => ({ status: 200, headers: [], body: body() });
    for (const headers of [undefined, { 'x-api-key': KEYS.plain }]) {
      const { result } = await driven('/', { headers, fetch });
      assert.equal(result.status, 'failed');
      assert.match(result.error.message, /the response bytes must be a Uint8Array/);
    }
  }
});

test('r12: if a call is redacted, the error of a pending run does not quote the provider', async () => {
  const calling = async (url, init) => {
    if (new TextDecoder().decode(init.body).includes('tool_call_id'))
      return new Response(JSON.stringify({ error: { message: 'wrong: pin pin-of-eva' } }), { status: 400 });
    const delta = {
      tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{"pin":"pin-of-eva"}' } }],
    };
    return new Response(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: 'tool_calls' }] })}\n\ndata: [DONE]\n\n`,
      { headers: { 'content-type': 'text/event-stream' } },
    );
  };
  const client = await rethread.open({ store: 'memory' });
  const session = await client.session('s');
  for (const [persist, quotes] of [
    [() => null, false],
    [() => ({ arguments: {} }), false],
    [
      () => {
        throw new Error('no');
      },
      false,
    ],
    [() => ({}), true],
  ]) {
    const run = await session.run({
      input: 'x',
      provider: provider('/'),
      tools: { f: { parameters: { type: 'object', properties: {} }, execute: () => 1, persist } },
    });
    const result = await drive(run, { fetch: calling }).result;
    assert.match(result.error.message, /pin-of-eva/, 'who drives it is told');
    const pending = (await client.pendingRuns()).find(({ id }) => id === run.id);
    assert.equal(pending.error.code, 'model_error');
    assert.equal(/pin-of-eva/.test(textOf(pending)), quotes);
  }
  await client.close();
});

test('r68: the key is removed from an error of fetch and from its causes', async () => {
  const headers = { authorization: `Bearer ${KEYS.plain}` };
  const failing = async (url, init) => {
    const error = new TypeError(`bad header ${init.headers.authorization}`, {
      cause: new Error(`of ${KEYS.plain}`, { cause: `\n${KEYS.plain}` }),
    });
    throw Object.assign(error, { code: `E_${KEYS.plain}` });
  };
  const { result, text } = await driven('/answer/openai-chat', { headers, fetch: failing });
  assert.match(
    result.error.message,
    /could not be reached: bad header \[redacted\] \(of \[redacted\]; \n\[redacted\]\)/,
  );
  holdsNone(text, KEYS.plain, 'a failed fetch');
  // Node's own error quotes a value that is no header's.
  const invalid = await driven('/answer/openai-chat', {
    headers: { authorization: `Bearer ${KEYS.plain}\n${KEYS.plain}` },
  });
  assert.equal(invalid.result.status, 'failed');
  holdsNone(invalid.text, KEYS.plain, 'a header that is none');
});

test('r68: only plain words of an error of `headers` are repeated, since the key is not known yet', async () => {
  for (const key of Object.values(KEYS)) {
    const headers = async () => {
      throw Object.assign(new RangeError(`not signed in: no token for ${key} (${key})`), { cause: `\n${key}` });
    };
    const { result, text } = await driven('/answer/openai-chat', { headers });
    assert.match(result.error.message, /`headers` of `drive` threw: not signed in: no token for/);
    assert.equal(result.error.details.hostCode, 'RangeError');
    holdsNone(text, key, 'an error of headers');
  }
  for (const wrong of ['Bearer x', 7, () => 'Bearer x']) {
    const said = await driven('/answer/openai-chat', { headers: wrong });
    assert.match(said.result.error.message, /an object of strings/);
  }
});

test('r68: the key is removed from the error of a tool', async () => {
  const calling = async (url, init) => {
    const isFirst = !new TextDecoder().decode(init.body).includes('tool_call_id');
    const delta = isFirst
      ? { tool_calls: [{ index: 0, id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }] }
      : { content: 'Done.' };
    return new Response(
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: isFirst ? 'tool_calls' : 'stop' }] })}\n\ndata: [DONE]\n\n`,
      { headers: { 'content-type': 'text/event-stream' } },
    );
  };
  const tools = {
    f: {
      parameters: { type: 'object', properties: {} },
      execute: () => {
        throw new Error(`401 for "${KEYS.plain}"`);
      },
    },
  };
  const { result, text } = await driven(
    '/answer/openai-chat',
    { headers: { authorization: `Bearer ${KEYS.plain}` }, fetch: calling },
    { tools },
  );
  assert.equal(result.status, 'finished');
  assert.match(text, /Error: 401 for "\[redacted\]"/);
  holdsNone(text, KEYS.plain, "a tool's error");
});

test("a header that occurs twice in different case is sent once, with the host's value", async () => {
  let sent;
  const fetch = async (url, init) => {
    sent = init;
    return globalThis.fetch(url, init);
  };
  await driven('/answer/openai-chat', {
    headers: { 'Content-Type': 'application/json; charset=utf-8', 'X-Mine': KEYS.plain, 'x-none': undefined },
    fetch,
  });
  assert.deepEqual(sent.headers, { 'content-type': 'application/json; charset=utf-8', 'x-mine': KEYS.plain });
  assert.equal(sent.redirect, 'error');
});
