// r10: the first result that the built-in window drops from a run's request is told to `onWarning`, with what to set.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';

const provider = { dialect: 'openai-chat', url: 'https://model.example/v1', params: { model: 'm' } };
const completion = (message) =>
  Response.json({
    id: 'r',
    object: 'chat.completion',
    model: 'm',
    choices: [{ index: 0, message: { role: 'assistant', ...message }, finish_reason: 'stop' }],
  });
const CALL = {
  content: null,
  tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'book', arguments: '{}' } }],
};

test('r10 six minutes after a booking the model does not get its number, and onWarning says so once a session, with what to set', async () => {
  let now = 1_000_000;
  for (const persistence of ['run', 'call', 'result']) {
    const warnings = [];
    const client = await open({ store: 'memory', now: () => now, onWarning: (finding) => warnings.push(finding) });
    const session = await client.session('s', { persistence });
    const tools = { book: { parameters: { type: 'object', properties: {} }, execute: () => 'booked, ref 42' } };
    const bodies = [];
    const fetch = async (_, { body }) => {
      const request = JSON.parse(new TextDecoder().decode(body));
      bodies.push(request);
      return completion(
        request.messages.some(({ role }) => role === 'tool') || bodies.length > 1 ? { content: 'Done.' } : CALL,
      );
    };
    const ask = async (input) => drive(await session.run({ input, provider, tools }), { fetch }).result;
    await ask('Book it.');
    assert.deepEqual(warnings, []);
    now += 6 * 60_000;
    await ask('What is the number?');
    await ask('Really?');
    assert.ok(!JSON.stringify(bodies.at(-1)).includes('ref 42'));
    assert.deepEqual(
      warnings.map(({ code }) => code),
      ['stale_default'],
      persistence,
    );
    assert.match(warnings[0].message, /replay\.freshness/);
  }
});
