// r79: what a list shows of a session, and titles that the application makes, by JavaScript.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { laneOf } from '../browser/page.mjs';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { startStandIn } from '../stand-in/server.mjs';
import { until } from './scenarios/kit.mjs';

let standIn;
before(async () => {
  standIn = await startStandIn();
});
after(() => standIn.close());

const requestOf = (lane, input) => ({
  provider: { dialect: 'openai-chat', url: lane.chat, params: { model: 'm' } },
  tools: { pay: { parameters: { type: 'object', properties: {} }, needsApproval: true, execute: () => 'paid' } },
  input,
});

for (const [name, store] of [
  ['memory', () => 'memory'],
  ['a store of the application', () => new MemoryLogStore()],
  ['a key-value service', () => unstorage(createStorage())],
]) {
  test(`r79 a list shows the newest text, unread answers and pending approvals: ${name}`, async () => {
    const lane = laneOf(standIn.url, `overview-${name.replaceAll(' ', '-')}`);
    await lane.script([{ text: 'Fine,  thanks.' }, { calls: [{ name: 'pay', arguments: {} }] }, { text: 'Paid.' }]);
    const client = await open({ store: store() });
    const session = await client.session('s');
    const listed = async () => {
      const { preview, unread, pendingRuns, pendingApprovals } = (await client.sessions()).items[0];
      return [preview, unread, pendingRuns, pendingApprovals];
    };
    await session.update({ title: 'Empty' });
    assert.deepEqual(await listed(), [null, 0, 0, 0]);
    await session.append([{ role: 'user', parts: [{ type: 'text', text: `<b>${'x'.repeat(200)}` }] }]);
    assert.deepEqual(await listed(), [{ role: 'user', text: `<b>${'x'.repeat(136)}…` }, 0, 0, 0]);
    await drive(await session.run(requestOf(lane, 'How are you?'))).result;
    const fine = { role: 'assistant', text: 'Fine, thanks.' };
    assert.deepEqual(await listed(), [fine, 1, 0, 0]);
    let changes = 0;
    client.subscribe(() => {
      changes += 1;
    });
    assert.equal(await session.markRead(), undefined);
    assert.deepEqual([await listed(), changes], [[fine, 0, 0, 0], 1]);
    await session.markRead();
    assert.equal(changes, 1, 'nothing was unread');

    const run = await session.run(requestOf(lane, 'Pay.'));
    await drive(run).result;
    assert.deepEqual(await listed(), [fine, 0, 1, 1]);
    await run.approve(run.approvals()[0].callId);
    await drive(run).result;
    assert.deepEqual(await listed(), [{ role: 'assistant', text: 'Paid.' }, 1, 0, 0]);
    await client.close();
    await assert.rejects(session.markRead(), { code: 'closed' });
  });
}

test('r79 a title is made after the first exchange, and nothing waits for it', async () => {
  const lane = laneOf(standIn.url, 'titles');
  await lane.script(Array.from({ length: 8 }, (_, n) => ({ text: `Answer ${n}` })));
  const asked = [];
  const warnings = [];
  let answer = () => new Promise(() => {});
  const options = {
    store: 'memory',
    onWarning: ({ code, message }) => warnings.push(`${code} ${message}`),
    titleSession(exchange) {
      assert.equal(this, options);
      asked.push(exchange);
      return answer(exchange);
    },
  };
  const client = await open(options);
  const talk = async (session, input) => {
    const outcome = await drive(await session.run(requestOf(lane, input))).result;
    assert.equal(outcome.status, 'finished');
  };
  // It never answers.
  const stuck = await client.session('stuck', { channel: 'web' });
  await talk(stuck, 'First');
  await talk(stuck, 'Second');
  assert.deepEqual(asked, [{ session: 'stuck', channel: 'web', input: 'First', answer: 'Answer 0' }]);

  const session = await client.session('s');
  for (const [fails, message] of [
    [() => Promise.reject(new Error('no model')), /^callback_failed `titleSession` threw.*no model/],
    [() => 5, /^callback_failed `titleSession` returned neither/],
  ]) {
    answer = fails;
    warnings.length = 0;
    await talk(session, 'Hello');
    await until(() => warnings.length > 0);
    assert.match(warnings.join(), message);
    assert.equal(session.title, null);
  }
  answer = () => undefined;
  await talk(session, 'Hello');
  answer = async ({ input }) => ` About\n${input} `;
  await talk(session, 'Again');
  await until(() => session.title !== null);
  assert.equal(session.title, 'About Hello');
  assert.equal((await client.sessions()).items.find(({ id }) => id === 's').title, 'About Hello');
  const count = asked.length;
  await talk(session, 'More');
  assert.equal(asked.length, count);
  await assert.rejects(open({ titleSession: 'x' }), { code: 'config_invalid' });
  await client.close();
});
