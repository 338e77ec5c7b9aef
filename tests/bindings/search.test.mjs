// r79: sessions are found by title and text, by JavaScript, in stores of every kind.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { unstorage } from 'rethread/unstorage';
import { createStorage } from 'unstorage';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const says = (text, role = 'user') => ({ role, parts: [{ type: 'text', text }] });
const marked = ({ text, ranges }) => ranges.map(([start, end]) => text.slice(start, end));
const idsOf = ({ items }) => items.map(({ session }) => session.id).join('');

for (const [name, store] of [
  ['memory', () => 'memory'],
  ['a store of the application', () => new MemoryLogStore()],
  ['a key-value service', () => unstorage(createStorage())],
]) {
  test(`r79 sessions are found by title and text: ${name}`, async () => {
    let now = 1_000;
    const client = await open({ store: store(), now: () => (now += 1_000) });
    const a = await client.session('a');
    const { messageIds } = await a.append([
      says('Ein Café in Paris?'),
      says('Es gibt viele. 😀 Cafe Flore!', 'assistant'),
    ]);
    const b = await client.session('b', { title: 'Paris: cafes and bars', channel: 'web' });
    await b.append([says('Where?')]);
    const c = await client.session('c');
    await c.append([says('東京の天気')]);

    assert.equal(idsOf(await client.search('CAFÉ paris')), 'a');
    assert.equal(idsOf(await client.search('paris cafe')), 'ba', 'the last word is found by its beginning');
    assert.equal(idsOf(await client.search('天気')), 'c');
    assert.equal(idsOf(await client.search('paris', { channel: 'web' })), 'b');
    const [hit] = (await client.search('flore viele')).items;
    assert.equal(hit.session.messageCount, 2);
    assert.equal(hit.title, null);
    assert.deepEqual(
      hit.messages.map(({ messageId, role }) => [messageId, role]),
      [[messageIds[1], 'assistant']],
    );
    assert.deepEqual(marked(hit.messages[0]), ['viele', 'Flore'], 'ranges are of JavaScript strings');
    assert.deepEqual(marked((await client.search('bars')).items[0].title), ['bars']);

    const first = await client.search('paris', { limit: 1 });
    assert.equal(idsOf(first), 'b');
    const second = await client.search('paris', { limit: 1, cursor: first.cursor });
    assert.deepEqual([idsOf(second), second.cursor], ['a', null]);
    await a.update({ archived: true });
    assert.equal(idsOf(await client.search('paris')), 'b');
    assert.equal(idsOf(await client.search('paris', { archived: 'all' })), 'ba');

    assert.deepEqual(await client.search(''), { items: [], cursor: null });
    await assert.rejects(client.search(7), { code: 'invalid_input' });
    await assert.rejects(client.search('paris', { cursor: 'none' }), { code: 'invalid_input' });
    await assert.rejects(client.search('paris', { limit: 0 }), { code: 'config_invalid' });
    await assert.rejects(client.search('paris', { sort: 'date' }), { code: 'config_invalid' });
    await client.deleteSession('b');
    assert.equal(idsOf(await client.search('paris cafes')), '');
    await client.close();
  });
}
