// `once` in a chat: calls that it must not run although no start of them is stored (R18, R19).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { fromUIMessages } from 'rethread/ai-sdk';
import { once } from 'rethread/once';
import { MAY_HAVE_RUN, openings, sender, waitFor } from './once-senders.mjs';

const DIALECT = 'openai-chat';
const user = (content) => ({ role: 'user', content });
const said = (content) => ({ role: 'assistant', content });
const calls = (...written) => ({
  role: 'assistant',
  content: null,
  tool_calls: written.map((text, at) => ({
    id: `call_${at}`,
    type: 'function',
    function: { name: 'send_mail', arguments: text },
  })),
});
const toAnn = { to: 'ann' };
const answer = calls(JSON.stringify(toAnn));
const ANN = [toAnn, { callId: 'call_0' }];
const append = (session, ...messages) => session.append({ messages }, DIALECT);
const told = async (session) =>
  (await session.render({ dialect: DIALECT })).json.messages.find(({ role }) => role === 'tool').content;

/** The chat before `once` is asked for the call. */
const LEFT_BEHIND = {
  'whose answer was imported': (session) =>
    session.append({ messages: [user('Write.'), answer] }, DIALECT, { source: { type: 'history' } }),
  'after which the user has spoken': async (session) => {
    await append(session, user('Write.'), answer);
    await append(session, user('Hello?'));
  },
  'which the model has passed over': (session) => append(session, user('Write.'), answer, said('And now?')),
  'that precedes the last answer of an import': (session) =>
    append(session, user('Write.'), answer, calls('{"to":"bob"}')),
};

for (const [which, prepare] of Object.entries(LEFT_BEHIND)) {
  test(`r18 r19 once: a call ${which} is unknown, and does not run`, async () => {
    const [session] = await openings(1);
    await prepare(session);
    const [{ id }] = (await session.invocations({ status: 'pending' })).items.toReversed();
    const call = [toAnn, { callId: id }];
    const { send, runs } = sender(session);
    for (let time = 0; time < 2; time += 1) await assert.rejects(send(...call), MAY_HAVE_RUN);
    assert.equal(runs.length, 0);
    assert.match(await told(session), /may or may not have run/);
    const known = sender(session, { onInterrupted: () => ({ result: 'sent long ago' }) });
    assert.equal(await known.send(...call), 'sent long ago');
    assert.equal(await send(...call), 'sent long ago');
    assert.deepEqual([runs.length, known.runs.length, await told(session)], [0, 0, 'sent long ago']);
  });
}

test('r18 r19 once: a call that was left behind is asked about with other arguments too, as a schema adds them', async () => {
  const [session] = await openings(1);
  await append(session, user('Write.'), answer, user('Hello?'));
  const { send, runs } = sender(session);
  await assert.rejects(send({ ...toAnn, cc: [] }, { callId: 'call_0' }), MAY_HAVE_RUN);
  assert.equal(runs.length, 0);
});

test('r18 r19 once: the call of an answer that was stored just now runs, with a system message after it, too', async () => {
  const [session] = await openings(1);
  await append(session, user('Write.'), answer);
  await session.append([
    { role: 'system', parts: [{ type: 'text', text: 'Be brief.' }] },
    { role: 'assistant', parts: [{ type: 'data', name: 'note', value: 1 }] },
  ]);
  const { send, runs } = sender(session);
  const sent = send(...ANN);
  await waitFor(() => runs.length);
  runs[0].end('sent');
  assert.equal(await sent, 'sent');
});

test('r18 r19 once: a call that was left behind runs once if it may run again, and not for a second process that asked at once', async () => {
  const [one, two] = await openings(2);
  await append(one, user('Write.'), answer, user('Hello?'));
  await two.refresh();
  const decisions = [];
  const onInterrupted = () => new Promise((resolve) => decisions.push(resolve));
  const senders = [one, two].map((session) => sender(session, { onInterrupted }));
  const sent = senders.map(({ send }) => send(...ANN));
  await waitFor(() => decisions.length === 2);
  decisions[0]('rerun');
  const executions = () => senders[0].runs.length + senders[1].runs.length;
  await waitFor(executions);
  const [at] = [0, 1].filter((which) => senders[which].runs.length);
  decisions[1]('rerun');
  // It is asked again: the call has begun since.
  await waitFor(() => decisions.length === 3 || executions() > 1);
  assert.equal(executions(), 1);
  decisions[2]('report');
  await assert.rejects(sent[1 - at], MAY_HAVE_RUN);
  senders[at].runs[0].end('sent');
  assert.equal(await sent[at], 'sent');
  assert.equal(executions(), 1);
});

test('r18 r19 once: a start that was withdrawn before the user spoke can still run, and so can calls of a journal of their own', async () => {
  const [chat, journal] = [(await openings(1))[0], (await openings(1))[0]];
  await append(chat, user('Write.'), answer);
  for (const session of [chat, journal]) {
    const { send, runs } = sender(session);
    const abort = new AbortController();
    const stored = session.append.bind(session);
    session.append = (...args) => stored(...args).finally(() => abort.abort());
    await assert.rejects(send(toAnn, { callId: 'call_0', signal: abort.signal }), { name: 'AbortError' });
    assert.equal(runs.length, 0);
    const other = send({ to: 'bob' }, { callId: 'another' });
    await waitFor(() => runs.length === 1);
    runs[0].end('sent');
    await other;
    if (session === chat) await append(chat, user('Hello?'));
    const again = once(session, { name: 'send_mail', execute: () => 'sent' });
    assert.equal(await again(...ANN), 'sent');
  }
});

test('r18 r19 once: a UIMessage history that is appended as imported runs nothing', async () => {
  const [session] = await openings(1);
  const call = { type: 'tool-send_mail', toolCallId: 'call_0', state: 'input-available', input: toAnn };
  const messages = [
    { id: 'u', role: 'user', parts: [{ type: 'text', text: 'Write.' }] },
    { id: 'a', role: 'assistant', parts: [{ type: 'step-start' }, call] },
  ];
  await session.append(fromUIMessages(messages), { source: { type: 'history' } });
  await assert.rejects(sender(session).send(...ANN), MAY_HAVE_RUN);
});

test('r18 r19 once: a call whose arguments the model did not write as JSON does not run, and the model learns why', async () => {
  const [session] = await openings(1);
  await append(session, user('Write.'), calls('{"to":', '', '"ann"'));
  const ran = [];
  const send = once(session, { name: 'send_mail', execute: (args) => ran.push(args) });
  const pending = (await session.invocations({ status: 'pending', payload: true })).items.toReversed();
  const [cut, empty, text] = pending.map(
    ({ id, arguments: args }) =>
      () =>
        send(args, { callId: id }),
  );
  await assert.rejects(cut(), { code: 'invalid_input', message: /arguments of this call are not valid JSON/ });
  assert.match(await told(session), /Not run: the arguments .* Make the call again/);
  const again = {
    name: 'RethreadError',
    code: 'invalid_input',
    message: /not valid JSON/,
    details: { callId: 'call_0' },
  };
  for (let time = 0; time < 2; time += 1) await assert.rejects(cut(), again);
  assert.deepEqual([await empty(), await text()], [1, 2]);
  assert.deepEqual(ran, [{}, 'ann']);
  assert.equal((await session.invocations({ status: 'pending' })).items.length, 0);
});

test('r18 r19 once: arguments that are a text of JSON are those that the text has', async () => {
  const text = JSON.stringify(toAnn);
  const neutral = (args) => ({
    role: 'assistant',
    parts: [{ type: 'tool', callId: 'call_0', name: 'send_mail', arguments: args }],
  });
  for (const stored of [text, toAnn, `{ "to": "ann" }`]) {
    const [session] = await openings(1);
    await session.append([neutral(stored)]);
    const ran = [];
    const send = once(session, { name: 'send_mail', execute: (args) => ran.push(args) });
    for (const args of [text, toAnn, ` ${text}`]) assert.equal(await send(args, { callId: 'call_0' }), 1);
    await assert.rejects(send('{"to":"bob"}', { callId: 'call_0' }), { code: 'conflict' });
    assert.deepEqual(ran, [text]);
  }
  // Of two calls with one id the text names one, as its value does.
  const [session] = await openings(1);
  const two = calls('{"to":"bob"}', text);
  for (const call of two.tool_calls) call.id = 'call_0';
  await append(session, user('Write.'), two);
  const ran = [];
  const send = once(session, { name: 'send_mail', execute: (args) => ran.push(args) });
  assert.equal(await send(text, { callId: 'call_0' }), 1);
  assert.equal(await send('{"to":"bob"}', { callId: 'call_0' }), 2);
  assert.equal(await send(toAnn, { callId: 'call_0' }), 1);
  assert.deepEqual(ran, [text, '{"to":"bob"}']);
  const told = (await session.render({ dialect: DIALECT, params: { model: 'm' } })).json.messages.slice(2);
  assert.deepEqual(
    told.map(({ content }) => content),
    ['2', '1'],
  );
});
