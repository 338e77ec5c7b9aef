// The limits of `drive`: events that nobody reads, responses that arrive too fast, tools in parallel, timeouts, names
// of tools.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';

const PROVIDER = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' }, stream: true };
const parameters = { type: 'object', properties: {} };
const encoder = new TextEncoder();
const chunk = (delta, finish_reason = null) =>
  encoder.encode(
    `data: ${JSON.stringify({ id: 'r', object: 'chat.completion.chunk', model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
  );
const callChunk = (index, name) =>
  chunk({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name, arguments: '{}' } }] });
const END = encoder.encode('data: [DONE]\n\n');

/** A `fetch` that answers each request with the next list of chunks; the last one answers all others. */
function fetchOf(...answers) {
  const bodies = [];
  const fetch = async (_, { body }) => {
    bodies.push(JSON.parse(new TextDecoder().decode(body)));
    const chunks = answers[Math.min(bodies.length, answers.length) - 1];
    const stream = Array.isArray(chunks) ? ReadableStream.from(chunks) : chunks;
    return new Response(stream, { headers: { 'content-type': 'text/event-stream' } });
  };
  return { fetch, bodies };
}
const TEXT = [chunk({ content: 'Done.' }), chunk({}, 'stop'), END];
const callsOf = (...names) => [...names.map((name, index) => callChunk(index, name)), chunk({}, 'tool_calls'), END];

async function runOf(request = {}) {
  const session = await (await open({ store: 'memory' })).session('s');
  return session.run({ input: 'x', provider: PROVIDER, retry: { attempts: 1 }, ...request });
}

/** Lets everything run that waits for no timer. */
async function turns(count = 50) {
  for (let turn = 0; turn < count; turn += 1) await new Promise(setImmediate);
}

async function turnsUntil(isReached) {
  for (let turn = 0; !isReached(); turn += 1) {
    assert.ok(turn < 20_000, `not reached: ${isReached}`);
    await turns(1);
  }
}

test('deltas that nobody reads are joined, in their order', { timeout: 30_000 }, async () => {
  const COUNT = 2_000;
  const pieces = Array.from({ length: COUNT }, (_, at) => `${at} `);
  const answer = [...pieces.map((content) => chunk({ content })), chunk({}, 'stop'), END];
  const driven = drive(await runOf(), { fetch: fetchOf(answer).fetch });
  assert.equal((await driven.result).text, pieces.join(''));
  const events = [];
  for await (const event of driven) events.push(event);
  assert.ok(events.length < 20, `${events.length} events`);
  assert.deepEqual(
    events.filter(({ type }) => type === 'text_delta').map(({ text }) => text),
    [pieces.join('')],
  );
  assert.equal(events.at(-1).type, 'finished');
});

test('deltas of different calls and messages are not joined', async () => {
  const part = (index, json) => chunk({ tool_calls: [{ index, function: { arguments: json } }] });
  const begin = (index) =>
    chunk({ tool_calls: [{ index, id: `call_${index}`, type: 'function', function: { name: 'f', arguments: '' } }] });
  const answer = [
    chunk({ content: 'One ' }),
    chunk({ content: 'text.' }),
    begin(0),
    begin(1),
    part(0, '{"a"'),
    part(1, '{"b"'),
    part(0, ':1}'),
    part(1, ':2}'),
    chunk({}, 'tool_calls'),
    END,
  ];
  const asked = [];
  const tools = { f: { parameters, execute: (args) => asked.push(args) } };
  const driven = drive(await runOf({ tools }), { fetch: fetchOf(answer, TEXT).fetch });
  await driven.result;
  const events = [];
  for await (const event of driven) events.push(event);
  assert.deepEqual(asked, [{ a: 1 }, { b: 2 }]);
  assert.deepEqual(
    events.filter(({ type }) => type === 'text_delta').map(({ text }) => text),
    ['One text.', 'Done.'],
  );
  const json = new Map();
  for (const event of events.filter(({ type }) => type === 'tool_arguments_delta'))
    json.set(event.callId, (json.get(event.callId) ?? '') + event.json);
  assert.deepEqual(
    [...json],
    [
      ['call_0', '{"a":1}'],
      ['call_1', '{"b":2}'],
    ],
  );
});

test('a response is read only as fast as the run takes its bytes', { timeout: 30_000 }, async () => {
  let pulled = 0;
  const source = new ReadableStream(
    {
      pull(controller) {
        pulled += 1;
        if (pulled <= 1000) controller.enqueue(chunk({ content: `${pulled} ` }));
        else if (pulled === 1001) controller.enqueue(chunk({}, 'stop'));
        else controller.close();
      },
    },
    { highWaterMark: 0 },
  );
  const run = await runOf();
  const { feed } = run;
  let release;
  const released = new Promise((resolve) => {
    release = resolve;
  });
  let fed = 0;
  run.feed = async (...args) => {
    fed += 1;
    if (fed >= 4) await released;
    return feed.apply(run, args);
  };
  const { result } = drive(run, { fetch: fetchOf(source).fetch });
  await turnsUntil(() => fed >= 4);
  await turns();
  assert.ok(pulled <= 6, `${pulled} chunks were read, the run took 3`);
  release();
  assert.equal((await result).status, 'finished');
});

test('an abort while tools wait for their turn: none of them starts, and the running one is told', {
  timeout: 10_000,
}, async () => {
  const stop = new AbortController();
  const started = [];
  const aborted = [];
  const execute = (_, { callId, signal }) => {
    started.push(callId);
    signal.addEventListener('abort', () => aborted.push(callId));
    setImmediate(() => stop.abort());
    return new Promise(() => {});
  };
  const run = await runOf({ tools: { f: { parameters, execute } } });
  const { status } = await drive(run, {
    fetch: fetchOf(callsOf('f', 'f', 'f')).fetch,
    toolConcurrency: 1,
    signal: stop.signal,
  }).result;
  await turns();
  assert.deepEqual([status, started, aborted], ['cancelled', ['call_0'], ['call_0']]);
});

test('r62 headers that never settle are as a silent provider, and nothing counts as sent', {
  timeout: 10_000,
}, async () => {
  const silent = () => new Promise(() => {});
  const answers = [];
  const outcomeOf = async (options) => {
    const run = await runOf();
    const answer = run.answer.bind(run);
    run.answer = (effect, given) => {
      answers.push(given);
      return answer(effect, given);
    };
    const { status, error } = await drive(run, { idleTimeoutMs: 50, ...options }).result;
    return { status, code: error.code, details: error.details };
  };
  let sent = 0;
  const withoutHeaders = await outcomeOf({
    headers: silent,
    fetch: () => {
      sent += 1;
    },
  });
  assert.deepEqual(withoutHeaders, await outcomeOf({ fetch: silent }));
  assert.deepEqual(
    [withoutHeaders.status, withoutHeaders.code, withoutHeaders.details.hostCode],
    ['failed', 'model_error', 'TimeoutError'],
  );
  assert.equal(sent, 0);
  assert.match(answers[0].error.message, /`headers` of `drive`.*50 ms/);
  assert.deepEqual(
    answers.map((given) => given.sent),
    [false, undefined],
  );
});

test('r62 headers that settle too late change nothing, and the next attempt asks again', {
  timeout: 10_000,
}, async () => {
  let asked = 0;
  const headers = async () => {
    asked += 1;
    if (asked === 1)
      await new Promise((resolve) => {
        setTimeout(resolve, 120);
      });
    if (asked === 1) throw new Error('too late');
    return {};
  };
  const { fetch, bodies } = fetchOf(TEXT);
  const { status } = await drive(await runOf({ retry: { attempts: 2 } }), { headers, fetch, idleTimeoutMs: 50 }).result;
  assert.deepEqual([status, asked, bodies.length], ['finished', 2, 1]);
});

test('`idleTimeoutMs` counts from the last bytes, not from the beginning', { timeout: 10_000 }, async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  for (const [pauses, expected] of [
    [[900, 900, 900], 'finished'],
    [[900, 1001], 'failed'],
  ]) {
    let controller;
    const source = new ReadableStream({
      start: (own) => {
        controller = own;
      },
    });
    const { result } = drive(await runOf(), { fetch: fetchOf(source).fetch, idleTimeoutMs: 1000 });
    for (const ms of pauses) {
      await turns();
      controller.enqueue(chunk({ content: 'x' }));
      await turns();
      t.mock.timers.tick(ms);
    }
    await turns();
    if (expected === 'finished') {
      controller.enqueue(chunk({}, 'stop'));
      controller.close();
    }
    const { status, error } = await result;
    assert.equal(status, expected);
    if (expected === 'failed') assert.match(error.message, /nothing was received for 1000 ms/);
  }
});

test('a tool that takes longer than `toolTimeoutMs` fails; its signal aborts and its late result is ignored', {
  timeout: 10_000,
}, async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] });
  let finish;
  let context;
  const execute = (_, given) => {
    context = given;
    return new Promise((resolve) => {
      finish = resolve;
    });
  };
  const { fetch, bodies } = fetchOf(callsOf('f'), TEXT);
  const driven = drive(await runOf({ tools: { f: { parameters, execute } } }), { fetch, toolTimeoutMs: 1000 });
  await turnsUntil(() => finish);
  t.mock.timers.tick(999);
  await turns();
  assert.equal(context.signal.aborted, false);
  t.mock.timers.tick(1);
  await turns();
  assert.equal(context.signal.aborted, true);
  finish('too late');
  assert.equal((await driven.result).status, 'finished');
  const results = [];
  for await (const event of driven) if (event.type === 'tool_finished') results.push(event);
  assert.deepEqual(
    results.map(({ isError }) => isError),
    [true],
  );
  assert.match(bodies[1].messages.at(-1).content, /did not return within 1000 ms/);
});

test('a limit that is longer than any timer does not fail at once; `Infinity` is no limit', {
  timeout: 10_000,
}, async () => {
  for (const ms of [Infinity, 2 ** 31, 1e12]) {
    const execute = async () => {
      await turns(5);
      return 'ran';
    };
    const { fetch, bodies } = fetchOf(callsOf('f'), TEXT);
    const run = await runOf({ tools: { f: { parameters, execute } } });
    const slowly = async (...request) => {
      await turns(5);
      return fetch(...request);
    };
    const { status } = await drive(run, { fetch: slowly, toolTimeoutMs: ms, idleTimeoutMs: ms }).result;
    assert.deepEqual([status, bodies[1].messages.at(-1).content], ['finished', 'ran']);
  }
});

test('a `TimeoutError` of the tool itself is its own message', { timeout: 10_000 }, async () => {
  for (const options of [{}, { toolTimeoutMs: 60_000 }]) {
    const execute = () => {
      throw new DOMException('the weather service is slow', 'TimeoutError');
    };
    const { fetch, bodies } = fetchOf(callsOf('f'), TEXT);
    const run = await runOf({ tools: { f: { parameters, execute } } });
    assert.equal((await drive(run, { fetch, ...options }).result).status, 'finished');
    assert.equal(bodies[1].messages.at(-1).content, 'Error: the weather service is slow');
  }
});

const INHERITED = ['constructor', '__proto__', 'toString', 'hasOwnProperty', 'valueOf'];

test('names of members that every object inherits are no tools', { timeout: 10_000 }, async () => {
  let ran = 0;
  const { fetch, bodies } = fetchOf(callsOf(...INHERITED), TEXT);
  const driven = drive(
    await runOf({
      tools: {
        f: {
          parameters,
          execute: () => {
            ran += 1;
          },
        },
      },
    }),
    { fetch },
  );
  assert.deepEqual([(await driven.result).status, ran], ['finished', 0]);
  const results = bodies[1].messages.filter(({ role }) => role === 'tool');
  assert.equal(results.length, INHERITED.length);
  for (const { content } of results) assert.match(content, /there is no tool/);
});

test('tools can have those names', { timeout: 10_000 }, async () => {
  const ran = [];
  const tools = Object.fromEntries(
    INHERITED.map((name) => [
      name,
      {
        parameters,
        execute: () => {
          ran.push(name);
          return name;
        },
      },
    ]),
  );
  assert.deepEqual(Object.keys(tools), INHERITED);
  const { fetch, bodies } = fetchOf(callsOf(...INHERITED), TEXT);
  assert.equal((await drive(await runOf({ tools }), { fetch }).result).status, 'finished');
  assert.deepEqual(ran.sort(), [...INHERITED].sort());
  assert.deepEqual(
    bodies[1].messages.filter(({ role }) => role === 'tool').map(({ content }) => content),
    INHERITED,
  );
});

test('an inherited tool is not offered and not executed', { timeout: 10_000 }, async () => {
  const ran = [];
  const tool = (name) => ({
    parameters,
    execute: () => {
      ran.push(name);
      return name;
    },
  });
  const tools = Object.create({ f: tool('inherited f'), g: tool('inherited g') });
  tools.f = tool('f');
  const { fetch, bodies } = fetchOf(callsOf('f', 'g'), TEXT);
  const run = await runOf({ tools });
  // From here on the name denotes what the application answers itself, and not what is left on the prototype.
  delete tools.f;
  const driven = drive(run, { fetch });
  await turnsUntil(() => run.effects().some(({ type }) => type === 'run_tool'));
  await turns();
  assert.deepEqual(ran, []);
  await run.answer(run.effects()[0].id, { type: 'tool_result', content: 'answered' });
  assert.equal((await driven.result).status, 'finished');
  assert.deepEqual(
    bodies[0].tools.map(({ function: { name } }) => name),
    ['f'],
  );
  assert.match(bodies[1].messages.at(-1).content, /there is no tool "g"/);
});
