// r79: what a list shows of a session, by JavaScript.

import assert from 'node:assert/strict';
import { after, before, test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { laneOf } from '../browser/page.mjs';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';
import { startStandIn } from '../stand-in/server.mjs';

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
