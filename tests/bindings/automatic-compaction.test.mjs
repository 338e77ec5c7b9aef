// `compaction` of a session through JavaScript (R36, R78): what is compacted by itself, what shortens requests until
// then, and what is refused.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { open } from 'rethread';

const decode = (body) => JSON.parse(new TextDecoder().decode(body));
const claude = { dialect: 'anthropic', url: 'https://model.test/v1/messages', params: { model: 'm', max_tokens: 9 } };
const sealed = { type: 'compaction', content: 'They talked.', signature: 'sealed' };
const block = JSON.stringify({ stop_reason: 'compaction', content: [sealed] });
/** About 80 tokens. */
const long = (word) => word + ' long'.repeat(60);

/** A turn; returns the request's body. The provider reports so many tokens of input. */
async function say(session, input, tokens) {
  const run = await session.run({ input, provider: claude });
  const [{ id, request }] = run.effects();
  await run.answer(id, {
    type: 'response',
    status: 200,
    body: JSON.stringify({
      id: 'msg_1',
      type: 'message',
      role: 'assistant',
      model: 'm',
      content: [{ type: 'text', text: 'Well.' }],
      stop_reason: 'end_turn',
      stop_sequence: null,
      usage: { input_tokens: tokens, output_tokens: 5 },
    }),
  });
  assert.equal(run.result().status, 'finished');
  return { body: decode(request.body), text: JSON.stringify(decode(request.body)) };
}
const until = async (condition) => {
  for (let turns = 0; turns < 500 && !condition(); turns += 1)
    await new Promise((resolve) => {
      setTimeout(resolve, 1);
    });
  assert.ok(condition());
};

test('r36_r78_a_large_run_is_followed_by_the_providers_compaction_and_reducers_are_the_fallback', async () => {
  const warnings = [];
  const client = await open({ store: 'memory', onWarning: (finding) => warnings.push(finding.code) });
  const asked = [];
  let fails = true;
  const summarize = async (body, mode) => {
    asked.push([mode, decode(body)]);
    if (fails) throw new Error('overloaded');
    return block;
  };
  const fallback = [{ type: 'sliding_turns', turns: 1 }];
  const session = await client.session('s', { compaction: { mode: 'provider', tokens: 100, summarize, fallback } });
  await say(session, long('<one>'), 90);
  assert.deepEqual(asked, []);
  assert.match((await say(session, '<two>', 95)).text, /<one>/);
  await until(() => warnings.length === 1);
  assert.deepEqual([asked.length, asked[0][0], warnings[0]], [1, 'provider', 'callback_failed']);
  assert.deepEqual(asked[0][1].compaction, { type: 'summarize' });
  // It failed, so the fallback shortens what is too long; the originals stay.
  fails = false;
  const shortened = await say(session, long('<three>'), 95);
  assert.ok(!shortened.text.includes('<one>') && shortened.text.includes('<three>'), shortened.text);
  await until(() => asked.length === 2);
  assert.match(JSON.stringify(asked[1][1]), /<one>.*<two>.*<three>/);
  const { body, text } = await say(session, '<four>', 20);
  assert.deepEqual(body.messages[0].content[0].signature, 'sealed');
  assert.ok(!text.includes('<one>'), text);
  assert.equal((await session.messages({ limit: 50 })).items.length, 8);
  assert.deepEqual([asked.length, warnings.length], [2, 1]);
  await client.close();
});

test('r30_r78_compact_and_the_option_take_a_number_of_tokens', async () => {
  const client = await open({ store: 'memory' });
  const session = await client.session('s');
  await say(session, '<one>', 95);
  const summarize = async () => 'They talked.';
  const below = { compacted: false, reason: 'below_threshold' };
  assert.deepEqual(await session.compact({ summarize }), below);
  assert.deepEqual(await session.compact({ summarize, tokens: 101 }), below);
  assert.deepEqual(await session.compact({ summarize, tokens: 100 }), { compacted: true, reason: 'threshold' });
  for (const tokens of [0, -1, 1.5, '100'])
    await assert.rejects(session.compact({ summarize, tokens }), { code: 'config_invalid' });
  for (const compaction of [
    { summarize },
    { tokens: 100 },
    { tokens: 0, summarize },
    { tokens: 100, summarize, mode: 'never' },
    { tokens: 100, summarize, more: 1 },
    { tokens: 100, summarize, fallback: [{ type: 'magic' }] },
  ])
    await assert.rejects(client.session('t', { compaction }), { code: 'config_invalid' });
  await client.close();
});
