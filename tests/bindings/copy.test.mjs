// r37: a session is copied up to a message, in one store.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { MemoryLogStore } from '../packaging/projects/store/memory-log-store.js';

const toolTurn = (at) => ({
  messages: [
    { role: 'user', content: `Oslo${at}?` },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: `c${at}`, type: 'function', function: { name: 'get', arguments: '{"n":1.50}' } }],
    },
    { role: 'tool', tool_call_id: `c${at}`, content: '12345678901234567890' },
    { role: 'assistant', content: `Cold${at}.` },
  ],
});
const aesKey = () => crypto.subtle.generateKey({ name: 'AES-GCM', length: 256 }, false, ['encrypt', 'decrypt']);
const withoutSession = (calls) => calls.map((call) => ({ ...call, sessionId: null }));

test('r37 a copy has the messages, calls and fields of a session up to a message, and goes on alone', async () => {
  const key = await aesKey();
  for (const options of [
    { store: 'memory' },
    { store: new MemoryLogStore() },
    { store: 'memory', encryption: { key } },
  ]) {
    const client = await open(options);
    const session = await client.session('s', { title: 'Weather', channel: 'mail', metadata: { user: 7 } });
    await session.append(toolTurn(0), 'openai-chat', { at: 1_000 });
    session.state.set('memory', { a: [1, 2] });
    const request = { dialect: 'anthropic', params: { model: 'm', max_tokens: 9 }, replay: { freshness: Infinity } };
    const text = async (chat) => new TextDecoder().decode((await chat.render(request)).body);
    const body = await text(session);
    await session.append(toolTurn(1), 'openai-chat', { at: 2_000 });
    const { items: messages } = await session.messages();
    const { items: calls } = await session.invocations({ payload: true });

    const copy = await client.copy('s', { until: messages[2].id, id: 'copy' });
    assert.equal(copy.id, 'copy');
    assert.deepEqual((await copy.messages()).items, messages.slice(0, 3));
    const isFirst = ({ callId }) => callId === 'c0';
    const copiedCalls = (await copy.invocations({ payload: true })).items;
    assert.deepEqual(withoutSession(copiedCalls), withoutSession(calls.filter(isFirst)));
    assert.equal(await text(copy), body, 'the request that the session would have sent then');
    assert.deepEqual([copy.title, copy.state.get('memory')], ['Weather', { a: [1, 2] }]);
    const { items: listed } = await client.sessions();
    const of = (id) => listed.find((one) => one.id === id);
    assert.deepEqual(
      [of('copy').preview.text, of('copy').messageCount, of('copy').channel, of('copy').metadata],
      ['Cold0.', 3, 'mail', { user: 7 }],
    );
    const found = (await client.search('cold1')).items.map((hit) => hit.session.id);
    assert.deepEqual(found, ['s']);
    await copy.append(toolTurn(2), 'openai-chat');
    assert.deepEqual([(await copy.messages()).items.length, (await session.messages()).items.length], [6, 6]);

    const whole = await client.copy('s');
    assert.ok(!['s', 'copy'].includes(whole.id));
    assert.deepEqual((await whole.messages()).items, messages);
    const refused = [
      [{ id: 's' }, 'conflict'],
      [{ until: 'nothing' }, 'not_found'],
      [{ before: 'x' }, 'config_invalid'],
    ];
    for (const [given, code] of refused) await assert.rejects(client.copy('s', given), { code });
    await assert.rejects(client.copy('nobody'), { code: 'not_found' });
    await assert.rejects(client.copy(5), { code: 'invalid_input' });
    assert.equal((await client.sessions()).items.length, 3);
    await client.close();
  }
});
