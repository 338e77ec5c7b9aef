// `rethread check`: its report of a file, and its exit code.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { paintFor } from '../../js/cli/report.js';
import { body, folderWith, messages, rethread } from './run.mjs';

const { head, call, result, stray, last } = messages;
const anthropic =
  '{"system":"s","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"look","input":{}}]},{"role":"user","content":"?"}]}';

let folder;
let remove;
before(() => {
  ({ folder, remove } = folderWith({
    'clean.json': body(head, call, result, last),
    'open.json': body(head, call, last, stray),
    'twice.json': body(head, call, result, last, call, result),
    'list.json': `[${[head, call, last].join(',\n')}]`,
    'lines.jsonl': `${[head, call, '', last].join('\n')}\n`,
    'one.jsonl': `${head}\n`,
    'plain.json': '{"messages":[{"role":"user","content":"hi"}]}',
    'anthropic.json': anthropic,
    'hugging-face.json': '{"inputs":"Hi","parameters":{"max_new_tokens":9}}',
    'hugging-face-list.json': '{"model":"m","inputs":["Hi"],"parameters":{}}',
    'inputs.json': '{"inputs":"Hi"}',
    'conversation.json': '{"agent_id":"ag_1","inputs":"Hi"}',
    'cut.json': '{"messages": [\n  {"role": "user",\n   "content": "h',
    'cut.jsonl': `${head}\n{"role":\n`,
    'bodies.jsonl': `${body(head)}${body(head)}`,
    'latin.json': Buffer.from([0x7b, 0x22, 0xe9, 0x22, 0x3a, 0x31, 0x7d]),
    'empty.json': ' \n',
    'terminal.json': '{"messages":[{"role":"tool","tool_call_id":"\\u001b[31mred","content":"x"}]}',
  }));
});
after(() => remove());
const check = (file, ...more) => rethread(['check', file, ...more], { cwd: folder });

describe('r54_check', () => {
  test('a body without findings: the exit code is 0', async () => {
    const { code, out } = await check('clean.json', '--dialect', 'openai-chat');
    assert.equal(code, 0);
    assert.match(out, /^clean\.json: openai-chat, 4 messages, nothing wrong\n$/);
  });

  test("errors: the exit code is 1; each is on a line with its pointer, grouped by message, with the provider's sentence", async () => {
    const { code, out } = await check('open.json', '-d', 'openai-chat');
    assert.equal(code, 1);
    const lines = out.trimEnd().split('\n');
    assert.equal(lines[0], 'open.json: openai-chat, 4 messages, 2 errors');
    assert.equal(lines[1], 'message 1, assistant');
    assert.match(
      lines[2],
      /^ {2}error {4}dangling_call {2}\/messages\/1\/tool_calls\/0 {2}An assistant message with 'tool_calls' must be followed by tool messages/,
    );
    assert.equal(lines[3], 'message 3, tool');
    assert.match(lines[4], /orphan_result {2}\/messages\/3 /);
    assert.deepEqual(lines.slice(5, 7), [
      'see: npx rethread explain dangling_call --dialect openai-chat',
      'see: npx rethread explain orphan_result --dialect openai-chat',
    ]);
    // A page of the installed package, not an address.
    const [, page] = /^rules: (.*)$/.exec(lines[7]);
    assert.match(readFileSync(path.resolve(folder, page), 'utf8'), /^## dangling_call$/m);
  });

  test('warnings alone: the exit code is 0', async () => {
    const { code, out } = await check('twice.json', '-d', 'openai-chat');
    assert.equal(code, 0);
    assert.match(out, /1 warning\n/);
    assert.match(out, /warning {2}duplicate_call_id/);
  });

  test('pointers into a bare array begin at the array', async () => {
    const { code, out } = await check('list.json', '-d', 'openai-chat');
    assert.equal(code, 1);
    assert.match(out, /dangling_call {2}\/1\/tool_calls\/0 /);
  });

  test('JSON Lines: the line is named', async () => {
    const { code, out } = await check('lines.jsonl', '-d', 'openai-chat');
    assert.equal(code, 1);
    assert.match(out, /3 messages, 1 error\nmessage 1, assistant, line 2\n/);
    assert.equal((await check('one.jsonl', '-d', 'openai-chat')).code, 0);
  });

  test('standard input', async () => {
    const { code, out } = await rethread(['check', '-', '-d', 'openai-chat'], { input: body(head, call) });
    assert.equal(code, 1);
    assert.match(out, /^standard input: /);
  });

  test('the dialect is recognized by its shape, and a note says so', async () => {
    const chat = await check('open.json');
    assert.match(chat.err, /read as openai-chat, because a message has `tool_calls`; --dialect overrides this/);
    assert.equal(chat.code, 1);
    const other = await check('anthropic.json');
    assert.match(other.err, /read as anthropic/);
    assert.match(other.out, /dangling_call|missing_parallel_result/);
  });

  test('without a recognizable shape the option --dialect is required', async () => {
    const { code, out, err } = await check('plain.json');
    assert.deepEqual([code, out], [2, '']);
    assert.match(
      err,
      /cannot be recognized; pass --dialect openai-chat, openai-responses, anthropic, gemini, mistral, bedrock, mistral-conversations or gemini-interactions/,
    );
  });

  test('r65 a body of Hugging Face is no conversation of Mistral', async () => {
    for (const file of ['hugging-face.json', 'hugging-face-list.json', 'inputs.json']) {
      const { code, out, err } = await check(file);
      assert.notEqual(code, 0, file);
      assert.doesNotMatch(out + err, /read as|json: mistral-conversations, /, file);
    }
    const { code, err } = await check('conversation.json');
    assert.equal(code, 0, err);
    assert.match(err, /read as mistral-conversations/);
  });

  test('a dialect that does not fit the body gets a hint', async () => {
    const { code, err } = await check('anthropic.json', '-d', 'gemini');
    assert.equal(code, 1);
    assert.match(err, /it looks like anthropic/);
  });

  test('--json', async () => {
    const { code, out, err } = await check('lines.jsonl', '--json');
    assert.deepEqual([code, err], [1, '']);
    const report = JSON.parse(out);
    assert.equal(report.findings[0].path, '/1/tool_calls/0');
    assert.deepEqual(
      [report.file, report.form, report.dialect, report.ok, report.errors, report.warnings],
      ['lines.jsonl', 'lines', 'openai-chat', false, 1, 0],
    );
    assert.match(report.guessed, /tool_calls/);
    assert.equal(JSON.parse((await check('clean.json', '--json', '-d', 'openai-chat')).out).guessed, null);
  });

  test('colour for a terminal, none against NO_COLOR', () => {
    const red = (stream, env) => paintFor(stream, env)('error', 'x');
    assert.equal(red({ isTTY: true }, {}), '\u001b[31mx\u001b[0m');
    for (const [stream, env] of [
      [{ isTTY: true }, { NO_COLOR: '1' }],
      [{ isTTY: true }, { TERM: 'dumb' }],
      [{}, {}],
    ])
      assert.equal(red(stream, env), 'x');
  });

  test('no colour in a pipe', async () => {
    assert.ok(!(await check('open.json')).out.includes('\u001b'));
  });

  test('control characters of the file are escaped for the terminal', async () => {
    const { out } = await check('terminal.json', '-d', 'openai-chat');
    assert.ok(!out.includes('\u001b'));
    assert.match(out, /\\u001b\[31mred/);
  });
});

describe('r54_misuse: the exit code is 2, with a message that says what to do', () => {
  const cases = [
    ['no command', [], /pass a command: check/],
    ['an unknown command', ['chekc', 'clean.json'], /"chekc" is not a command/],
    ['no file', ['check'], /check needs a file, or "-"/],
    ['two files to repair', ['repair', 'clean.json', 'open.json'], /repair takes one file, not 2/],
    ['an unknown option', ['check', '--dialct', 'x', 'clean.json'], /Unknown option '--dialct'/],
    ['an option of another command', ['check', 'clean.json', '-o', 'x'], /check has no option --out/],
    ['an unknown dialect', ['check', 'clean.json', '-d', 'openai'], /"openai" is not a dialect; use openai-chat, /],
    ['no such file', ['check', 'nowhere.json', '-d', 'openai-chat'], /nowhere\.json cannot be read: no such file/],
    ['a folder', ['check', '.', '-d', 'openai-chat'], /cannot be read: it is a folder/],
    ['no JSON', ['check', 'cut.json', '-d', 'openai-chat'], /cut\.json is not JSON: syntax error at line 3, column 17/],
    ['broken JSON Lines', ['check', 'cut.jsonl', '-d', 'openai-chat'], /line 2 is not JSON/],
    [
      'many bodies to repair',
      ['repair', 'bodies.jsonl', '-d', 'openai-chat'],
      /has 2 conversations; `rethread check` takes them all/,
    ],
    ['no UTF-8', ['check', 'latin.json', '-d', 'openai-chat'], /is not UTF-8/],
    ['nothing', ['check', 'empty.json', '-d', 'openai-chat'], /empty\.json is empty/],
    ['an unknown wish', ['repair', 'open.json', '--dangling-calls', 'drop'], /"synthesize" or "omit", not "drop"/],
  ];
  for (const [name, args, sentence] of cases) {
    test(name, async () => {
      const { code, out, err } = await rethread(args, { cwd: folder });
      assert.deepEqual([code, out], [2, ''], err);
      assert.match(err, sentence);
    });
  }
});

test('r54_heal is no command, which says what heals, and an unknown one has no help', async () => {
  for (const args of [['heal', 'clean.json'], ['heal'], ['heal', '--help']]) {
    const { code, out, err } = await rethread(args);
    assert.deepEqual([code, out], [2, '']);
    assert.match(
      err,
      /"heal" is not a command: .*`repairing\(\)` of "rethread\/fetch".*`explain` knows the sentence.*use check, repair/,
    );
  }
  for (const args of [
    ['chekc', '--help'],
    ['chekc', '-h'],
    ['chekc', '--version'],
  ]) {
    const { code, out, err } = await rethread(args);
    assert.deepEqual([code, out], [2, '']);
    assert.match(err, /^rethread: "chekc" is not a command; use check, repair, convert or explain\n/);
  }
  const { code, out } = await rethread(['check', '--help']);
  assert.equal(code, 0);
  assert.match(out, /^Usage: /);
});

test('r54_--help and --version print to standard output', async () => {
  const help = await rethread(['--help']);
  assert.deepEqual([help.code, help.err], [0, '']);
  for (const word of ['check', 'repair', 'convert', '--dialect', '--json', 'NO_COLOR', 'Exit code'])
    assert.ok(help.out.includes(word), word);
  assert.match((await rethread(['--version'])).out, /^\d+\.\d+\.\d+\n$/);
});
