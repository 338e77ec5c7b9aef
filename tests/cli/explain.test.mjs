import assert from 'node:assert/strict';
import { test } from 'node:test';
import { rethread } from './run.mjs';

test('r66 explain prints the rule of every dialect that has it', async () => {
  const { code, out, err } = await rethread(['explain', 'dangling_call']);
  assert.deepEqual([code, err], [0, '']);
  for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral']) assert.match(out, new RegExp(`^# ${dialect}$`, 'm'));
  assert.match(out, /An assistant message with 'tool_calls' must be followed by tool messages/);
  assert.match(out, /```json repaired/);
});

test('r66 explain of one dialect prints that page alone', async () => {
  const { code, out } = await rethread(['explain', 'empty_tool_calls', '--dialect', 'openai-chat']);
  assert.equal(code, 0);
  assert.deepEqual(out.match(/^# .*$/gm), ['# openai-chat']);
  assert.deepEqual(out.match(/^## .*$/gm), ['## empty_tool_calls']);
});

test('r66 explain of an unknown code lists the codes', async () => {
  const { code, out, err } = await rethread(['explain', 'nonsense']);
  assert.deepEqual([code, out], [2, '']);
  assert.match(err, /there is no rule "nonsense"; the rules are compaction_block_misplaced, dangling_call, duplicate_call_id/);
  assert.equal((await rethread(['explain', 'empty_tool_calls', '-d', 'anthropic'])).code, 2);
  assert.match((await rethread(['explain'])).err, /explain needs the code of a finding/);
});

/** What people paste, and the rule that it is about. */
const PASTED = [
  ['bound to a different conversation', 'anthropic', 'thinking_bound'],
  ['messages.17.content.2: Invalid `signature` in `thinking` block. The block is bound to a different conversation.', 'anthropic', 'thinking_bound'],
  ['tool_use ids were found without tool_result', 'anthropic', 'dangling_call'],
  ['No tool output found for function call', 'openai-responses', 'dangling_call'],
  ['No tool output found for function call call_8fYkAbC.', 'openai-responses', 'dangling_call'],
  ["Item 'rs_abcDEF' of type 'reasoning' was provided without its required following item", 'openai-responses', 'orphan_reasoning'],
  ['must be followed by tool messages', 'openai-chat', 'dangling_call'],
  ['missing a thought_signature', 'gemini', 'unsigned_thinking'],
  ['must be passed back to the API', 'openai-chat', 'missing_reasoning'],
  ['is not supported for this model. Use thinking.type.adaptive', 'anthropic', 'thinking_kind'],
  ['thread_fingerprint_mismatch', 'anthropic', 'thread_fingerprint_mismatch'],
  ['compaction_block_misplaced', 'anthropic', 'compaction_block_misplaced'],
  ['tool_call_id is not found', 'openai-chat', 'orphan_result'],
  ['Not the same number of function calls and responses', 'mistral', 'dangling_call'],
  ['compaction_signature_invalid', 'anthropic', 'compaction_block_misplaced'],
  [JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message: 'messages.5: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01Xy. Each `tool_use` block must have a corresponding `tool_result` block in the next message.' } }), 'anthropic', 'dangling_call'],
  [JSON.stringify({ error: { message: JSON.stringify({ error: { message: 'Corrupted thought signature.' } }) } }), 'gemini', 'invalid_thought_signature'],
  [`2026-11-01T10:00:00Z ERROR BadRequestError: 400 - {'error': {'message': "Item 'fc_6a' of type 'function_call' was provided without its required 'reasoning' item: 'rs_6a'."}}`, 'openai-responses', 'item_without_reasoning'],
];

for (const [pasted, dialect, code] of PASTED) {
  test(`r66 explain finds ${code} of ${dialect} by ${pasted.slice(0, 50)}, and begins with its cure`, async () => {
    const { code: exit, out, err } = await rethread(['explain', pasted]);
    assert.deepEqual([exit, err], [0, '']);
    assert.match(out, new RegExp(`^# ${dialect}\n\n## ${code}\n\nCure: `));
    assert.equal(out.match(/^## /gm).length, 1, 'no other rule');
  });
}

test('r66 a sentence without quotation marks, and standard input', async () => {
  assert.match((await rethread(['explain', ...'bound to a different conversation'.split(' ')])).out, /## thinking_bound/);
  assert.match((await rethread(['explain', '-'], { input: 'Not the same number of function calls and responses\n' })).out, /# mistral/);
  assert.equal((await rethread(['explain', '400 Bad Request'])).code, 2);
});
