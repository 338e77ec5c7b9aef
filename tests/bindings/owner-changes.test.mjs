// R22 over HTTP: a session that a service owned goes on here, and the other way, with a report of what could not come
// along; and a chain that the service has forgotten.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { drive } from 'rethread/host';
import { open } from 'rethread';
import { startStandIn } from '../stand-in/server.mjs';

let standIn;
let rethread;
before(async () => {
  standIn = await startStandIn();
  rethread = await open({ store: 'memory' });
});
after(async () => {
  await rethread?.close();
  await standIn?.close();
});

/** A service of its own, and a session that asks it. */
function serviceOf(name) {
  const base = `${standIn.url}/lane/${name}`;
  const post = async (path, body) =>
    (await fetch(`${base}${path}`, { method: 'POST', body: JSON.stringify(body) })).json();
  const ask = async (session, input, ...steps) => {
    await post('/control/script', { steps, delayMs: 0 });
    const provider = { dialect: 'openai-responses', url: `${base}/v1/responses`, params: { model: 'm' } };
    const run = await session.run({ input, provider, tools: { look: { execute: () => 'found' } } });
    const result = await drive(run).result;
    assert.equal(result.status, 'finished', JSON.stringify(result.error));
    return result.report.filter(({ code }) => ['not_transferred', 'chain_restarted'].includes(code));
  };
  return {
    post,
    ask,
    service: async () => (await fetch(`${base}/control/service`)).json(),
    requests: async () => (await fetch(`${base}/control/requests`)).json(),
  };
}
const call = { calls: [{ name: 'look', arguments: {} }] };
const kinds = (items) => items.map((item) => item.type ?? item.role);

test('r22 a chain goes on here, then in a conversation, and the report names what only the service has', async () => {
  const { post, ask, service } = serviceOf('changes');
  // Another program began the chain.
  const { id: previousResponseId } = await post('/v1/responses', { model: 'm', input: 'Before.' });
  await rethread.session('s', { owner: { kind: 'response', previousResponseId } });
  const session = await rethread.session('s');
  assert.deepEqual(await ask(session, 'One', { ...call, thinking: { text: 'Hm.' } }, { text: 'First.' }), []);
  assert.equal((await service()).newest.items.length, 7);

  await rethread.session('s', { owner: { kind: 'session' } });
  const { report } = await session.render({ dialect: 'openai-responses', input: 'Two' });
  const findings = await ask(session, 'Two', { text: 'Second.' });
  assert.deepEqual(
    report.filter(({ code }) => code === 'not_transferred'),
    findings,
    'a render reports what the run will',
  );
  const answer = (await session.messages()).items.find(({ role }) => role === 'assistant');
  assert.deepEqual(
    findings.map(({ severity, messageId, action }) => [severity, messageId ?? null, action ?? null]),
    [
      ['warning', null, null],
      ['warning', answer.id, 'kept'],
    ],
  );
  assert.match(findings[0].message, new RegExp(previousResponseId));
  assert.match(findings[1].message, /the service that gave this answer has the content/);
  // What came before is missing, and nothing else.
  const local = (await service()).newest.items;
  assert.deepEqual(kinds(local), [
    'user',
    'reasoning',
    'function_call',
    'function_call_output',
    'message',
    'user',
    'message',
  ]);
  assert.deepEqual(await ask(session, 'Three', { text: 'Third.' }), [], 'reported once');

  const { id: conversationId } = await post('/v1/conversations', {});
  await rethread.session('s', { owner: { kind: 'conversation', conversationId } });
  assert.deepEqual(await ask(session, 'Four', { text: 'Fourth.' }), [], 'the session has all of its own');
  assert.equal((await service()).conversations[conversationId].length, 11);
});

test('r25 an expired chain is restarted with the history', async () => {
  const { post, ask, service, requests } = serviceOf('expiry');
  const session = await rethread.session('expiry', { owner: { kind: 'response', auto: true } });
  await ask(session, 'One', call, { text: 'First.' });
  await post('/control/service', { days: 31 });
  const findings = await ask(session, 'Two', { text: 'Second.' });
  assert.deepEqual(
    findings.map(({ code, severity }) => [code, severity]),
    [['chain_restarted', 'warning']],
  );
  assert.deepEqual(await ask(session, 'Three', { text: 'Third.' }), []);
  assert.deepEqual(kinds((await service()).newest.items), [
    'user',
    'function_call',
    'function_call_output',
    'message',
    'user',
    'message',
    'user',
    'message',
  ]);
  assert.deepEqual(
    (await requests()).map(({ body, status }) => [body.input.length, status]),
    [
      [1, 200],
      [1, 200],
      [1, 400],
      [5, 200],
      [1, 200],
    ],
  );
});
