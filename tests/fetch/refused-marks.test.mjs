// r74: the marks of what a provider refused, as `repair` takes them.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { heal, repair } from '../../js/entry/formats-node.js';

const turn = (n, signature) => [
  { role: 'user', content: `question ${n}` },
  {
    role: 'assistant',
    content: [
      { type: 'thinking', thinking: '', signature },
      { type: 'text', text: `${n}` },
    ],
  },
];
const CHAT = {
  model: 'claude-opus-5-5',
  max_tokens: 99,
  thinking: { type: 'adaptive' },
  messages: [...turn(1, 'AAA='), ...turn(2, 'BBB='), ...turn(3, 'CCC='), { role: 'user', content: 'and?' }],
};
const BOUND = {
  type: 'error',
  error: {
    type: 'invalid_request_error',
    message:
      'messages.3.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation. Remove the block, or set `thinking.block_binding.prefix_mismatch_behavior` to "drop_block".',
  },
};
const signatures = (body) =>
  body.messages.flatMap(({ content }) => [content].flat()).flatMap(({ signature }) => signature ?? []);

test('r74 of more than a thousand marks of what was refused the newest are used', () => {
  const { refused } = heal(CHAT, 'anthropic', BOUND);
  assert.equal(refused.length, 2);
  const others = (count) => Array.from({ length: count }, (_, at) => `other:${at}`);
  const left = (marks) => signatures(repair(CHAT, 'anthropic', { refused: marks }).body);
  assert.deepEqual(left([...others(5_000), ...refused]), ['AAA=']);
  assert.deepEqual(left([...refused, ...others(1_000 - refused.length)]), ['AAA=']);
  assert.deepEqual(left([...refused, ...others(1_000)]), signatures(CHAT));
  assert.throws(() => left([...others(2_000), 7]), { code: 'config_invalid', message: /refused/ });
  const sparse = [];
  sparse.length = 2 ** 32 - 1;
  assert.throws(() => left(sparse), { code: 'config_invalid', message: /refused/ });
});
