// Citations "store" where results are stored before their turn's answer, with a session in memory, in Node.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { laneOf } from '../browser/page.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { control } from './scenarios/kit.mjs';

const FOUND = [
  { source_number: 4, content: 'four' },
  { source_number: 9, content: 'nine' },
];
const KEPT = [FOUND[0]];
const policy = { replay: { citations: 'store', freshness: Infinity } };
const call = (id) => ({ id, type: 'function', function: { name: 'search', arguments: '{}' } });
const question = { role: 'user', content: 'Search.' };
const asks = { role: 'assistant', content: null, tool_calls: [call('call_1')] };
const found = { role: 'tool', tool_call_id: 'call_1', content: JSON.stringify(FOUND) };
const answer = { role: 'assistant', content: 'As [source4] says.' };

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

/** What a page, a request and the audit table have of the results. */
async function shown(store, session) {
  const { body, maxSourceNumber } = await session.render({
    dialect: 'openai-chat',
    params: { model: 'm' },
    input: 'And now?',
  });
  const sent = JSON.parse(new TextDecoder().decode(body))
    .messages.filter(({ role }) => role === 'tool')
    .map(({ content }) => JSON.parse(content));
  const payload = (await store.invocations({ session: session.id, payload: true })).items
    .map(({ result }) => result.content)
    .map((one) => (typeof one === 'string' ? JSON.parse(one) : one));
  const { messages } = session.view().getSnapshot();
  const viewed = messages
    .flatMap(({ parts }) => parts)
    .filter(({ type }) => type === 'tool')
    .map(({ call: { result } }) => result.content)
    .map((one) => (typeof one === 'string' ? JSON.parse(one) : one));
  return { sent, payload, viewed, maxSourceNumber };
}
const all = (results) => ({ sent: results, payload: results, viewed: results, maxSourceNumber: 9 });

test('r08 an answer that is appended later replaces the results of its turn, in requests, views, the audit table and copies', async () => {
  const store = await open({ store: 'memory', ...policy });
  const session = await store.session('s');
  await session.append({ messages: [question, asks] }, 'openai-chat');
  await session.append({ messages: [found] }, 'openai-chat');
  assert.deepEqual(await shown(store, session), all([FOUND]), 'without an answer all of them stay');
  await session.append({ messages: [answer] }, 'openai-chat');
  assert.deepEqual(await shown(store, session), all([KEPT]));
  const copy = await store.importSession(await store.exportSession('s'), { id: 'copy' });
  assert.deepEqual(await shown(store, copy), all([KEPT]));
  await store.close();
});

test('r08 r19 a loop of the application replaces the results of its earlier checkpoints', async () => {
  const store = await open({ store: 'memory', ...policy });
  const session = await store.session('s');
  const loop = session.external({ persistence: 'call' });
  const messages = [];
  for (const next of [[question, asks], [found], [answer]]) {
    messages.push(...next);
    await loop.checkpoint({ messages }, 'openai-chat');
  }
  await loop.checkpoint({ messages }, 'openai-chat');
  await loop.end();
  assert.deepEqual(await shown(store, session), all([KEPT]));
  assert.equal((await session.messages()).items.length, 3);
  await store.close();
});

for (const persistence of ['run', 'call', 'result']) {
  test(`r08 a run in mode ${persistence} stores the cited sources, of every round`, async () => {
    const { base, chat } = laneOf(standIn.url, `citations-${persistence}`);
    const env = { lane: { base } };
    await control.script(env, [
      { calls: [{ name: 'search', arguments: {} }] },
      {
        calls: [
          { name: 'search', arguments: {} },
          { name: 'search', arguments: {} },
        ],
      },
      { text: 'As [source4] says.' },
    ]);
    const store = await open({ store: 'memory', ...policy });
    const session = await store.session('s', { persistence });
    const tools = { search: { parameters: { type: 'object', properties: {} }, execute: () => FOUND } };
    const provider = { dialect: 'openai-chat', url: chat, params: { model: 'stand-in' }, stream: true };
    const { status, error, report } = await drive(await session.run({ input: 'Search.', provider, tools })).result;
    assert.equal(status, 'finished', JSON.stringify(error));
    assert.equal(report.filter(({ code }) => code === 'uncited').length, 3);
    assert.deepEqual(await shown(store, session), all([KEPT, KEPT, KEPT]));
    await store.close();
  });
}
