// `once`: a tool runs once for each call, in a loop of any kind (R18, R19). tests/servers/once.test.mjs kills processes.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { once } from 'rethread/once';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { FailingStore, MAY_HAVE_RUN, mail, openings, sender, waitFor } from './once-senders.mjs';

test('r18 r19 once: a call that has a result gets it in every process, and its tool does not run', async () => {
  const [one, two] = await openings(2);
  const values = [['text', 'text'], [{ id: 7, list: [null, 'ü'] }], [[1, 2]], [null], [undefined, null]];
  values.push([0], [false], [''], [{ at: new Date(0) }, { at: '1970-01-01T00:00:00.000Z' }]);
  for (const [at, [value, stored = value]] of values.entries()) {
    const execute = (args, context, more) => {
      assert.deepEqual([args, context, more], [mail, { callId: `c${at}` }, 'more']);
      return value;
    };
    const context = { callId: `c${at}` };
    assert.equal(await once(one, { name: 't', execute })(mail, context, 'more'), value);
    const never = once(two, { name: 't', execute: () => assert.fail('it ran again') });
    assert.deepEqual(await never({ to: 'ann' }, context), stored);
  }
  const { items } = await one.invocations({ payload: true });
  assert.equal(items.length, values.length);
  assert.deepEqual(
    [items.at(-1).callId, items.at(-1).status, items.at(-1).argumentsText],
    ['c0', 'ok', '{"to":"ann"}'],
  );
});

test('r18 r19 once: of a call that was started elsewhere the option decides', async () => {
  const [killed, session] = await openings(2);
  const first = sender(killed);
  const lost = first.send(mail, { callId: 'c' });
  await waitFor(() => first.runs.length);

  await assert.rejects(sender(session).send(mail, { callId: 'c' }), MAY_HAVE_RUN);
  const asked = [];
  const ask = (answer) => ({
    onInterrupted: async (call) => {
      asked.push(call);
      return answer();
    },
  });
  await assert.rejects(
    sender(
      session,
      ask(() => 'report'),
    ).send(mail, { callId: 'c' }),
    MAY_HAVE_RUN,
  );
  assert.deepEqual(asked, [{ callId: 'c', name: 'send_mail', arguments: mail }]);
  const paused = new Error('paused');
  const pause = ask(() => {
    throw paused;
  });
  await assert.rejects(sender(session, pause).send(mail, { callId: 'c' }), paused);
  for (const wrong of [undefined, 'ask', true]) {
    await assert.rejects(
      sender(
        session,
        ask(() => wrong),
      ).send(mail, { callId: 'c' }),
      { code: 'callback_failed' },
    );
  }
  assert.equal((await session.invocations({ status: 'pending' })).items.length, 1);

  const again = sender(
    session,
    ask(() => 'rerun'),
  );
  const rerun = again.send(mail, { callId: 'c' });
  await waitFor(() => again.runs.length);
  again.runs[0].end('second');
  assert.equal(await rerun, 'second');
  // The process lived: the result that was stored first counts.
  first.runs[0].end('first');
  assert.equal(await lost, 'first');
  for (const one of [killed, session]) assert.equal(await sender(one).send(mail, { callId: 'c' }), 'second');
});

test('r18 r19 once: what a person knows of an interrupted call is its result', async () => {
  const [killed, session] = await openings(2);
  const { send, runs } = sender(killed);
  for (const callId of ['a', 'b']) send(mail, { callId });
  await waitFor(() => runs.length === 2);
  const known = sender(session, { onInterrupted: () => ({ result: { sent: true } }) });
  assert.deepEqual(await known.send(mail, { callId: 'a' }), { sent: true });
  assert.deepEqual(await sender(session).send(mail, { callId: 'a' }), { sent: true });
  await session.answer('b', { type: 'tool_result', content: 'not sent', isError: true });
  await assert.rejects(sender(session).send(mail, { callId: 'b' }), /^Error: not sent$/);
});

test('r18 r19 once: of two processes one runs the tool', async () => {
  for (let round = 0; round < 10; round += 1) {
    const senders = (await openings(2)).map((session) => sender(session));
    const calls = senders.map(({ send }) => send(mail, { callId: 'c' }));
    const [late] = await Promise.all([
      Promise.any(
        calls.map((call) =>
          call.then(
            () => assert.fail('without a result'),
            (error) => error,
          ),
        ),
      ),
      waitFor(() => senders.some(({ runs }) => runs.length)),
    ]);
    assert.ok(MAY_HAVE_RUN(late), late);
    const runs = senders.flatMap((one) => one.runs);
    assert.equal(runs.length, 1);
    runs[0].end('sent');
    assert.equal((await Promise.allSettled(calls)).filter(({ value }) => value === 'sent').length, 1);
    for (const { send } of senders) assert.equal(await send(mail, { callId: 'c' }), 'sent');
    assert.equal(senders.flatMap((one) => one.runs).length, 1);
  }
});

test('r18 r19 once: two calls with one id at once have one execution, and one question', async () => {
  const [killed, session] = await openings(2);
  const { send, runs } = sender(session);
  const both = Promise.all([send(mail, { callId: 'c' }), send(mail, { callId: 'c' })]);
  await waitFor(() => runs.length);
  await assert.rejects(send({ to: 'bob' }, { callId: 'c' }), { code: 'conflict' });
  runs[0].end('sent');
  assert.deepEqual(await both, ['sent', 'sent']);

  const lost = sender(killed);
  lost.send(mail, { callId: 'd' });
  await waitFor(() => lost.runs.length);
  let decide;
  let asked = 0;
  const asking = sender(session, {
    onInterrupted: () => {
      asked += 1;
      return new Promise((resolve) => (decide = resolve));
    },
  });
  const waiting = Promise.all([1, 2, 3].map(() => asking.send(mail, { callId: 'd' })));
  await waitFor(() => asked);
  decide('rerun');
  await waitFor(() => asking.runs.length);
  asking.runs[0].end('sent');
  assert.deepEqual(await waiting, ['sent', 'sent', 'sent']);
  assert.deepEqual([asked, asking.runs.length, runs.length], [1, 1, 1]);
});

test('r18 r19 once: 20 calls at once are each run and stored once', async () => {
  const [one, two] = await openings(2);
  const ran = [];
  const execute = async ({ n }) => {
    ran.push(n);
    return n;
  };
  const numbers = Array.from({ length: 20 }, (_, n) => n);
  const all = (session) =>
    Promise.allSettled(numbers.map((n) => once(session, { name: 'n', execute })({ n }, { callId: `c${n}` })));
  await Promise.all([all(one), all(two)]);
  assert.deepEqual(
    ran.toSorted((a, b) => a - b),
    numbers,
  );
  assert.deepEqual(
    (await all(two)).map(({ value }) => value),
    numbers,
  );
  assert.equal(ran.length, 20);
});

test('r18 r19 once: an id that is stored with other arguments or another name runs nothing', async () => {
  const [session, other] = await openings(2);
  assert.equal(
    await once(session, { name: 'send_mail', execute: () => 'sent' })({ to: 'ann', cc: [] }, { callId: 'c' }),
    'sent',
  );
  for (const one of [session, other]) {
    const { send, runs } = sender(one, { onInterrupted: 'rerun' });
    await assert.rejects(send(mail, { callId: 'c' }), { code: 'conflict', message: /with other arguments/ });
    await assert.rejects(send(undefined, { callId: 'c' }), { code: 'conflict' });
    await assert.rejects(sender(one, { name: 'pay' }).send({ to: 'ann', cc: [] }, { callId: 'c' }), {
      code: 'conflict',
      message: /with the tool send_mail/,
    });
    // The order of members is none, and undefined is as absent.
    assert.equal(await send({ cc: [], to: 'ann', bcc: undefined }, { callId: 'c' }), 'sent');
    assert.equal(runs.length, 0);
  }
});

test('r18 r19 once: a call without an id or without JSON is rejected, and nothing is stored', async () => {
  const [session] = await openings(1);
  const { send, runs } = sender(session);
  const cycle = {};
  cycle.self = cycle;
  for (const context of [undefined, null, 'c', {}, { callId: '' }, { callId: 7 }])
    await assert.rejects(send(mail, context), { code: 'invalid_input', message: /send_mail has no id/ });
  for (const args of [cycle, { n: 1n }, { map: new Map() }, () => {}, { bytes: new Uint8Array(2) }])
    await assert.rejects(send(args, { callId: 'c' }), { code: 'invalid_input', message: /no JSON/ });
  assert.deepEqual([runs.length, session.revision], [0, 0]);
});

test('r18 r19 once: the id of a call is found where loops pass it', async () => {
  const [session] = await openings(1);
  const places = [
    [{ callId: 'rethread' }],
    [{ toolCallId: 'ai-sdk', messages: [] }],
    [{ toolCallId: 'langgraph', toolCall: { id: 'other' } }],
    [{ toolCall: { id: 'langchain' } }],
    [{ context: {} }, { toolCall: { id: 'fc_1', callId: 'openai-agents' } }],
    [{ agent: { toolCallId: 'mastra' } }],
  ];
  const send = once(session, { name: 't', execute: () => 'ran' });
  for (const place of places) await send(mail, ...place);
  await once(session, { name: 't', execute: () => 'ran', callId: ({ to }) => `own ${to}` })(mail);
  const { items } = await session.invocations();
  assert.deepEqual(items.map(({ callId }) => callId).toSorted(), [
    'ai-sdk',
    'langchain',
    'langgraph',
    'mastra',
    'openai-agents',
    'own ann',
    'rethread',
  ]);
});

test('r18 r19 once: a tool that throws has ended', async () => {
  const [one, two] = await openings(2);
  const { send, runs } = sender(one);
  const failed = send(mail, { callId: 'c' });
  await waitFor(() => runs.length);
  const error = new TypeError('no such address');
  runs[0].fail(error);
  await assert.rejects(failed, error);
  for (const session of [one, two])
    await assert.rejects(sender(session, { onInterrupted: 'rerun' }).send(mail, { callId: 'c' }), {
      message: 'no such address',
    });
  assert.deepEqual(
    (await two.invocations()).items.map(({ status }) => status),
    ['error'],
  );
  assert.equal(runs.length, 1);
});

test('r18 r19 once: a result that is no JSON has run, and does not run again', async () => {
  const [one, two] = await openings(2);
  const cycle = [];
  cycle.push(cycle);
  for (const [at, value] of [
    10n,
    new Map(),
    () => 1,
    [new Error('x')],
    { bytes: new Uint8Array(1) },
    cycle,
  ].entries()) {
    let ran = 0;
    const tool = {
      name: 't',
      execute: () => {
        ran += 1;
        return value;
      },
    };
    const error = {
      name: 'RethreadError',
      code: 'invalid_input',
      message: /^This call has run\. .* \(invalid_input\): /,
    };
    for (const session of [one, two, two]) await assert.rejects(once(session, tool)(mail, { callId: `c${at}` }), error);
    assert.equal(ran, 1);
  }
});

test('r18 r19 r58 once: a tool whose start cannot be stored does not run; a result that cannot be is kept', async () => {
  const store = new FailingStore();
  const [session, elsewhere] = await openings(2, store);
  const { send, runs } = sender(session, { saveTimeoutMs: 0 });
  store.failing = true;
  await assert.rejects(send(mail, { callId: 'c' }), { code: 'store_error' });
  assert.equal(runs.length, 0);
  store.failing = false;

  const unsaved = send(mail, { callId: 'c' });
  await waitFor(() => runs.length);
  store.failing = true;
  runs[0].end('sent');
  await assert.rejects(unsaved, { code: 'store_error' });
  await assert.rejects(send(mail, { callId: 'c' }), { code: 'store_error' });
  store.failing = false;
  await assert.rejects(sender(elsewhere).send(mail, { callId: 'c' }), MAY_HAVE_RUN);
  assert.equal(await send(mail, { callId: 'c' }), 'sent');
  assert.equal(await sender(elsewhere).send(mail, { callId: 'c' }), 'sent');

  // In time the store works again.
  const patient = sender(session);
  const saved = patient.send(mail, { callId: 'd' });
  await waitFor(() => patient.runs.length);
  store.failing = true;
  patient.runs[0].end('sent, too');
  setTimeout(() => (store.failing = false), 100);
  assert.equal(await saved, 'sent, too');
  assert.equal(await sender(elsewhere).send(mail, { callId: 'd' }), 'sent, too');
  assert.equal(runs.length, 1);
});

test('r18 r19 r58 once: a result that is kept is stored by the next call of the process, whatever opened its session', async () => {
  const store = new FailingStore();
  const client = await open({ store });
  const { send, runs } = sender(await client.session('s'), { saveTimeoutMs: 0 });
  const unsaved = send(mail, { callId: 'c' });
  await waitFor(() => runs.length);
  store.failing = true;
  runs[0].end('sent');
  await assert.rejects(unsaved, { code: 'store_error' });
  store.failing = false;
  client.close();
  const execute = () => assert.fail('it ran again');
  const again = once(await (await open({ store })).session('s'), {
    name: 'send_mail',
    execute,
    onInterrupted: 'rerun',
  });
  assert.equal(await again(mail, { callId: 'c' }), 'sent');
  const [elsewhere] = await openings(1, store);
  assert.equal(await sender(elsewhere).send(mail, { callId: 'c' }), 'sent');
});

test('r18 r19 once: an abort before the start runs nothing; a tool that throws after one may have run', async () => {
  const [session] = await openings(1);
  const { send, runs } = sender(session);
  const reason = new Error('stopped');
  await assert.rejects(send(mail, { callId: 'c', signal: AbortSignal.abort(reason) }), reason);
  assert.deepEqual([runs.length, session.revision], [0, 0]);
  for (const [callId, member] of [
    ['c', 'signal'],
    ['d', 'abortSignal'],
  ]) {
    const stop = new AbortController();
    const stopped = send(mail, { callId, [member]: stop.signal });
    await waitFor(() => runs.some(({ context }) => context.callId === callId));
    stop.abort(reason);
    runs.at(-1).fail(reason);
    await assert.rejects(stopped, reason);
    await assert.rejects(send(mail, { callId }), MAY_HAVE_RUN);
  }
  const stop = new AbortController();
  const ended = send(mail, { callId: 'e', signal: stop.signal });
  await waitFor(() => runs.length === 3);
  stop.abort(reason);
  runs[2].end('sent');
  assert.equal(await ended, 'sent');
  assert.equal(await send(mail, { callId: 'e' }), 'sent');
});

/** A store that calls `before` once, with the next append under way. */
class WatchedStore extends FailingStore {
  before = () => {};

  async append(...args) {
    const { before } = this;
    this.before = () => {};
    before();
    return super.append(...args);
  }
}

test('r18 r19 once: an abort while the start is stored leaves a call that can be started', async () => {
  const reason = new Error('stopped');
  for (const member of ['signal', 'abortSignal']) {
    const store = new WatchedStore();
    const [session, elsewhere] = await openings(2, store);
    const { send, runs } = sender(session);
    const abortInStart = () => {
      const stop = new AbortController();
      store.before = () => stop.abort(reason);
      return stop.signal;
    };
    for (let attempt = 0; attempt < 2; attempt += 1)
      await assert.rejects(send(mail, { callId: 'c', [member]: abortInStart() }), reason);
    assert.equal(runs.length, 0);
    const other = sender(elsewhere);
    const sent = other.send(mail, { callId: 'c' });
    await waitFor(() => other.runs.length);
    // That one has started, and this one must not take it for its own that was withdrawn.
    await assert.rejects(send(mail, { callId: 'c' }), MAY_HAVE_RUN);
    const rerun = sender(session, { onInterrupted: 'rerun' });
    await assert.rejects(rerun.send(mail, { callId: 'c', [member]: abortInStart() }), reason);
    await assert.rejects(send(mail, { callId: 'c' }), MAY_HAVE_RUN);
    other.runs[0].end('sent');
    assert.equal(await sent, 'sent');
    assert.equal(await send(mail, { callId: 'c' }), 'sent');
    assert.equal(runs.length + rerun.runs.length, 0);
  }
});

test('r18 r19 r58 once: a start that was aborted and cannot be withdrawn may have run', async () => {
  const store = new WatchedStore();
  const [session, elsewhere] = await openings(2, store);
  const { send, runs } = sender(session, { saveTimeoutMs: 0 });
  const stop = new AbortController();
  store.before = () => {
    stop.abort(new TypeError('stopped'));
    store.before = () => (store.failing = true);
  };
  const isAbort = ({ name, message, cause }) =>
    name === 'TypeError' &&
    /^stopped .*the call c counts as one that may have run/.test(message) &&
    cause.code === 'store_error';
  await assert.rejects(send(mail, { callId: 'c', signal: stop.signal }), isAbort);
  assert.equal(stop.signal.reason.cause, undefined);
  store.failing = false;
  for (const one of [session, elsewhere]) await assert.rejects(sender(one).send(mail, { callId: 'c' }), MAY_HAVE_RUN);
  assert.equal(runs.length, 0);
});

test('r18 r19 once: of two callers of one execution each has its own abort, and the tool that of both', async () => {
  const [session] = await openings(1);
  const { send, runs } = sender(session);
  const stops = (count) => Array.from({ length: count }, () => new AbortController());
  const reasons = ['first', 'second'].map((text) => new Error(text));
  const join = async (callId, contexts) => {
    const calls = contexts.map((context) => send(mail, { callId, ...context }));
    for (const call of calls) call.catch(() => {});
    await waitFor(() => runs.at(-1)?.context.callId === callId);
    // All have joined when a later call has begun.
    const after = send(mail, { callId: `after ${callId}` });
    await waitFor(() => runs.at(-1).context.callId !== callId);
    runs.at(-1).end('sent');
    await after;
    return { calls, run: runs.at(-2) };
  };

  const [one, two] = stops(2);
  const kept = await join('c', [{ signal: one.signal, kept: 1 }, { signal: two.signal }]);
  one.abort(reasons[0]);
  await assert.rejects(kept.calls[0], reasons[0]);
  assert.deepEqual([kept.run.context.signal.aborted, kept.run.context.kept], [false, 1]);
  kept.run.end('sent');
  assert.equal(await kept.calls[1], 'sent');
  assert.equal(await send(mail, { callId: 'c' }), 'sent');

  const [three, four] = stops(2);
  const left = await join('d', [{ abortSignal: three.signal }, { signal: four.signal }]);
  three.abort(reasons[0]);
  four.abort(reasons[1]);
  await assert.rejects(left.calls[0], reasons[0]);
  assert.equal(left.run.context.abortSignal.reason, reasons[1]);
  left.run.fail(reasons[1]);
  await assert.rejects(left.calls[1], reasons[1]);
  await assert.rejects(send(mail, { callId: 'd' }), MAY_HAVE_RUN);

  const [five] = stops(1);
  const waited = await join('e', [{ signal: five.signal }, {}]);
  five.abort(reasons[0]);
  await assert.rejects(waited.calls[0], reasons[0]);
  assert.equal(waited.run.context.signal.aborted, false);
  const error = new Error('no such address');
  waited.run.fail(error);
  await assert.rejects(waited.calls[1], error);
  await assert.rejects(send(mail, { callId: 'e' }), { message: 'no such address' });
});

test('r18 r19 once: a caller who comes when the others have given up is not aborted with them', async () => {
  const store = new WatchedStore();
  const [session, killed] = await openings(2, store);
  const { send, runs } = sender(session);
  const reason = new Error('stopped');
  const stop = new AbortController();
  let second;
  store.before = () => {
    stop.abort(reason);
    second = send(mail, { callId: 'c' });
  };
  await assert.rejects(send(mail, { callId: 'c', signal: stop.signal }), reason);
  await waitFor(() => runs.length);
  runs[0].end('sent');
  assert.equal(await second, 'sent');
  assert.equal(runs.length, 1);

  // The tool does not end when it is aborted: who comes later can give up, or gets what it returns.
  const [given, late] = [new AbortController(), new AbortController()];
  const first = send(mail, { callId: 'd', signal: given.signal });
  await waitFor(() => runs.length === 2);
  given.abort(reason);
  const [leaves, stays] = [send(mail, { callId: 'd', signal: late.signal }), send(mail, { callId: 'd' })];
  late.abort(new Error('late'));
  await assert.rejects(leaves, /^Error: late$/);
  runs[1].end('sent');
  assert.deepEqual(await Promise.all([first, stays]), ['sent', 'sent']);

  // A person is asked for both.
  const lost = sender(killed);
  lost.send(mail, { callId: 'e' });
  await waitFor(() => lost.runs.length);
  const decide = [];
  const asking = sender(session, { onInterrupted: () => new Promise((resolve) => decide.push(resolve)) });
  const asked = new AbortController();
  const questions = [{ signal: asked.signal }, {}].map((more) => asking.send(mail, { callId: 'e', ...more }));
  await waitFor(() => decide.length);
  await send(mail, { callId: 'd' });
  asked.abort(reason);
  await assert.rejects(questions[0], reason);
  decide[0]('rerun');
  await waitFor(() => asking.runs.length);
  asking.runs[0].end('sent');
  assert.equal(await questions[1], 'sent');
  assert.equal(decide.length, 1);
});

test('r18 r19 once: a session that is deleted meanwhile has no place for the result', async () => {
  const client = await open({ store: new MemoryLogStore() });
  const { send, runs } = sender(await client.session('s'));
  const lost = send(mail, { callId: 'c' });
  await waitFor(() => runs.length);
  await client.deleteSession('s');
  runs[0].end('sent');
  await assert.rejects(lost, { code: 'not_found' });
});

test('r19 once: what is no session or no option is refused', async () => {
  const [session] = await openings(1);
  const execute = () => {};
  const refused = (tool, target = session) =>
    assert.throws(() => once(target, tool), { name: 'RethreadError', code: 'config_invalid' }, JSON.stringify(tool));
  refused({ name: 't', execute }, null);
  refused({ name: 't', execute }, await open());
  for (const tool of [undefined, null, execute, {}, { name: 't' }, { execute }, { name: '', execute }]) refused(tool);
  for (const more of [
    { onInterrupted: 'ask' },
    { callId: 'c' },
    { saveTimeoutMs: -1 },
    { saveTimeoutMs: '1' },
    { retry: 1 },
  ])
    refused({ name: 't', execute, ...more });
});
