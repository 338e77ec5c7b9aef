// `rethread check` finds the conversations in what people save, and names what is none.

import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { body, folderWith, messages, rethread } from './run.mjs';

const { head, call, result, last } = messages;
const good = body(head, call, result, last).trim();
const bad = body(head, call, last).trim();
const claude =
  '{"model":"claude-opus-5","max_tokens":9,"system":"s","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"look","input":{}}]}]}';
const json = JSON.stringify;

/** A file of one line each: its content, the exit code, what the report has. */
const FILES = {
  'bodies.jsonl': [
    `${good}\n${bad}\n`,
    1,
    [
      /^bodies\.jsonl:1: openai-chat, 4 messages, nothing wrong$/m,
      /^bodies\.jsonl:2: openai-chat, 3 messages, 1 error$/m,
      /^2 conversations, 1 not accepted$/m,
    ],
  ],
  'openai-batch.jsonl': [
    `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":${good}}\n{"custom_id":"b","method":"POST","url":"/v1/chat/completions","body":${bad}}\n`,
    1,
    [/^openai-batch\.jsonl:1 a: openai-chat, .*nothing wrong$/m, /^openai-batch\.jsonl:2 b: openai-chat, .*1 error$/m],
  ],
  'anthropic-batch.json': [
    `{"requests":[{"custom_id":"a","params":${claude}}]}`,
    1,
    [/a: anthropic, 2 messages, 1 error/, /`tool_use` ids were found/],
  ],
  'anthropic-batch.jsonl': [
    `{"custom_id":"a","params":${claude}}\n{"custom_id":"b","params":${claude}}\n`,
    1,
    [/:1 a: anthropic/, /:2 b: anthropic/],
  ],
  'batch-output.jsonl': [
    `${json({ custom_id: 'a', response: { status_code: 400, body: { error: { message: 'No tool output found for function call call_9.' } } } })}\n${json({ custom_id: 'b', response: { status_code: 200, body: { object: 'response', output: [] } } })}\n`,
    1,
    [
      /:1 a: an error of a provider.*known/,
      /cure: add a `function_call_output`/,
      /:2 b: an answer of a model, not a request/,
    ],
  ],
  'langsmith.json': [
    `{"id":"r","run_type":"llm","inputs":${bad},"outputs":{}}`,
    1,
    [/openai-chat, 3 messages, 1 error/, /dangling_call/],
  ],
  'langsmith-nested.json': [
    json({
      id: 'r',
      run_type: 'llm',
      inputs: {
        messages: [[{ lc: 1, type: 'constructor', id: ['langchain', 'HumanMessage'], kwargs: { content: 'hi' } }]],
      },
    }),
    1,
    [/LangChain/, /convertMessagesToCompletionsMessageParams/],
  ],
  'log.jsonl': [
    `{"time":1,"request":{"url":"x","body":${bad}},"response":{"status":400}}\n{"time":2,"request":{"body":${json(good)}},"response":{"status":200}}\n`,
    1,
    [/:1: openai-chat, 3 messages, 1 error/, /:2: openai-chat, 4 messages, nothing wrong/],
  ],
  'assistants.json': [
    json({
      object: 'list',
      data: [
        {
          id: 'msg_1',
          object: 'thread.message',
          role: 'user',
          content: [{ type: 'text', text: { value: 'hi', annotations: [] } }],
        },
      ],
    }),
    1,
    [/messages of an Assistants thread/],
  ],
  'chatgpt.json': [
    json([
      { title: 'A', mapping: {}, current_node: 'x' },
      { title: 'B', mapping: {}, current_node: 'y' },
    ]),
    1,
    [/a conversation of a ChatGPT export/],
  ],
  'claude.json': [
    json([{ uuid: 'u', name: 'n', chat_messages: [{ sender: 'human', text: 'hi' }] }]),
    1,
    [/a conversation of a Claude export/],
  ],
  'error.json': [
    json({
      type: 'error',
      error: {
        type: 'invalid_request_error',
        message:
          'messages.1.content.0: Invalid `signature` in `thinking` block. The block is bound to a different conversation.',
      },
    }),
    1,
    [
      /^error\.json: an error of a provider, not a conversation; it is known$/m,
      /cure: remove the thinking blocks/,
      /see: npx rethread explain thinking_bound --dialect anthropic/,
    ],
  ],
  'google-error.json': [
    json([
      {
        error: {
          code: 400,
          message: 'Function call is missing a thought_signature in functionCall parts.',
          status: 'INVALID_ARGUMENT',
        },
      },
    ]),
    1,
    [/rethread explain unsigned_thinking --dialect gemini/],
  ],
  'app.log': [
    "2026-11-25 10:00:01 INFO start\n2026-11-25 10:00:02 ERROR 400 An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'.\n",
    1,
    [/rethread explain dangling_call --dialect openai-chat/],
  ],
  'unknown-error.json': [json({ error: { message: 'Rate limit reached' } }), 1, [/there is no rule for it/]],
  'ai-sdk-4.json': [
    json([
      {
        id: 'm1',
        createdAt: '2025-01-01T00:00:00Z',
        role: 'user',
        content: 'hi',
        parts: [{ type: 'text', text: 'hi' }],
      },
      {
        id: 'm2',
        role: 'assistant',
        content: 'hello',
        parts: [{ type: 'step-start' }, { type: 'text', text: 'hello' }],
      },
    ]),
    1,
    [/a UIMessage of the AI SDK/, /convertToModelMessages\(\)/],
  ],
  'mixed.jsonl': [`${good}\n{"note":"no conversation"}\n`, 0, [/:1: openai-chat, .*nothing wrong/]],
  'notes.jsonl': [
    '{"note":"no conversation"}\n{"note":"nor this"}\n',
    1,
    [/:1: no body, batch line, log entry or message/],
  ],
  'text.log': [
    `INFO [app] start {"port":1}\n2026-01-01T10:00:00 [app] request ${bad}\n2026-01-01T10:00:01 request {"body":${good}} in 3 ms\nWARN done\n`,
    1,
    [
      /^text\.log:2: openai-chat, 3 messages, 1 error$/m,
      /^text\.log:3: openai-chat, 4 messages, nothing wrong$/m,
      /^2 conversations, 1 not accepted$/m,
    ],
  ],
  'info.log': [`INFO starting\n{"request":${bad}}\n`, 1, [/^info\.log:2: openai-chat, 3 messages, 1 error$/m]],
  'pino.jsonl': [
    `{"level":30,"msg":"start"}\n{"level":50,"err":{"message":"No tool output found for function call call_1."}}\n{"level":30,"req":1,"body":${good}}\n`,
    1,
    [
      /^pino\.jsonl:2: an error of a provider.*known$/m,
      /explain dangling_call --dialect openai-responses/,
      /^pino\.jsonl:3: openai-chat, .*nothing wrong$/m,
      /^2 conversations, 1 not accepted$/m,
    ],
  ],
  'one.log': [`2026-01-01 request ${bad}\n`, 1, [/^one\.log:1: openai-chat, 3 messages, 1 error$/m]],
  'typed.jsonl': [
    `{"type":"http","body":${good}}\n{"type":"http","request":{"body":${bad}}}\n`,
    1,
    [/^typed\.jsonl:1: openai-chat, .*nothing wrong$/m, /^typed\.jsonl:2: openai-chat, .*1 error$/m],
  ],
  'cut.jsonl': [
    `${good}\n${bad.slice(0, 80)}\n`,
    1,
    [/^cut\.jsonl:1: openai-chat, .*nothing wrong$/m, /^cut\.jsonl:2: this line is not JSON/m],
  ],
  'one-line.jsonl': [
    json({ level: 'error', msg: '400 No tool output found for function call call_1.' }),
    1,
    [/^one-line\.jsonl: an error of a provider, .*known$/m, /explain dangling_call --dialect openai-responses/],
  ],
  'err.json': [
    json({ err: { message: 'No tool output found for function call call_1.' } }),
    1,
    [/explain dangling_call --dialect openai-responses/],
  ],
};

let folder;
let remove;
before(() => {
  ({ folder, remove } = folderWith(
    Object.fromEntries(Object.entries(FILES).map(([name, [content]]) => [name, content])),
  ));
});
after(() => remove());
const check = (...args) => rethread(['check', ...args], { cwd: folder });

describe('r54: rethread check', () => {
  for (const [file, [, exit, sentences]] of Object.entries(FILES)) {
    test(`r54 ${file} is checked or named`, async () => {
      const { code, out, err } = await check(file);
      assert.equal(code, exit, err);
      for (const sentence of sentences) assert.match(out, sentence, err);
    });
  }

  test('r54 the text-only messages of the AI SDK 4 are foreign in every dialect', async () => {
    for (const dialect of ['openai-chat', 'anthropic', 'openai-responses', 'mistral', 'gemini']) {
      const { code, out } = await check('ai-sdk-4.json', '-d', dialect);
      assert.equal(code, 1, dialect);
      assert.match(out, /UIMessage of the AI SDK/);
    }
  });

  test('r54 several files, and --json for all of them', async () => {
    const { code, out } = await check('bodies.jsonl', 'error.json', '--json');
    const reports = JSON.parse(out);
    assert.deepEqual(
      [code, reports.map(({ file, ok }) => [file, ok])],
      [
        1,
        [
          ['bodies.jsonl:1', true],
          ['bodies.jsonl:2', false],
          ['error.json', false],
        ],
      ],
    );
    assert.deepEqual(
      reports[2].rules.map(({ code }) => code),
      ['thinking_bound'],
    );
  });

  test('r54 a file that cannot be read does not hide what the others have', async () => {
    for (const files of [
      ['nowhere.log', 'bodies.jsonl'],
      ['bodies.jsonl', 'nowhere.log'],
    ]) {
      const { code, out } = await check(...files);
      assert.equal(code, 2);
      assert.match(out, /^bodies\.jsonl:2: openai-chat, 3 messages, 1 error$/m);
      assert.match(out, /^nowhere\.log cannot be read: no such file$/m);
    }
    const reports = JSON.parse((await check('nowhere.log', 'error.json', '--json')).out);
    assert.deepEqual(
      reports.map(({ form, ok }) => [form, ok]),
      [
        ['unreadable', false],
        ['error', false],
      ],
    );
  });

  test('r54 items of the OpenAI Agents SDK: another dialect that was named is corrected', async () => {
    const items = json([
      { type: 'message', role: 'user', content: 'q' },
      { type: 'function_call', callId: 'c', name: 'f', arguments: '{}' },
    ]);
    const named = await rethread(['check', '-', '--dialect', 'mistral'], { input: items });
    assert.equal(named.code, 1);
    assert.match(named.err, /it looks like openai-responses/);
    const { looksLike } = JSON.parse((await rethread(['check', '-', '-d', 'mistral', '--json'], { input: items })).out);
    assert.equal(looksLike.dialect, 'openai-responses');
  });

  test('r54 repair writes the body that an envelope contains, and refuses an error', async () => {
    const { code, out } = await rethread(['repair', 'langsmith.json'], { cwd: folder });
    assert.equal(code, 0);
    assert.equal(JSON.parse(out).messages.length, 4);
    const refused = await rethread(['repair', 'error.json', '-d', 'anthropic'], { cwd: folder });
    assert.deepEqual([refused.code, refused.out], [2, '']);
    assert.match(refused.err, /an error of a provider, not a conversation/);
  });
});
