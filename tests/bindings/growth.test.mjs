// R63: work that a model or an import controls, counted. Times are the bench's (`npm run bench -- growth --node`).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';

const call = (at) => ({ id: `call_${at}`, type: 'function', function: { name: 'look', arguments: `{"n":${at}}` } });
const calls = (count) => Array.from({ length: count }, (_, at) => call(at));
const answer = (message) =>
  new Response(
    JSON.stringify({
      id: 'r',
      model: 'm',
      choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
    }),
  );
const provider = { dialect: 'openai-chat', url: 'http://localhost/', params: { model: 'm' }, stream: false };
const look = { parameters: { type: 'object', properties: {} }, execute: ({ n }) => ({ n }) };

/** How many effects a host is given over a run whose first answer has `count` calls. */
async function effectsGiven(count, options) {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const run = await session.run({ input: 'go', provider, tools: { look } });
  let given = 0;
  for (const method of ['effects', 'takeEffects']) {
    const plain = run[method].bind(run);
    run[method] = () => {
      const list = plain();
      given += method === 'effects' ? list.length : list.opened.length + list.closed.length;
      return list;
    };
  }
  const answers = [answer({ content: null, tool_calls: calls(count) }), answer({ content: 'Done.' })];
  const { status } = await drive(run, { ...options, fetch: async () => answers.shift() }).result;
  assert.equal(status, 'finished');
  assert.equal(
    (await session.invocations({ limit: 10_000 })).items.filter(({ status: one }) => one === 'ok').length,
    count,
  );
  await client.close();
  return given;
}

test('r63: drive receives each of many parallel calls once, and one final event', async () => {
  for (const options of [{}, { toolConcurrency: 3 }]) {
    for (const count of [20, 200]) {
      const given = await effectsGiven(count, options);
      // Each once, each end once, and the first of them when `drive` begins.
      assert.ok(given <= 2 * (count + 2) + 1, `${given} effects for ${count} calls`);
    }
  }
});

test('r63: a second drive continues with the open effects of a run whose first drive stopped', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const run = await session.run({ input: 'go', provider, tools: { look } });
  // Whoever looked before took them, and did nothing.
  assert.equal(run.takeEffects().opened.length, 1);
  const { status } = await drive(run, { fetch: async () => answer({ content: 'Done.' }) }).result;
  assert.equal(status, 'finished');
  await client.close();
});

test('r63: pages with payload are consistent with writes between them', async () => {
  // All at one time, so that the order of rows is that of their calls, the last one first.
  const client = await open({ store: 'memory', now: () => 1_000 });
  const session = await client.session('s');
  const other = await client.session('t');
  const results = (from, to, text) =>
    Array.from({ length: to - from }, (_, at) => ({
      role: 'tool',
      tool_call_id: `call_${from + at}`,
      content: `${text} ${from + at}`,
    }));
  await session.append(
    {
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: null, tool_calls: calls(30) },
        ...results(20, 30, 'early'),
      ],
    },
    'openai-chat',
  );
  await other.append(
    {
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: null, tool_calls: [call(0)] },
        ...results(0, 1, 'other'),
      ],
    },
    'openai-chat',
  );
  const all = [];
  let cursor;
  for (let page = 0; ; page += 1) {
    const found = await client.invocations({ payload: true, limit: 8, cursor });
    all.push(...found.items);
    cursor = found.cursor;
    if (!cursor) break;
    // The record of the calls stays; the results of the next page are in a new one.
    if (page === 0) await session.append({ messages: results(0, 20, 'late') }, 'openai-chat');
  }
  const said = all.map(({ sessionId, callId, arguments: given, result }) => [
    sessionId,
    callId,
    given.n,
    result.content,
  ]);
  assert.equal(said.length, 31);
  for (const [sessionId, callId, n, result] of said) {
    assert.equal(callId, `call_${n}`);
    assert.equal(result, sessionId === 't' ? `other ${n}` : `${n >= 20 ? 'early' : 'late'} ${n}`);
  }
  // A session that is deleted and begun anew has other records under the same keys.
  const first = await client.invocations({ session: 's', payload: true, limit: 8 });
  await client.deleteSession('s');
  const anew = await client.session('s');
  await anew.append(
    {
      messages: [
        { role: 'user', content: 'go' },
        { role: 'assistant', content: null, tool_calls: calls(20) },
        ...results(0, 20, 'new'),
      ],
    },
    'openai-chat',
  );
  const next = await client.invocations({ session: 's', payload: true, limit: 8, cursor: first.cursor });
  assert.ok(next.items.length > 0 && next.items.every(({ result }) => result.content.startsWith('new')));
  await client.close();
});
