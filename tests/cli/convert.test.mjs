// `rethread convert`: one provider's body for another.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { body, folderWith, messages, rethread } from './run.mjs';

const { head, call, result, stray, last } = messages;
const system = '{"role":"system","content":"be kind"}';

let folder;
let remove;
before(() => {
  ({ folder, remove } = folderWith({
    'chat.json': body(system, head, call, result, last),
    'open.json': body(head, call, last, stray),
    'list.json': `[${[head, call, result].join(',')}]`,
    'lines.jsonl': `${[head, call, result].join('\n')}\n`,
    'system.json': `[${[system, head].join(',')}]`,
  }));
});
after(() => remove());
const convert = (...args) => rethread(['convert', ...args], { cwd: folder });

describe('r54_convert', () => {
  test('writes a body that the other provider accepts', async () => {
    const { code, out } = await convert('chat.json', '--from', 'openai-chat', '--to', 'anthropic');
    assert.equal(code, 0);
    const made = JSON.parse(out);
    assert.equal(made.messages[1].content[0].type, 'tool_use');
    assert.equal(JSON.stringify(made.system).includes('be kind'), true);
    assert.ok(out.includes('half \\ud83d, 1\\u00e9'), 'escapes as they were');
    assert.equal((await rethread(['check', '-', '-d', 'anthropic'], { input: out })).code, 0);
  });

  test('a broken file is repaired on the way, and the findings name places in the file', async () => {
    const { code, err } = await convert('open.json', '--to', 'anthropic', '-o', 'made.json');
    assert.equal(code, 0);
    assert.match(err, /openai-chat to anthropic, 2 errors, .*repaired/);
    assert.match(err, /dangling_call .*\/messages\/1\/tool_calls\/0/);
    assert.match(err, /read as openai-chat, .*; --from overrides this/);
    const made = readFileSync(path.join(folder, 'made.json'), 'utf8');
    assert.ok(made.includes('tool_result') && !made.includes('nowhere'));
  });

  test('a file of messages stays a file of messages', async () => {
    const list = JSON.parse((await convert('list.json', '--to', 'anthropic')).out);
    assert.deepEqual(
      list.map(({ role }) => role),
      ['user', 'assistant', 'user'],
    );
    const { out } = await convert('lines.jsonl', '--to', 'anthropic');
    assert.deepEqual(
      out
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line)),
      list,
    );
  });

  test('unless the target keeps a part of it outside of messages: then a body is written, with a note', async () => {
    const { out, err } = await convert('system.json', '--from', 'openai-chat', '--to', 'anthropic');
    assert.ok(JSON.stringify(JSON.parse(out).system).includes('be kind'));
    assert.match(err, /is outside of the messages, in `system`, so a complete body is written/);
  });

  test('to its own dialect: unchanged', async () => {
    const { code, out } = await convert('chat.json', '--from', 'openai-chat', '--to', 'openai-chat');
    assert.deepEqual([code, out], [0, readFileSync(path.join(folder, 'chat.json'), 'utf8')]);
  });

  test('--json contains the source and the target dialect', async () => {
    const { err } = await convert('open.json', '--to', 'anthropic', '--json');
    const report = JSON.parse(err);
    assert.deepEqual([report.dialect, report.to, report.ok, report.errors], ['openai-chat', 'anthropic', true, 2]);
  });

  test('without a target, or with an unknown one, the exit code is 2', async () => {
    const none = await convert('chat.json');
    assert.equal(none.code, 2);
    assert.match(none.err, /convert needs --to openai-chat, /);
    const unknown = await convert('chat.json', '--to', 'claude');
    assert.equal(unknown.code, 2);
    assert.match(unknown.err, /"claude" is not a dialect/);
  });
});
