// Functions of the application that never answer: what waits for them ends when the store is closed, or the run is
// cancelled or disposed.

import assert from 'node:assert/strict';
import { after, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { until } from './scenarios/kit.mjs';

const dispose = Symbol.dispose ?? Symbol.for('Symbol.dispose');
const provider = { dialect: 'openai-chat', url: 'https://m.example/v1/chat/completions', params: { model: 'm' } };
const completion = (message, finish_reason = 'stop') =>
  JSON.stringify({ choices: [{ index: 0, message: { role: 'assistant', content: null, ...message }, finish_reason }] });
const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }];
const fetchWith = (body) => async () => new Response(body, { headers: { 'content-type': 'application/json' } });
const answers = fetchWith(completion({ content: 'yes' }));
const callsTool = fetchWith(completion({ tool_calls: calls }, 'tool_calls'));
const say = (text, role = 'user') => ({ role, parts: [{ type: 'text', text }] });

// Node ends when nothing but promises is waited for; then no test would fail alone.
const alive = setInterval(() => {}, 1000);
after(() => clearInterval(alive));

/** A session, and a function that is called and never answers. */
async function chat() {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  await session.append([say('old'), say('reply', 'assistant')]);
  let count = 0;
  const never = () => {
    count += 1;
    return new Promise(() => {});
  };
  return { client, session, never, wasCalled: () => until(async () => count > 0) };
}
const reducers = {
  custom: (never) => ({ reducers: [{ type: 'custom', reduce: never }] }),
  summarize: (never) => ({ reducers: [{ type: 'summarize', target: 1, threshold: 0, summarize: never }] }),
};

/** What waits while a run is under way: the options of the run, and the model. */
const runs = {
  custom: (never) => ({ replay: reducers.custom(never) }),
  summarize: (never) => ({ replay: reducers.summarize(never) }),
  inputFilter: (never) => ({ inputFilter: never }),
  needsApproval: (never) => ({
    tools: { f: { parameters: { type: 'object' }, needsApproval: never, execute() {} } },
    fetch: callsTool,
  }),
  store: (never) => ({ providers: [{ name: 'log', store: never }] }),
};
async function start(session, { fetch = answers, ...request }) {
  const run = await session.run({ input: 'x', provider, ...request });
  return { run, driven: drive(run, { fetch }) };
}

const waits = {
  'provide of a run': ({ session, never }) => [
    session.run({ input: 'x', provider, providers: [{ name: 'rag', provide: never }] }),
  ],
  'provide, and a run that is queued': ({ session, never }) => [
    session.run({ input: 'x', provider, providers: [{ name: 'rag', provide: never }] }),
    session.run({ input: 'y', provider, whenBusy: 'queue' }),
  ],
  'provide of a render': async ({ client, never }) => {
    const session = await client.session('other', { providers: [{ name: 'rag', provide: never }] });
    return [session.render({ dialect: 'openai-chat', input: 'x' })];
  },
  'custom of a render': ({ session, never }) => [
    session.render({ dialect: 'openai-chat', input: 'x', replay: reducers.custom(never) }),
  ],
  'summarize of a render': ({ session, never }) => [
    session.render({ dialect: 'openai-chat', input: 'x', replay: reducers.summarize(never) }),
  ],
  compact: ({ session, never }) => [session.compact({ summarize: never, force: true, dialect: 'openai-chat' })],
  'store, while an answer is given': async ({ session, never }) => {
    const run = await session.run({ input: 'x', provider, providers: [{ name: 'log', store: never }] });
    return [run.answer(run.effects()[0].id, { type: 'response', status: 200, body: completion({ content: 'yes' }) })];
  },
};
for (const [name, options] of Object.entries(runs))
  waits[`${name} of a run`] = async ({ session, never }) => [(await start(session, options(never))).driven.result];

for (const [name, begin] of Object.entries(waits)) {
  test(`r62 closing the store rejects what waits for a function that never answers: ${name}`, {
    timeout: 20_000,
  }, async () => {
    const context = await chat();
    const waiting = await begin(context);
    await context.wasCalled();
    const rejected = waiting.map((promise) => assert.rejects(promise, { code: 'closed' }));
    await context.client.close();
    await Promise.all(rejected);
  });
}

for (const [name, options] of Object.entries(runs)) {
  test(`r62 a run that waits for a function that never answers is cancelled, and the next run starts: ${name}`, {
    timeout: 20_000,
  }, async () => {
    const { client, session, never, wasCalled } = await chat();
    const { run, driven } = await start(session, options(never));
    await wasCalled();
    await run.cancel();
    // One that waits for `store` is over already.
    assert.equal((await driven.result).status, name === 'store' ? 'finished' : 'cancelled');
    assert.equal((await (await start(session, {})).driven.result).status, 'finished');
    await client.close();
  });

  test(`r62 a run that waits for a function that never answers is disposed, and the next run starts: ${name}`, {
    timeout: 20_000,
  }, async () => {
    const { client, session, never, wasCalled } = await chat();
    const { run, driven } = await start(session, options(never));
    await wasCalled();
    run[dispose]();
    await assert.rejects(driven.result, { code: 'closed' });
    assert.deepEqual(
      (await session.pendingRuns()).map(({ id }) => id),
      name === 'store' ? [] : [run.id],
    );
    const next = await start(session, { whenBusy: 'queue' });
    assert.equal((await next.driven.result).status, 'finished');
    await client.close();
  });
}

test('r33 r62 a cancelled or disposed run that waits for `store` warns that the providers may lack its turn', {
  timeout: 20_000,
}, async () => {
  for (const end of [(run) => run.cancel(), (run) => run[dispose]()]) {
    const warnings = [];
    const client = await open({
      store: 'memory',
      onWarning: ({ code, message }) => warnings.push(`${code}: ${message}`),
    });
    const session = await client.session('s');
    let resolve;
    const { run } = await start(session, {
      providers: [
        {
          name: 'log',
          store: () =>
            new Promise((settle) => {
              resolve = settle;
            }),
        },
      ],
    });
    await until(async () => resolve);
    await end(run);
    await until(async () => warnings.length > 0);
    resolve();
    assert.match(warnings.join(), /^callback_failed: .*`store` of its history providers[^,]*, so whether/);
    await client.close();
  }
});

test('r62 a function that rejects after the store was closed causes no unhandled rejection', {
  timeout: 20_000,
}, async () => {
  const unhandled = [];
  const note = (error) => unhandled.push(error);
  process.on('unhandledRejection', note);
  const { client, session } = await chat();
  let reject;
  const provide = () =>
    new Promise((_, fail) => {
      reject = fail;
    });
  const waiting = session.run({ input: 'x', provider, providers: [{ name: 'rag', provide }] });
  await until(async () => reject);
  const rejected = assert.rejects(waiting, { code: 'closed' });
  await client.close();
  await rejected;
  reject(new Error('late'));
  for (let turns = 0; turns < 5; turns += 1)
    await new Promise((resolve) => {
      setImmediate(resolve);
    });
  assert.deepEqual(unhandled, []);
  process.off('unhandledRejection', note);
});
