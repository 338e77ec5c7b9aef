// The thin host, where it meets what an application does beside it.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive, isDriven } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { sleep, until } from './scenarios/kit.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

async function chat(name, steps) {
  const lane = laneOf(standIn.url, name);
  if (steps) await lane.script(steps);
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  return {
    lane,
    client,
    session,
    provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true },
  };
}
const GATED = [{ text: 'One two three.', gate: 'go', atPiece: 1 }];
const tool = (execute) => ({ f: { parameters: { type: 'object', properties: {} }, execute } });

test('closing the store during a run rejects the promises of that run and of the queued one', {
  timeout: 10_000,
}, async () => {
  const { lane, client, session, provider } = await chat('close', GATED);
  const driven = drive(await session.run({ input: 'x', provider }));
  const queued = session.run({ input: 'y', provider, whenBusy: 'queue' });
  await until(async () => (await lane.waiting()).length);
  const ends = [assert.rejects(driven.result, { code: 'closed' }), assert.rejects(queued, { code: 'closed' })];
  await client.close();
  await Promise.all(ends);
  for await (const event of driven) assert.notEqual(event.type, 'finished');
  await until(async () => (await lane.requests())[0].ended === 'client-closed');
});

test('a listener that cancels the run at every event cancels it once', { timeout: 10_000 }, async () => {
  const { session, provider } = await chat('listener');
  let run;
  let calls = 0;
  session.subscribe(() => {
    calls += 1;
    run?.cancel();
  });
  run = await session.run({ input: 'x', provider });
  assert.equal((await drive(run).result).status, 'cancelled');
  await sleep(20);
  assert.ok(calls < 20, `called ${calls} times`);
});

test('an abort while `headers` is pending sends nothing and leaves no unhandled rejection', {
  timeout: 10_000,
}, async () => {
  const { lane, session, provider } = await chat('headers');
  const stop = new AbortController();
  const headers = async () => {
    stop.abort();
    await sleep(5);
    return { authorization: 'Bearer x' };
  };
  const { status } = await drive(await session.run({ input: 'x', provider }), { headers, signal: stop.signal }).result;
  assert.equal(status, 'cancelled');
  await sleep(20);
  assert.deepEqual(await lane.requests(), []);
});

test('`headers` are sent to the model and nowhere else; the function is called for each model call', async () => {
  const { lane, session, provider } = await chat('key', [{ calls: [{ name: 'f', arguments: {} }] }, { text: 'Done.' }]);
  const asked = [];
  const driven = drive(await session.run({ input: 'x', provider, tools: tool(() => 1) }), {
    headers: (about) => {
      asked.push(about);
      return { authorization: 'Bearer sk-secret-of-the-host' };
    },
  });
  const events = [];
  for await (const event of driven) events.push(event);
  assert.deepEqual(
    asked,
    [0, 1].map(() => ({ url: lane.chat, dialect: 'openai-chat', model: 'm' })),
  );
  const requests = await lane.requests();
  assert.deepEqual(
    requests.map(({ headers }) => headers.authorization),
    ['present', 'present'],
  );
  assert.doesNotMatch(
    JSON.stringify([events, await session.messages(), requests.map(({ bodyText }) => bodyText)]),
    /sk-secret/,
  );
});

for (const [most, want] of [
  [2, 2],
  [0, 1],
  [undefined, 6],
]) {
  test(`toolConcurrency ${most}: ${want} tools at once`, { timeout: 10_000 }, async () => {
    const { session, provider } = await chat(`tools-${most}`, [
      { calls: Array.from({ length: 6 }, (_, n) => ({ name: 'f', arguments: { n } })) },
      { text: 'Done.' },
    ]);
    let now = 0;
    let seen = 0;
    const execute = async () => {
      now += 1;
      seen = Math.max(seen, now);
      await sleep(20);
      now -= 1;
    };
    const { status } = await drive(await session.run({ input: 'x', provider, tools: tool(execute) }), {
      toolConcurrency: most,
    }).result;
    assert.deepEqual([status, seen], ['finished', want]);
  });
}

test('a tool without execute waits for the application; endsRun ends the run with its result', async () => {
  const { lane, session, provider } = await chat('form', [{ calls: [{ name: 'form', arguments: { ask: 'name' } }] }]);
  const run = await session.run({
    input: 'x',
    provider,
    tools: { form: { parameters: { type: 'object', properties: {} }, endsRun: true } },
  });
  const driven = drive(run);
  await until(() => run.effects()[0]?.type === 'run_tool');
  assert.equal(run.effects()[0].name, 'form');
  const answer = { type: 'tool_result', content: { name: 'Ada' } };
  await assert.rejects(session.answer(run.effects()[0].invocationId, answer), {
    code: 'wrong_state',
    message: /Run\.answer\(effect\.id/,
  });
  await run.answer(run.effects()[0].id, { type: 'tool_result', content: { name: 'Ada' } });
  const { status, turns } = await driven.result;
  assert.deepEqual([status, turns, (await lane.requests()).length], ['finished', 1, 1]);
  const [row] = (await session.invocations({ payload: true })).items;
  assert.deepEqual([row.status, row.result], ['ok', { content: { name: 'Ada' }, isError: false }]);
});

test('r29 isDriven is true while a drive executes the run', async () => {
  const { session, provider } = await chat('is-driven', [
    { calls: [{ name: 'look', arguments: {} }] },
    { text: 'Seen.' },
  ]);
  const look = { parameters: { type: 'object', properties: {} }, needsApproval: true, execute: () => 'seen' };
  const run = await session.run({ input: 'x', provider, tools: { look } });
  const seen = [isDriven(run)];
  const driven = drive(run);
  seen.push(isDriven(run));
  assert.equal((await driven.result).status, 'waiting_approval');
  seen.push(isDriven(run));
  await run.approve(run.approvals()[0].invocationId);
  const again = drive(run);
  seen.push(isDriven(run));
  assert.equal((await again.result).status, 'finished');
  assert.deepEqual([...seen, isDriven(run), isDriven(null)], [false, true, false, true, false, false]);
});

test('drive of a finished run ends at once', async () => {
  const { session, provider } = await chat('over');
  const run = await session.run({ input: 'x', provider });
  await drive(run).result;
  const again = drive(run);
  for await (const event of again) assert.fail(event.type);
  assert.equal((await again.result).status, 'finished');
});

test('callbacks can call the session and the run', { timeout: 10_000 }, async () => {
  const { lane } = await chat('callbacks');
  let session;
  let client;
  let run;
  const failures = [];
  const guarded = (work) => () => {
    try {
      return work();
    } catch (error) {
      failures.push(String(error));
      return undefined;
    }
  };
  client = await open({
    store: 'memory',
    now: guarded(() => {
      client?.subscribe(() => {})();
      return Date.now();
    }),
    newId: guarded(() => {
      session?.state.set('n', 1);
      return Math.random().toString(36);
    }),
    onWarning: guarded(() => session.view().getSnapshot()),
  });
  session = await client.session('s');
  const look = guarded(() => {
    session.view().getSnapshot();
    run?.events();
    run?.effects();
    run?.result();
  });
  session.subscribe(look);
  client.subscribe(look);
  await session.append(
    {
      messages: [
        { role: 'tool', tool_call_id: 'nobody', content: 'x' },
        { role: 'user', content: 'q' },
      ],
    },
    'openai-chat',
  );
  run = await session.run({
    input: 'Oslo?',
    provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' }, stream: true },
    tools: tool(look),
  });
  assert.equal((await drive(run).result).status, 'finished');
  assert.deepEqual(failures, []);
});
