// R61 in the command line: input of no dialect is reported, and never printed as a success.

import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { folderWith, rethread } from './run.mjs';

const ui = [
  { id: '1', role: 'user', parts: [{ type: 'text', text: 'What is on?' }] },
  {
    id: '2',
    role: 'assistant',
    parts: [
      { type: 'reasoning', text: 'secretly' },
      { type: 'tool-look', toolCallId: 'c1', state: 'output-available', input: {}, output: 'a film' },
    ],
  },
];
const langchain = [
  { type: 'human', content: 'hi' },
  { type: 'ai', content: '', tool_calls: [{ name: 'look', args: {}, id: 'c1', type: 'tool_call' }] },
  { type: 'tool', content: 'x', tool_call_id: 'c1' },
];
const agents = [
  { type: 'message', role: 'user', content: 'What is on?' },
  { type: 'function_call', callId: 'c1', name: 'look', status: 'completed', arguments: '{}' },
  {
    type: 'function_call_result',
    callId: 'c1',
    name: 'look',
    status: 'completed',
    output: { type: 'text', text: 'a film' },
  },
];
const gemini = [
  { role: 'user', parts: [{ text: 'q' }] },
  { role: 'model', parts: [{ text: 'a' }] },
  { role: 'user', parts: [{ text: 'p' }] },
];
const SHAPES = {
  'ui.json': /UIMessage of the AI SDK/,
  'chat-request.json': /UIMessage of the AI SDK/,
  'langchain.json': /LangChain/,
  'agents.json': /OpenAI Agents/,
  'agents.jsonl': /OpenAI Agents/,
};

let folder;
let remove;
before(() => {
  ({ folder, remove } = folderWith({
    'ui.json': JSON.stringify(ui),
    'chat-request.json': JSON.stringify({ id: 'c', messages: ui, trigger: 'submit-message' }),
    'langchain.json': JSON.stringify(langchain),
    'agents.json': JSON.stringify(agents),
    'agents.jsonl': agents.map((item) => JSON.stringify(item)).join('\n'),
    'gemini.json': JSON.stringify(gemini),
    'parts.json': JSON.stringify([{ role: 'user', parts: [] }]),
  }));
});
after(() => remove());
const run = (...args) => rethread(args, { cwd: folder });

describe('r61_cli', () => {
  for (const [file, word] of Object.entries(SHAPES)) {
    test(`${file}: check names its format, and the exit code is 1`, async () => {
      const { code, out } = await run('check', file);
      assert.equal(code, 1);
      assert.match(out, word);
      assert.match(out, /no dialect, \d messages, \d errors?\n/);
      assert.match(out, /unknown_shape/);
      const report = JSON.parse((await run('check', file, '--json')).out);
      assert.deepEqual([report.dialect, report.ok, report.findings[0].code], [null, false, 'unknown_shape']);
      for (const dialect of ['openai-chat', 'gemini', 'openai-responses']) {
        const named = await run('check', file, '-d', dialect);
        assert.equal(named.code, 1);
        assert.match(named.out, word);
      }
    });

    test(`${file}: repair and convert write nothing and report the reason`, async () => {
      const commands = [
        ['repair', file],
        ['repair', file, '-d', 'openai-responses'],
        ['convert', file, '--to', 'anthropic'],
        ['convert', file, '--from', 'gemini', '--to', 'openai-chat'],
      ];
      for (const command of commands) {
        const { code, out, err } = await run(...command, '-o', 'made.json');
        assert.notEqual(code, 0, command.join(' '));
        assert.equal(out, '');
        assert.match(err, word);
        assert.ok(!/repaired|nothing wrong/.test(err), err);
        assert.equal(existsSync(path.join(folder, 'made.json')), false);
      }
    });
  }

  test('parts alone are not recognized as gemini; parts with its members and no type are', async () => {
    const parts = await run('check', 'parts.json');
    assert.notEqual(parts.code, 0);
    assert.ok(!/read as gemini/.test(parts.err + parts.out));
    const own = await run('check', 'gemini.json');
    assert.equal(own.code, 0);
    assert.match(own.err, /read as gemini, because a part has `text` and no type/);
  });
});
