// Everything that goes wrong in a turn. Each case: a good turn, the faulty one, a good one again. `run` gives facts, in
// a page or in Node; `check` judges them.

import { control, finish, plainMessages, plainTools, providerOf, sleep, until } from './kit.mjs';

const CALL = { calls: [{ name: 'get_weather', arguments: { city: 'Oslo' } }] };
const LAST = { text: 'That is all.' };

/** The frame of a case. `steps` is the script of the faulty turn; `turn(context)` may replace the plain drive. */
async function around(
  { steps = [], tools = plainTools(), request = {}, options = {}, turn, sessionOptions },
  { rethread, drive },
  env,
) {
  const client = await rethread.open({ store: env.store, name: env.name });
  const session = await client.session(env.name, sessionOptions);
  const ask = async (input, extra = {}) =>
    session.run({ input, provider: providerOf(env), tools: plainTools(), ...extra });
  await control.script(env, [CALL, LAST]);
  const first = await finish(drive, await ask('Weather in Oslo?'));
  const before = await plainMessages(session);
  const from = (await control.requests(env)).length;

  await control.script(env, steps);
  const startedAt = Date.now();
  const faulty = turn
    ? await turn({
        client,
        session,
        ask: (extra) => ask('And now?', { tools, retry: { backoffMs: 1 }, ...request, ...extra }),
        drive,
        env,
      })
    : await finish(drive, await ask('And now?', { tools, retry: { backoffMs: 1 }, ...request }), options);
  const after = await plainMessages(session);
  const pending = (await session.pendingRuns()).map(({ state, error, text }) => ({
    state,
    code: error?.code ?? null,
    text,
  }));
  const modelRequests = (await control.requests(env)).slice(from).map(({ status, at, ended, body }) => ({
    status,
    at,
    ended,
    body: JSON.stringify(body).length > 100_000 ? null : body,
  }));

  await control.script(env, [CALL, LAST]);
  const last = await finish(drive, await ask('Once more: Oslo?'));
  const refused = (await control.requests(env)).filter(({ ended }) => ended === 'refused').map(({ error }) => error);
  const { items: calls } = await session.invocations({ payload: true, limit: 1000 });
  const facts = {
    good: [first.result.status, last.result.status],
    before,
    after,
    added: after.slice(before.length),
    pending,
    modelRequests,
    refused,
    status: faulty.result.status,
    error: faulty.result.error,
    text: faulty.result.text,
    saved: faulty.result.saved,
    types: faulty.events.map(({ type }) => type),
    retries: faulty.events.filter(({ type }) => type === 'retrying'),
    finished: faulty.events
      .filter(({ type }) => type === 'tool_finished')
      .map(({ isError, result }) => ({ isError, result: JSON.stringify(result ?? null).slice(0, 300) })),
    warnings: faulty.events.filter(({ type }) => type === 'warning').map(({ finding }) => finding.code),
    calls: calls
      .toSorted((a, b) => a.turn - b.turn || a.roundIndex - b.roundIndex || a.sequenceIndex - b.sequenceIndex)
      .map(({ name, status, result }) => ({ name, status, isError: result?.isError ?? null })),
    more: faulty.more ?? null,
    startedAt,
  };
  await client.close();
  return facts;
}

/** What holds whatever went wrong. */
function sound(assert, facts) {
  assert.deepEqual(facts.good, ['finished', 'finished'], 'the turns around it work');
  assert.deepEqual(facts.refused, [], 'every request is valid');
  assert.deepEqual(facts.after.slice(0, facts.before.length), facts.before, 'what was stored before is as it was');
}

function failed(assert, facts, { requests, code = 'model_error', pattern } = {}) {
  sound(assert, facts);
  assert.equal(facts.status, 'failed');
  assert.equal(facts.error.code, code);
  if (pattern) assert.match(facts.error.message, pattern);
  assert.deepEqual(facts.added, [], 'R15: a failed turn leaves history as it was');
  assert.equal(facts.saved, false);
  if (requests !== undefined) assert.equal(facts.modelRequests.length, requests);
  assert.deepEqual(
    facts.pending.map(({ state, code: own }) => [state, own]),
    [['failed', code]],
  );
}

function cancelled(assert, facts, { requests } = {}) {
  sound(assert, facts);
  assert.equal(facts.status, 'cancelled');
  assert.equal(facts.error, null, 'what the user asked for is no error');
  assert.deepEqual(facts.added, [], 'R15: an aborted turn leaves history as it was');
  assert.deepEqual(facts.pending, []);
  if (requests !== undefined) assert.equal(facts.modelRequests.length, requests);
}

function finished(assert, facts) {
  sound(assert, facts);
  assert.equal(facts.status, 'finished', JSON.stringify(facts.error));
  assert.equal(facts.saved, true);
  assert.deepEqual(facts.pending, []);
}

/** Aborts when the stream hangs at its gate. */
const abortAtGate =
  (request = {}) =>
  async ({ ask, drive, env }) => {
    const stop = new AbortController();
    const driven = drive(await ask(request), { signal: stop.signal });
    await until(async () => (await control.waiting(env)).some(({ kind }) => kind === 'gate'));
    await sleep(30); // what was sent before the gate arrives
    stop.abort();
    const result = await driven.result;
    const events = [];
    for await (const event of driven) events.push(event);
    return { result, events };
  };

const GATED = { text: 'One two three four five six.', gate: 'never', atPiece: 3 };

/** A tool that says when it runs and when it was told to stop. */
function hangingTools(seen) {
  const tools = plainTools();
  tools.get_weather.execute = (_, { signal }) => {
    seen.started = true;
    signal.addEventListener('abort', () => {
      seen.aborted = true;
    });
    return new Promise(() => {});
  };
  return tools;
}

const abortInTool =
  (request = {}) =>
  async ({ ask, drive }) => {
    const stop = new AbortController();
    const seen = { started: false, aborted: false };
    const driven = drive(await ask({ tools: hangingTools(seen), ...request }), { signal: stop.signal });
    await until(() => seen.started);
    stop.abort();
    const result = await driven.result;
    await sleep(0);
    const events = [];
    for await (const event of driven) events.push(event);
    return { result, events, more: seen };
  };

const withTool = (execute) => ({ ...plainTools(), get_weather: { ...plainTools().get_weather, execute } });

const CASES = [
  {
    name: '500 again and again',
    plan: {
      steps: [500, 500, 500, 500].map((status) => ({ status })),
      request: { retry: { attempts: 3, backoffMs: 20 } },
    },
    check(assert, facts) {
      failed(assert, facts, { requests: 3, pattern: /500/ });
      assert.equal(facts.retries.length, 2);
      assert.ok(facts.modelRequests[2].at - facts.modelRequests[1].at >= 38, 'the second wait is twice as long');
    },
  },
  {
    name: '500 once',
    plan: { steps: [{ status: 500 }, LAST] },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.modelRequests.length, 2);
      assert.equal(facts.retries[0].error.code, 'model_error');
      assert.equal(facts.retries[0].attempt, 2);
    },
  },
  {
    name: 'r60 429 with Retry-After is waited for, once',
    plan: { steps: [{ status: 429, headers: { 'retry-after': '1' } }, LAST] },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.modelRequests.length, 2, 'no busy loop');
      assert.ok(
        facts.modelRequests[1].at - facts.modelRequests[0].at >= 990,
        `asked again after ${facts.modelRequests[1].at - facts.modelRequests[0].at} ms`,
      );
      assert.equal(facts.retries.length, 1);
      const { at } = facts.retries[0];
      assert.ok(at >= facts.startedAt + 990 && at <= facts.modelRequests[1].at + 20, 'the event says when');
    },
  },
  {
    name: 'r60 retry-after-ms, then a final rejection',
    plan: {
      steps: [
        { status: 429, headers: { 'retry-after-ms': '60' } },
        { status: 400, message: 'no such model' },
      ],
    },
    check(assert, facts) {
      failed(assert, facts, { requests: 2, pattern: /no such model/ });
      assert.ok(facts.modelRequests[1].at - facts.modelRequests[0].at >= 58);
    },
  },
  {
    name: 'a key that the provider quotes is in no error',
    plan: { steps: [{ status: 401, message: 'Incorrect API key provided: sk-abcdefghijklmnop.' }] },
    check(assert, facts) {
      failed(assert, facts, { requests: 1, pattern: /401/ });
      assert.doesNotMatch(JSON.stringify(facts), /abcdefghijklmnop/);
    },
  },
  ...['html', 'sse', 'json'].map((garbage) => ({
    name: `garbage: ${garbage}`,
    plan: { steps: [{ garbage }], request: { retry: { attempts: 1 } } },
    check: (assert, facts) => failed(assert, facts, { requests: 1 }),
  })),
  ...[{ cut: 0 }, { cut: 3 }, { cutBytes: 700 }, { cutClean: 3 }].map((cut) => ({
    name: `a stream cut by ${JSON.stringify(cut)}`,
    plan: { steps: [{ text: 'One two three four five six seven.', ...cut }], request: { retry: { attempts: 1 } } },
    check: (assert, facts) => failed(assert, facts, { requests: 1 }),
  })),
  {
    name: 'a stream cut inside a call: the tool does not run',
    plan: {
      steps: [{ calls: [{ name: 'get_weather', arguments: { city: 'A long name of a city' } }], cut: 4 }],
      request: { retry: { attempts: 1 } },
    },
    check(assert, facts) {
      failed(assert, facts, { requests: 1 });
      assert.deepEqual(facts.finished, []);
      assert.equal(facts.types.includes('tool_started'), false);
    },
  },
  {
    name: 'a server that never answers',
    plan: { steps: [{ hang: true }], request: { retry: { attempts: 1 } }, options: { idleTimeoutMs: 150 } },
    check(assert, facts) {
      failed(assert, facts, { requests: 1, pattern: /150 ms/ });
    },
  },
  {
    name: 'a stream that stalls',
    plan: { steps: [GATED], request: { retry: { attempts: 1 } }, options: { idleTimeoutMs: 2000 } },
    check(assert, facts) {
      failed(assert, facts, { requests: 1, pattern: /2000 ms/ });
      assert.match(facts.text, /^One two/);
    },
  },
  {
    name: 'a server that never answers, retried',
    // The second answer comes in time on a busy machine, too.
    plan: { steps: [{ hang: true }, LAST], options: { idleTimeoutMs: 2000 } },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.modelRequests.length, 2);
    },
  },
  {
    name: 'an error inside the stream',
    plan: {
      steps: [{ text: 'So far', inBandError: { message: 'Overloaded today' } }],
      request: { retry: { attempts: 1 } },
    },
    check: (assert, facts) => failed(assert, facts, { requests: 1, pattern: /Overloaded today/ }),
  },
  {
    name: 'a call cut by the length limit never runs',
    plan: {
      steps: [{ calls: [{ name: 'get_weather', arguments: { city: 'Llanfairpwllgwyngyll' } }], finish: 'length' }],
    },
    check(assert, facts) {
      failed(assert, facts, { requests: 1, pattern: /cut|limit/ });
      assert.equal(facts.types.includes('tool_started'), false);
    },
  },
  {
    name: 'a text cut by the length limit is stored as truncated',
    plan: { steps: [{ text: 'It goes on and', finish: 'length' }] },
    check(assert, facts) {
      finished(assert, facts);
      assert.deepEqual(
        facts.added.map(({ role, status, text }) => [role, status, text]),
        [
          ['user', 'complete', 'And now?'],
          ['assistant', 'truncated', 'It goes on and'],
        ],
      );
      assert.deepEqual(facts.warnings, ['interrupted']);
    },
  },
  {
    name: 'plain JSON although a stream was requested',
    plan: {
      steps: [
        { ...CALL, json: true },
        { ...LAST, json: true },
      ],
    },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.text, LAST.text);
      assert.equal(facts.finished.length, 1);
    },
  },
  {
    name: 'no server listens at the address',
    plan: {
      turn: async ({ ask, drive, env }) =>
        finish(
          drive,
          await ask({
            provider: { ...providerOf(env), url: 'http://127.0.0.1:9/v1' },
            retry: { attempts: 2, backoffMs: 1 },
          }),
        ),
    },
    check: (assert, facts) => failed(assert, facts, { requests: 0, pattern: /reached/ }),
  },
  {
    name: 'the host has no key',
    plan: {
      options: { headers: () => Promise.reject(new Error('not signed in')) },
      request: { retry: { attempts: 1 } },
    },
    check: (assert, facts) => failed(assert, facts, { requests: 0, pattern: /not signed in/ }),
  },
  {
    name: 'a tool throws',
    plan: {
      steps: [CALL, LAST],
      tools: withTool(() => {
        throw new TypeError('no such city');
      }),
    },
    check(assert, facts) {
      finished(assert, facts);
      assert.deepEqual(
        facts.finished.map(({ isError }) => isError),
        [true],
      );
      assert.match(facts.finished[0].result, /no such city/);
      assert.equal(facts.calls[1].status, 'error');
      assert.equal(facts.calls[1].isError, true);
    },
  },
  {
    name: 'a tool throws no Error',
    plan: { steps: [CALL, LAST], tools: withTool(() => Promise.reject(null)) },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.finished[0].isError, true);
    },
  },
  {
    name: 'a tool hangs past its timeout',
    plan: {
      steps: [CALL, LAST],
      turn: async ({ ask, drive }) => {
        const seen = { started: false, aborted: false };
        const out = await finish(drive, await ask({ tools: hangingTools(seen) }), { toolTimeoutMs: 100 });
        return { ...out, more: seen };
      },
    },
    check(assert, facts) {
      finished(assert, facts);
      assert.deepEqual(facts.more, { started: true, aborted: true });
      assert.match(facts.finished[0].result, /100 ms/);
      assert.equal(facts.finished[0].isError, true);
    },
  },
  {
    name: 'a tool returns 5 MB',
    plan: { steps: [CALL, LAST], tools: withTool(() => ({ text: 'é'.repeat(2_500_000) })) },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.finished[0].isError, false);
      assert.equal(facts.calls[1].status, 'ok');
    },
  },
  {
    name: 'a tool returns undefined',
    plan: { steps: [CALL, LAST], tools: withTool(() => {}) },
    check(assert, facts) {
      finished(assert, facts);
      assert.deepEqual(facts.finished, [{ isError: false, result: 'null' }]);
    },
  },
  {
    name: 'a tool returns a value that JSON cannot represent',
    plan: { steps: [CALL, LAST], tools: withTool(() => ({ count: 10n })) },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.finished[0].isError, true);
      assert.match(facts.finished[0].result, /BigInt/);
    },
  },
  {
    name: 'an unknown tool, and arguments that are no JSON',
    plan: {
      steps: [
        {
          calls: [
            { name: 'no_such_tool', arguments: {} },
            { name: 'get_time', arguments: { city: 'Rome' } },
          ],
        },
        LAST,
      ],
    },
    check(assert, facts) {
      finished(assert, facts);
      assert.deepEqual(
        facts.calls.slice(1, 3).map(({ status }) => status),
        ['error', 'ok'],
      );
    },
  },
  {
    name: 'a model that calls and calls',
    plan: { steps: [CALL, CALL, CALL, CALL], request: { maxTurns: 2 } },
    check: (assert, facts) => failed(assert, facts, { requests: 2, code: 'max_turns' }),
  },
  {
    name: 'the user aborts before anything is sent',
    plan: {
      steps: [LAST],
      turn: async ({ ask, drive }) => finish(drive, await ask(), { signal: AbortSignal.abort() }),
    },
    check: (assert, facts) => cancelled(assert, facts, { requests: 0 }),
  },
  {
    name: 'the user aborts during the stream',
    plan: { steps: [GATED], turn: abortAtGate() },
    check(assert, facts) {
      cancelled(assert, facts, { requests: 1 });
      assert.equal(facts.text, 'One two three');
    },
  },
  {
    name: 'the user aborts during a tool',
    plan: { steps: [CALL, LAST], turn: abortInTool() },
    check(assert, facts) {
      cancelled(assert, facts, { requests: 1 });
      assert.deepEqual(facts.more, { started: true, aborted: true });
    },
  },
  {
    name: 'the user aborts while a retry is waited for',
    plan: {
      // Longer than the suite lets a test last: whoever waits for it to the end fails.
      steps: [{ status: 429, headers: { 'retry-after': '600' } }, LAST],
      turn: async ({ ask, drive }) => {
        const stop = new AbortController();
        const driven = drive(await ask(), { signal: stop.signal });
        const events = [];
        for await (const event of driven) {
          events.push(event);
          if (event.type === 'retrying') stop.abort();
        }
        return { result: await driven.result, events };
      },
    },
    check(assert, facts) {
      cancelled(assert, facts, { requests: 1 });
    },
  },
  {
    name: 'r15 onStop keep: the question and the partial answer are stored, marked',
    plan: { steps: [GATED], turn: abortAtGate({ onStop: 'keep' }) },
    check(assert, facts) {
      sound(assert, facts);
      assert.equal(facts.status, 'cancelled');
      assert.deepEqual(
        facts.added.map(({ role, status, text }) => [role, status, text]),
        [
          ['user', 'complete', 'And now?'],
          ['assistant', 'stopped', 'One two three'],
        ],
      );
      assert.deepEqual(facts.pending, []);
      assert.equal(facts.saved, true);
    },
  },
  {
    name: 'r15 onStop keep, of the session, in a tool: the call is stored as aborted',
    plan: { steps: [CALL, LAST], turn: abortInTool(), sessionOptions: { onStop: 'keep' } },
    check(assert, facts) {
      sound(assert, facts);
      assert.equal(facts.status, 'cancelled');
      assert.deepEqual(
        facts.added.map(({ role, status, calls }) => [role, status, calls]),
        [
          ['user', 'complete', 0],
          ['assistant', 'stopped', 1],
        ],
      );
      assert.equal(facts.calls[1].status, 'aborted');
    },
  },
  {
    name: 'r15 onStop keep and a cut stream: the partial answer is stored as failed',
    plan: {
      steps: [{ text: 'One two three four five six seven eight nine', cut: 7, delayMs: 60 }],
      request: { onStop: 'keep', retry: { attempts: 1 } },
    },
    check(assert, facts) {
      sound(assert, facts);
      assert.equal(facts.status, 'failed');
      assert.deepEqual(
        facts.added.map(({ role, status }) => [role, status]),
        [
          ['user', 'complete'],
          ['assistant', 'failed'],
        ],
      );
      assert.match(facts.added[1].text, /^One/);
    },
  },
  {
    name: 'two sends at once: busy',
    plan: {
      steps: [LAST],
      turn: async ({ ask, drive }) => {
        const [one, two] = await Promise.allSettled([ask(), ask()]);
        const out = await finish(drive, one.value);
        return { ...out, more: { one: one.status, two: two.reason?.code } };
      },
    },
    check(assert, facts) {
      finished(assert, facts);
      assert.deepEqual(facts.more, { one: 'fulfilled', two: 'busy' });
      assert.equal(facts.modelRequests.length, 1);
    },
  },
  {
    name: 'two sends at once: queue',
    plan: {
      steps: [{ text: 'First.' }, { text: 'Second.' }, { text: 'Third.' }],
      turn: async ({ ask, drive }) => {
        const one = ask({ input: 'a' });
        const sends = ['b', 'c'].map((input) => ask({ input, whenBusy: 'queue' }).then((run) => drive(run).result));
        await drive(await one).result;
        const rest = await Promise.all(sends);
        return { result: rest[1], events: [], more: rest.map(({ status, text }) => [status, text]) };
      },
    },
    check(assert, facts) {
      sound(assert, facts);
      assert.deepEqual(facts.more, [
        ['finished', 'Second.'],
        ['finished', 'Third.'],
      ]);
      assert.deepEqual(
        facts.added.map(({ role, text }) => [role, text]),
        [
          ['user', 'a'],
          ['assistant', 'First.'],
          ['user', 'b'],
          ['assistant', 'Second.'],
          ['user', 'c'],
          ['assistant', 'Third.'],
        ],
      );
    },
  },
  {
    name: 'leaving the loop stops watching, not the run',
    plan: {
      steps: [CALL, LAST],
      turn: async ({ ask, drive }) => {
        const driven = drive(await ask());
        const events = [];
        for await (const event of driven) {
          events.push(event);
          break;
        }
        return { result: await driven.result, events };
      },
    },
    check(assert, facts) {
      finished(assert, facts);
      assert.equal(facts.types.length, 1);
    },
  },
];

export const cases = CASES.map(({ name, plan, check }) => ({ name, check, run: (kit, env) => around(plan, kit, env) }));
