// `durableTools` of `rethread/ai-sdk` without a loop: one call of a tool that is asked for more than once.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { durableTools } from 'rethread/ai-sdk';

/** A session with an open call of `look`. Ids are the same in each. */
async function sessionWithCall() {
  let count = 0;
  const store = await open({ store: 'memory', newId: () => `id-${(count += 1)}` });
  const session = await store.session('chat');
  const call = { type: 'tool', callId: 'c1', name: 'look', arguments: '{}' };
  await session.append([{ role: 'assistant', parts: [call] }]);
  return session;
}

test('r53 a call that is made twice at once runs its tool once, and one of another store runs its own', {
  timeout: 20_000,
}, async () => {
  const ran = [];
  const ends = [];
  const toolOf = (session, name) => {
    const execute = () => {
      ran.push(name);
      return new Promise((resolve) => ends.push(() => resolve(name)));
    };
    return durableTools({ look: { execute } }, session).look;
  };
  const [one, other] = [await sessionWithCall(), await sessionWithCall()];
  const look = (tool) => tool.execute({}, { toolCallId: 'c1', messages: [] });
  const first = toolOf(one, 'first');
  const calls = [look(first), look(first), look(toolOf(other, 'other'))];
  while (ends.length < 2) await new Promise((resolve) => setTimeout(resolve, 5));
  // The second call has looked for the first one by then.
  await one.refresh();
  for (const end of ends) end();
  assert.deepEqual(await Promise.all(calls), ['first', 'first', 'other']);
  assert.deepEqual(ran.sort(), ['first', 'other']);
});

test('r53 of two calls with one id in one answer the second is not given the result of the first', {
  timeout: 20_000,
}, async () => {
  const session = await sessionWithCall();
  const ran = [];
  const ends = [];
  const execute = ({ to }) => {
    ran.push(to);
    return new Promise((resolve) => ends.push(() => resolve(`sent to ${to}`)));
  };
  const { look } = durableTools({ look: { execute } }, session);
  const call = (input) => look.execute(input, { toolCallId: 'c1', messages: [] });
  const [ann, bob, again] = [call({ to: 'ann', cc: [] }), call({ to: 'bob' }), call({ cc: [], to: 'ann' })];
  await assert.rejects(bob, { code: 'conflict', message: /several calls c1, and look was not run/ });
  while (!ends.length) await new Promise((resolve) => setTimeout(resolve, 5));
  ends[0]();
  assert.deepEqual(await Promise.all([ann, again]), ['sent to ann', 'sent to ann']);
  assert.deepEqual(ran, ['ann']);
});
