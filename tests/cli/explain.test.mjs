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
  assert.match(err, /there is no rule "nonsense"; the rules are dangling_call, duplicate_call_id/);
  assert.equal((await rethread(['explain', 'empty_tool_calls', '-d', 'anthropic'])).code, 2);
  assert.match((await rethread(['explain'])).err, /explain needs the code of a finding/);
});
