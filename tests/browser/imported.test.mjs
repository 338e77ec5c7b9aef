// An imported history in IndexedDB: what its append said of freshness outlives the page, and open calls are answered
// after a reload.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { openWorld } from './page.mjs';

let world;
before(async () => {
  world = await openWorld();
});
after(() => world?.close());

const opened = async (name, context) => {
  const page = await world.page(context);
  await page.evaluate(async (name) => {
    globalThis.client = await rethread.open({ name });
    globalThis.session = await client.session('s');
    globalThis.shown = async () => {
      const { body } = await session.render({ dialect: 'openai-chat', params: { model: 'm' }, input: 'And now?' });
      return JSON.parse(new TextDecoder().decode(body))
        .messages.filter(({ role }) => role === 'tool')
        .map(({ content }) => content);
    };
    globalThis.outcome = (work) =>
      work.then(
        () => 'stored',
        (error) => error.code,
      );
    globalThis.call = (callId, extra) => ({ type: 'tool', callId, name: 'look', arguments: {}, ...extra });
  }, name);
  return page;
};

test('r10 the freshness of an append survives a reload, for its results and for calls that are answered later', async () => {
  const context = await world.context();
  const one = await opened('freshness', context);
  await one.evaluate(async () => {
    const old = { createdAt: 1000 };
    const text = { type: 'text', text: 'x' };
    await session.append(
      [
        { role: 'user', parts: [text], ...old },
        { role: 'assistant', parts: [call('a', { result: 'kept' }), text], ...old },
      ],
      { freshness: Infinity },
    );
    await session.append([
      { role: 'user', parts: [text], ...old },
      { role: 'assistant', parts: [call('b', { result: 'dropped' }), text], ...old },
    ]);
    await session.append(
      [
        { role: 'user', parts: [text], ...old },
        { role: 'assistant', parts: [call('c'), call('d')], ...old },
        { role: 'assistant', parts: [text], ...old },
      ],
      { freshness: 60_000 },
    );
  });
  await one.close();
  const two = await opened('freshness', context);
  const facts = await two.evaluate(async () => {
    const before = await shown();
    await session.answer('c', { type: 'tool_result', content: 'late', finishedAt: 1000 }, { freshness: Infinity });
    await session.answer('d', { type: 'tool_result', content: 'too late', finishedAt: 1000 });
    return { before, after: await shown() };
  });
  assert.equal(facts.before.length, 3);
  assert.equal(facts.before[0], 'kept');
  assert.deepEqual(facts.after, ['kept', 'late']);
  await two.close();
  const three = await opened('freshness', context);
  assert.deepEqual(await three.evaluate(() => shown()), ['kept', 'late'], 'after another reload');
  assert.deepEqual(three.complaints, []);
});

test('r47 of two tabs that answer the same calls at once, one succeeds and the other gets an error', async () => {
  const context = await world.context();
  const one = await opened('answers', context);
  const count = 10;
  await one.evaluate(
    (count) =>
      session.append([
        { role: 'user', parts: [{ type: 'text', text: 'q' }] },
        { role: 'assistant', parts: Array.from({ length: count }, (_, n) => call(`c${n}`)) },
      ]),
    count,
  );
  const two = await opened('answers', context);
  const answerAll = (page, tab) =>
    page.evaluate(
      ([count, tab]) =>
        Promise.all(
          Array.from({ length: count }, (_, n) => {
            const answer = { type: 'tool_result', content: `${tab} ${n}` };
            return outcome(
              n % 2
                ? session.answer(`c${n}`, answer)
                : session.append([
                    { role: 'tool', parts: [{ type: 'tool_result', callId: `c${n}`, result: answer.content }] },
                  ]),
            );
          }),
        ),
      [count, tab],
    );
  const outcomes = await Promise.all([answerAll(one, 'one'), answerAll(two, 'two')]);
  const results = await two.evaluate(async () => {
    await session.refresh();
    return (await session.invocations({ payload: true })).items
      .toSorted((a, b) => a.sequenceIndex - b.sequenceIndex)
      .map(({ result }) => result?.content);
  });
  for (let n = 0; n < count; n += 1) {
    const winner = outcomes[0][n] === 'stored' ? 'one' : 'two';
    assert.deepEqual(
      outcomes.map((tab) => tab[n]).toSorted(),
      [n % 2 ? 'wrong_state' : 'invalid_input', 'stored'].toSorted(),
      `call ${n}`,
    );
    assert.equal(results[n], `${winner} ${n}`);
  }
  assert.deepEqual([...one.complaints, ...two.complaints], []);
});
