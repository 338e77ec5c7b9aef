// r79: the list of sessions, by JavaScript.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const says = (text) => [{ role: 'user', parts: [{ type: 'text', text }] }];
const idsOf = ({ items }) => items.map(({ id }) => id).join('');

for (const [name, store] of [
  ['memory', () => 'memory'],
  ['a store of the application', () => new MemoryLogStore()],
  ['a key-value service', () => unstorage(createStorage())],
]) {
  test(`r79 the list, its pages and what is archived: ${name}`, async () => {
    let now = 1_000;
    const client = await open({ store: store(), now: () => now });
    const sessions = {};
    for (const id of ['a', 'b', 'c', 'd']) {
      now += 1_000;
      sessions[id] = await client.session(id);
      await sessions[id].append(says(`Hello from ${id}`));
    }
    assert.equal(idsOf(await client.sessions()), 'dcba');
    const first = await client.sessions({ limit: 2 });
    assert.equal(idsOf(first), 'dc');
    now += 1_000;
    await sessions.a.append(says('And?'));
    await sessions.b.update({ title: 'A title moves nothing' });
    assert.equal(idsOf(await client.sessions({ limit: 2, cursor: first.cursor })), 'b', 'one moved to the front');
    assert.equal(idsOf(await client.sessions()), 'adcb');

    await sessions.d.update({ archived: true });
    assert.equal(idsOf(await client.sessions()), 'acb');
    assert.equal(idsOf(await client.sessions({ archived: false })), 'acb');
    assert.equal(idsOf(await client.sessions({ archived: true })), 'd');
    assert.equal(idsOf(await client.sessions({ archived: 'all' })), 'adcb');
    now += 1_000;
    await sessions.d.append(says('Still here'));
    const { items } = await client.sessions({ archived: 'all', limit: 1 });
    assert.deepEqual([items[0].id, items[0].archived, items[0].updatedAt], ['d', true, now]);
    await sessions.d.update({ archived: false });
    assert.equal(idsOf(await client.sessions()), 'dacb');
    await assert.rejects(client.sessions({ cursor: 'none' }), { code: 'invalid_input' });
    await assert.rejects(client.sessions({ archived: 'some' }), { code: 'config_invalid' });
    await assert.rejects(sessions.a.update({ archived: 'yes' }), { code: 'config_invalid' });
    await client.close();
  });
}
