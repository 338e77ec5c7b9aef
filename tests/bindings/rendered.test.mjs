// The body of a render as an object.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';

const DIALECTS = [
  'openai-chat',
  'openai-responses',
  'anthropic',
  'gemini',
  'mistral',
  'bedrock',
  'mistral-conversations',
  'gemini-interactions',
];

test('r19 a render has its body as an object of the caller, parsed when it is read', async () => {
  const rethread = await open({ store: 'memory' });
  const session = await rethread.session('chat-1');
  await session.append({ messages: [{ role: 'user', content: 'Is it 21 °C?' }] }, 'openai-chat');
  for (const dialect of DIALECTS) {
    const rendered = await session.render({ dialect, params: { model: 'm' } });
    assert.deepEqual(rendered.json, JSON.parse(new TextDecoder().decode(rendered.body)), dialect);
    assert.equal(rendered.json, rendered.json, 'one object');
  }
  const { json } = await session.render({ dialect: 'openai-chat', input: 'And now?' });
  json.messages.push({ role: 'assistant', content: 'Yes.' });
  const again = await session.render({ dialect: 'openai-chat', input: 'And now?' });
  assert.equal(again.json.messages.length, 2, 'what a caller changes is in no other render');
  assert.ok(!Object.keys(again).includes('json'), 'a copy does not parse');
  await rethread.close();
});
