// R76 through JavaScript: reasoning goes back only to a host that can read it, and an option names those that can.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';

const SECRET = 'c2VjcmV0';
const ANSWER = {
  type: 'message',
  role: 'assistant',
  stop_reason: 'end_turn',
  content: [
    { type: 'thinking', thinking: 'Hm', signature: SECRET },
    { type: 'text', text: 'Hi.' },
  ],
};
const URLS = { direct: 'https://api.anthropic.com/v1/messages', gateway: 'http://localhost:4000/v1/messages' };

/** Runs a turn, and returns the body that it sent with the codes of its report. */
async function turn(session, url, replay) {
  const provider = { dialect: 'anthropic', url, params: { model: 'anthropic/claude-opus-5.5', max_tokens: 99 } };
  const run = await session.run({ input: 'Hello', provider, ...(replay ? { replay } : {}) });
  const [{ id, request }] = run.effects();
  await run.answer(id, { type: 'response', status: 200, body: JSON.stringify(ANSWER) });
  while (run.status === 'running') await run.changed();
  return {
    body: new TextDecoder().decode(request.body),
    codes: run.result().report.map(({ code, changedBy }) => [code, changedBy]),
  };
}

test('r76 an option names a gateway, and the reasoning goes back', async () => {
  const sameMakers = [['api.anthropic.com', 'localhost:4000']];
  for (const [from, to] of [
    [URLS.direct, URLS.gateway],
    [URLS.gateway, URLS.direct],
  ]) {
    for (const level of ['none', 'store', 'session', 'request']) {
      const client = await open({ store: 'memory', ...(level === 'store' ? { replay: { sameMakers } } : {}) });
      const session = await client.session('s', level === 'session' ? { replay: { sameMakers } } : {});
      await turn(session, from);
      const { body, codes } = await turn(session, to, level === 'request' ? { sameMakers } : undefined);
      assert.equal(body.includes(SECRET), level !== 'none', level);
      assert.deepEqual(codes, level === 'none' ? [['reasoning_foreign', 'provider']] : []);
      await client.close();
    }
    // The level that is nearer replaces the list.
    const client = await open({ store: 'memory', replay: { sameMakers } });
    const session = await client.session('s', { replay: { sameMakers: [] } });
    await turn(session, from);
    assert.equal((await turn(session, to)).body.includes(SECRET), false);
    await client.close();
  }
});
