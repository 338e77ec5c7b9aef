// r74: runs heal what a provider refuses with a known error.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';
import { drive } from 'rethread/host';

const BOUND = {
  type: 'error',
  error: {
    type: 'invalid_request_error',
    message:
      'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
  },
};
const provider = {
  dialect: 'anthropic',
  url: 'https://api.anthropic.com/v1/messages',
  params: { model: 'claude-opus-4-6', max_tokens: 99, thinking: { type: 'adaptive' } },
  stream: false,
};

/** A service that thinks in each answer, and refuses requests with the signature S1. */
function service() {
  const bodies = [];
  const fetch = async (_, init) => {
    const body = new TextDecoder().decode(init.body);
    bodies.push(body);
    if (body.includes('"S1"')) return Response.json(BOUND, { status: 400 });
    const content = [
      { type: 'thinking', thinking: 'hm', signature: `S${bodies.length}` },
      { type: 'text', text: 'Here.' },
    ];
    return Response.json({
      id: 'msg',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content,
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: 1, output_tokens: 1 },
    });
  };
  return { fetch, bodies };
}

test('r74 a run heals a known refusal, reports it as a warning, and its session does not send again what was refused', async () => {
  const { fetch, bodies } = service();
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  const ask = async (input) => {
    const events = [];
    const driven = drive(await session.run({ input, provider }), { fetch });
    for await (const event of driven) events.push(event);
    return { events, result: await driven.result };
  };
  assert.equal((await ask('First?')).result.status, 'finished');
  const { events, result } = await ask('Second?');
  assert.deepEqual([result.status, bodies.length], ['finished', 3]);
  const warnings = events
    .filter(({ type }) => type === 'warning')
    .map((event) => event.finding ?? event.warning ?? event);
  assert.match(JSON.stringify(warnings), /"code":"healed"/);
  assert.ok(!bodies[2].includes('"S1"'));
  await ask('Third?');
  assert.equal(bodies.length, 4, 'no request was refused');
  assert.ok(!bodies[3].includes('"S1"') && bodies[3].includes('"S3"'));
  await client.close();
});
