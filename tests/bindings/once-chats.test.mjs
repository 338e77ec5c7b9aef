// `once` in a chat, which has the calls of stored answers (R18, R19).

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { once } from 'rethread/once';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { MAY_HAVE_RUN, mail, openings, sender, waitFor } from './once-senders.mjs';

const question = { role: 'user', content: 'Write to Ann.' };
const asking = (to, id = 'call_0') => ({
  role: 'assistant',
  content: null,
  tool_calls: [{ id, type: 'function', function: { name: 'send_mail', arguments: JSON.stringify({ to }) } }],
});
const result = (content) => ({ role: 'tool', tool_call_id: 'call_0', content });
const messagesOf = async (session) => {
  const { body } = await session.render({ dialect: 'openai-chat', replay: { freshness: Infinity } });
  return JSON.parse(new TextDecoder().decode(body)).messages;
};

/** Without the ids of calls: a request gives each call its own. */
const shown = (messages) =>
  messages.map(({ role, content, tool_calls: calls }) => [role, content, calls?.map((call) => call.function)]);

test('r18 r19 once: in a chat the call is that of the stored answer, an id that comes again is another call, and checkpoints go on', async () => {
  const store = new MemoryLogStore();
  const [chat, elsewhere] = await openings(2, store);
  const loop = chat.external({ persistence: 'call' });
  const { send, runs } = sender(chat);
  const messages = [question];
  for (const to of ['ann', 'bob']) {
    messages.push(asking(to));
    await loop.checkpoint({ messages }, 'openai-chat');
    // A schema adds what the model left out.
    const sent = send({ to, cc: [] }, { callId: 'call_0' });
    await waitFor(() => runs.at(-1)?.args.to === to);
    await elsewhere.refresh();
    await assert.rejects(sender(elsewhere).send({ to, cc: [] }, { callId: 'call_0' }), MAY_HAVE_RUN);
    assert.match((await messagesOf(chat)).at(-1).content, /may or may not have run/);
    runs.at(-1).end(`sent to ${to}`);
    messages.push(result(await sent));
    assert.deepEqual(shown(await messagesOf(chat)), shown(messages));
    await loop.checkpoint({ messages }, 'openai-chat');
    assert.equal(await sender(elsewhere).send({ to, cc: [] }, { callId: 'call_0' }), `sent to ${to}`);
    await assert.rejects(send({ to }, { callId: 'call_0' }), { code: 'conflict' });
  }
  messages.push({ role: 'assistant', content: 'Done.' });
  await loop.checkpoint({ messages }, 'openai-chat');
  await loop.end();
  await elsewhere.refresh();
  assert.deepEqual(shown(await messagesOf(elsewhere)), shown(messages));
  assert.equal(runs.length, 2);
});

/** An answer with a call for each of these, whose ids are equal. */
const askingAll = (...to) => ({ ...asking(to[0]), tool_calls: to.flatMap((one) => asking(one).tool_calls) });

test('r18 r19 once: calls of one answer with one id are told apart by name and arguments, or by the stored id', async () => {
  const [chat, elsewhere] = await openings(2);
  const answer = askingAll('ann', 'bob', 'bob');
  answer.tool_calls[0].function.name = 'pay';
  await chat.append({ messages: [question, answer] }, 'openai-chat');
  const stored = (await chat.invocations({ status: 'pending' })).items.toReversed();
  const ran = [];
  const execute = (name) => (args) => ran.push([name, args.to]) && `${name} ${args.to} ${ran.length}`;
  const toolsOf = (session) => ['pay', 'send_mail'].map((name) => once(session, { name, execute: execute(name) }));
  const [pay, send] = toolsOf(chat);
  // A schema adds what the model left out: the name tells it apart.
  assert.equal(await pay({ to: 'ann', cc: [] }, { callId: 'call_0' }), 'pay ann 1');
  const ambiguous = { code: 'conflict', message: /2 calls call_0 .*send_mail was not run; pass the `id`/ };
  for (const to of ['bob', 'carl']) await assert.rejects(send({ to }, { callId: 'call_0' }), ambiguous);
  assert.equal(ran.length, 1);
  const { id } = stored[1];
  await assert.rejects(pay({ to: 'bob' }, { callId: id }), { code: 'conflict', message: /with the tool send_mail/ });
  assert.equal(await send({ to: 'bob' }, { callId: id }), 'send_mail bob 2');
  assert.equal(await send({ to: 'bob' }, { callId: stored[2].id }), 'send_mail bob 3');
  await elsewhere.refresh();
  const [, again] = toolsOf(elsewhere);
  assert.equal(await again({ to: 'bob' }, { callId: id }), 'send_mail bob 2');
  assert.deepEqual(ran, [['pay', 'ann'], ...Array(2).fill(['send_mail', 'bob'])]);
  const told = (await messagesOf(elsewhere)).slice(2).map(({ content }) => content);
  assert.deepEqual(told, ['pay ann 1', 'send_mail bob 2', 'send_mail bob 3']);
});

test('r18 r19 once: of two calls of one answer with one id, one that may have run holds up no other', async () => {
  const [killed, session] = await openings(2);
  await killed.append({ messages: [question, askingAll('ann', 'bob')] }, 'openai-chat');
  const lost = sender(killed);
  lost.send({ to: 'ann' }, { callId: 'call_0' });
  await waitFor(() => lost.runs.length);
  await session.refresh();
  const asked = [];
  const { send, runs } = sender(session, { onInterrupted: (call) => asked.push(call) && 'report' });
  await assert.rejects(send({ to: 'ann' }, { callId: 'call_0' }), MAY_HAVE_RUN);
  const [, { id }] = (await session.invocations({ status: 'pending' })).items;
  await assert.rejects(send({ to: 'ann' }, { callId: id }), MAY_HAVE_RUN);
  assert.deepEqual(asked, Array(2).fill({ callId: 'call_0', name: 'send_mail', arguments: { to: 'ann' } }));
  const sent = send({ to: 'bob' }, { callId: 'call_0' });
  await waitFor(() => runs.length);
  runs[0].end('sent to bob');
  assert.equal(await sent, 'sent to bob');
  assert.match((await messagesOf(session))[2].content, /may or may not have run/);
  assert.equal((await messagesOf(session))[3].content, 'sent to bob');
});

test('r18 r19 once: the late result of a call that the model was told is interrupted takes its place', async () => {
  const [chat, elsewhere] = await openings(2);
  const loop = chat.external({ persistence: 'call' });
  await loop.checkpoint({ messages: [question, asking('ann')] }, 'openai-chat');
  const { send, runs } = sender(elsewhere);
  const late = send(mail, { callId: 'call_0' });
  await waitFor(() => runs.length);
  await chat.refresh();
  const told = await messagesOf(chat);
  const going = chat.external({ persistence: 'call' });
  await going.checkpoint({ messages: [...told, { role: 'assistant', content: 'I do not know.' }] }, 'openai-chat');
  await assert.rejects(sender(chat).send(mail, { callId: 'call_0' }), MAY_HAVE_RUN);
  runs[0].end('sent');
  assert.equal(await late, 'sent');
  assert.equal(await sender(chat).send(mail, { callId: 'call_0' }), 'sent');
  assert.equal((await messagesOf(chat))[2].content, 'sent');

  // Nobody knows who has started this one.
  const more = [...(await messagesOf(chat)), { role: 'user', content: 'And Bob.' }, asking('bob', 'call_1')];
  await going.checkpoint({ messages: more }, 'openai-chat');
  const toldAgain = await messagesOf(chat);
  await going.checkpoint({ messages: [...toldAgain, { role: 'assistant', content: 'Who knows.' }] }, 'openai-chat');
  const { send: sendLate, runs: lateRuns } = sender(chat);
  await assert.rejects(sendLate({ to: 'bob' }, { callId: 'call_1' }), MAY_HAVE_RUN);
  assert.equal(lateRuns.length, 0);
});

test('r18 r19 once: a call that was started in one branch does not run in another one, and its result is in both', async () => {
  for (const which of ['the fork', 'the branch that was forked']) {
    const store = new MemoryLogStore();
    const [chat, elsewhere] = await openings(2, store);
    await chat.append({ messages: [question, asking('ann')] }, 'openai-chat');
    const last = (await chat.messages()).items.at(-1);
    const isFork = which === 'the fork';
    const forkNow = async () => {
      const { branch } = await chat.fork(last.id);
      await chat.switchTo(branch);
    };
    if (!isFork) await forkNow();
    const { send, runs } = sender(chat);
    const sent = send(mail, { callId: 'call_0' });
    await waitFor(() => runs.length);
    if (isFork) await forkNow();
    await elsewhere.switchTo(isFork ? chat.branch : 'main');
    const other = sender(elsewhere);
    await assert.rejects(other.send(mail, { callId: 'call_0' }), MAY_HAVE_RUN);
    runs[0].end('sent');
    assert.equal(await sent, 'sent');
    assert.equal(await other.send(mail, { callId: 'call_0' }), 'sent');
    assert.deepEqual([runs.length, other.runs.length], [1, 0]);
  }
});

test('r18 r19 once: a call whose start was withdrawn can run in a branch that was forked before that', async () => {
  const [chat] = await openings(1);
  await chat.append({ messages: [question, asking('ann')] }, 'openai-chat');
  const last = (await chat.messages()).items.at(-1);
  const { branch } = await chat.fork(last.id);
  const abort = new AbortController();
  const stored = chat.append.bind(chat);
  chat.append = (...args) => stored(...args).finally(() => abort.abort());
  await assert.rejects(sender(chat).send(mail, { callId: 'call_0', signal: abort.signal }), { name: 'AbortError' });
  await chat.switchTo(branch);
  assert.equal(await once(chat, { name: 'send_mail', execute: () => 'sent' })(mail, { callId: 'call_0' }), 'sent');
});

test('r18 r19 once: the arguments of a call are erased with its message', async () => {
  const [chat] = await openings(1);
  await chat.append({ messages: [question, asking('somebody')] }, 'openai-chat');
  const last = (await chat.messages()).items.at(-1);
  const send = once(chat, { name: 'send_mail', execute: () => 'sent' });
  for (let time = 0; time < 2; time += 1) assert.equal(await send({ to: 'somebody' }, { callId: 'call_0' }), 'sent');
  await chat.deleteMessages([last.id]);
  assert.ok(!JSON.stringify((await chat.messages()).items).includes('somebody'));
});
