import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { test } from 'node:test';
import { heal } from '../../js/entry/formats-node.js';
import { rethread } from './run.mjs';

test('r66 explain prints the rule of every dialect that has it', async () => {
  const { code, out, err } = await rethread(['explain', 'dangling_call']);
  assert.deepEqual([code, err], [0, '']);
  for (const dialect of ['openai-chat', 'openai-responses', 'anthropic', 'gemini', 'mistral'])
    assert.match(out, new RegExp(`^# ${dialect}$`, 'm'));
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
  assert.match(
    err,
    /there is no rule "nonsense"; the rules are compaction_block_misplaced, dangling_call, duplicate_call_id/,
  );
  assert.equal((await rethread(['explain', 'empty_tool_calls', '-d', 'anthropic'])).code, 2);
  assert.match((await rethread(['explain'])).err, /explain needs the code of a finding/);
});

test('r66 a sentence that is in no table is not known, and a word is no part of a sentence', async () => {
  const { code, out, err } = await rethread(['explain', 'You exceeded your current quota.']);
  assert.deepEqual([code, out], [2, '']);
  assert.match(
    err,
    /this sentence is not known: "You exceeded your current quota\."; pass the whole message, or the JSON of the error; the rules are in docs\/rules\n/,
  );
  const elsewhere = await rethread(['explain', 'No such thing at all.', '-d', 'gemini'], { cwd: tmpdir() });
  assert.match(elsewhere.err, /of gemini; pass the whole message.*; the rules are in \/.*\/docs\/rules\/gemini\.md\n/);
  assert.ok(!err.includes('dangling_call'));
  assert.deepEqual(await rethread(['explain', 'thinking']).then(({ code, out }) => [code, out]), [2, '']);
});

test('r66 explain has an entry for every code of a finding', async () => {
  const types = readFileSync(new URL('../../js/types/formats.d.ts', import.meta.url), 'utf8');
  const codes = [.../export type FindingCode =([^;]*);/.exec(types)[1].matchAll(/"(\w+)"/g)].map(([, code]) => code);
  assert.ok(codes.length > 40);
  for (const asked of codes) {
    const { code, out } = await rethread(['explain', asked]);
    assert.equal(code, 0, asked);
    assert.match(out, new RegExp(`^## ${asked}\n\n.{40}`, 'm'), asked);
  }
});

test('r66 r74 explain and check name the rule by which heal repairs', async () => {
  const claude = {
    model: 'claude-opus-5-5',
    max_tokens: 9,
    messages: [
      { role: 'user', content: 'a' },
      {
        role: 'assistant',
        content: [
          { type: 'thinking', thinking: '', signature: 'AAAA' },
          { type: 'text', text: 'b' },
        ],
      },
      { role: 'user', content: 'c' },
    ],
  };
  const gpt = {
    model: 'gpt-6',
    store: false,
    input: [
      { role: 'user', content: 'a' },
      { type: 'reasoning', id: 'rs_1', summary: [], encrypted_content: 'gAAA' },
      { type: 'mcp_list_tools', id: 'list-1', server_label: 's', tools: [] },
      { role: 'user', content: 'b' },
    ],
  };
  const answer = (message, more) => ({ error: { message, type: 'invalid_request_error', ...more } });
  for (const [dialect, body, said] of [
    ['anthropic', claude, answer('messages.1.content.0: Invalid `signature` in `thinking` block')],
    [
      'anthropic',
      claude,
      answer('The `thinking` block that preceded this one when it was created is missing from this request'),
    ],
    [
      'openai-responses',
      gpt,
      answer("Invalid 'input[2].id': 'list-1'. Expected an ID that begins with 'fc'.", { param: 'input[2].id' }),
    ],
    ['openai-responses', gpt, answer('The encrypted content gAAA could not be verified')],
  ]) {
    const healed = heal(body, dialect, said);
    const [, rule] = /see the rule `(\w+)`/.exec(healed.report[0].message);
    assert.ok(healed.report[0].message.includes(said.error.message), healed.report[0].message);
    for (const text of [said.error.message, JSON.stringify(said)]) {
      assert.match((await rethread(['explain', text])).out, new RegExp(`^# ${dialect}\n\n## ${rule}\n`));
      assert.match(
        (await rethread(['check', '-'], { input: JSON.stringify(said) })).out,
        new RegExp(`explain ${rule} --dialect ${dialect}`),
      );
    }
  }
});

/** What people paste, and the rule that it is about. */
const PASTED = [
  ["Expected an ID that begins with 'fc'", 'openai-responses', 'invalid_item_id'],
  ["Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.", 'openai-responses', 'invalid_item_id'],
  ['messages.1.content.0: Invalid `signature` in `thinking` block', 'anthropic', 'thinking_bound'],
  ['Invalid `signature` in `thinking` block', 'anthropic', 'thinking_bound'],
  ['The encrypted content gAAA could not be verified', 'openai-responses', 'invalid_encrypted_content'],
  ['bound to a different conversation', 'anthropic', 'thinking_bound'],
  [
    'messages.17.content.2: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
    'anthropic',
    'thinking_bound',
  ],
  ['tool_use ids were found without tool_result', 'anthropic', 'dangling_call'],
  ['No tool output found for function call', 'openai-responses', 'dangling_call'],
  ['No tool output found for function call call_8fYkAbC.', 'openai-responses', 'dangling_call'],
  [
    "Item 'rs_abcDEF' of type 'reasoning' was provided without its required following item",
    'openai-responses',
    'orphan_reasoning',
  ],
  ['must be followed by tool messages', 'openai-chat', 'dangling_call'],
  ['missing a thought_signature', 'gemini', 'unsigned_thinking'],
  ['must be passed back to the API', 'openai-chat', 'missing_reasoning'],
  ['is not supported for this model. Use thinking.type.adaptive', 'anthropic', 'thinking_kind'],
  ['thread_fingerprint_mismatch', 'anthropic', 'thread_fingerprint_mismatch'],
  ['compaction_block_misplaced', 'anthropic', 'compaction_block_misplaced'],
  ['tool_call_id is not found', 'openai-chat', 'orphan_result'],
  ['Not the same number of function calls and responses', 'mistral', 'dangling_call'],
  ['compaction_signature_invalid', 'anthropic', 'compaction_block_misplaced'],
  [
    JSON.stringify({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message:
          'messages.5: `tool_use` ids were found without `tool_result` blocks immediately after: toolu_01Xy. Each `tool_use` block must have a corresponding `tool_result` block in the next message.',
      },
    }),
    'anthropic',
    'dangling_call',
  ],
  [
    JSON.stringify({ error: { message: JSON.stringify({ error: { message: 'Corrupted thought signature.' } }) } }),
    'gemini',
    'invalid_thought_signature',
  ],
  [
    `2026-11-01T10:00:00Z ERROR BadRequestError: 400 - {'error': {'message': "Item 'fc_6a' of type 'function_call' was provided without its required 'reasoning' item: 'rs_6a'."}}`,
    'openai-responses',
    'item_without_reasoning',
  ],
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
  assert.match(
    (await rethread(['explain', ...'bound to a different conversation'.split(' ')])).out,
    /## thinking_bound/,
  );
  assert.match(
    (await rethread(['explain', '-'], { input: 'Not the same number of function calls and responses\n' })).out,
    /# mistral/,
  );
  assert.equal((await rethread(['explain', '400 Bad Request'])).code, 2);
});
