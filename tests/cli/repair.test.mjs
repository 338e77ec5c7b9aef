// `rethread repair`: the body that comes out, to the byte.

import assert from 'node:assert/strict';
import { lstatSync, readdirSync, readFileSync, symlinkSync } from 'node:fs';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { body, folderWith, messages, rethread } from './run.mjs';

const { head, call, result, stray, last } = messages;
const closing =
  '{"role":"tool","tool_call_id":"call_1","content":"Interrupted: this call has no recorded result; it may or may not have run."}';

let folder;
let remove;
before(() => {
  ({ folder, remove } = folderWith({
    'clean.json': body(head, call, result, last),
    'open.json': body(head, call, last, stray),
    'over.json': body(head, call),
    'list.json': `[${[head, call, last].join(', ')}]`,
    'lines.jsonl': `${[head, call, last].join('\r\n')}\r\n`,
    'clean.jsonl': `\ufeff${[head, call, result].join('\r\n')}\r\n\r\n`,
  }));
});
after(() => remove());
const repair = (...args) => rethread(['repair', ...args], { cwd: folder });
const at = (name) => path.join(folder, name);

describe('r54_repair', () => {
  test('the body goes to standard output, digits and escapes as they were; the report to standard error', async () => {
    const { code, out, err } = await repair('open.json', '-d', 'openai-chat');
    assert.equal(code, 0);
    assert.equal(out, body(head, call, `${closing}, ${last}`).replace(`${call}, `, `${call},`));
    assert.match(err, /dangling_call .*\(synthesized\)/);
    assert.match(err, /orphan_result .*\(dropped\)/);
  });

  test('a valid file is written unchanged, byte for byte', async () => {
    for (const name of ['clean.json', 'clean.jsonl']) {
      const { code, out } = await repair(name, '-d', 'openai-chat');
      assert.equal(code, 0);
      assert.equal(out, readFileSync(at(name), 'utf8'));
    }
  });

  test('a bare array stays an array', async () => {
    const { out } = await repair('list.json');
    const again = JSON.parse(out);
    assert.deepEqual(
      again.map(({ role }) => role),
      ['user', 'assistant', 'tool', 'user'],
    );
    assert.ok(out.startsWith(`[${head}, ${call},`));
  });

  test('JSON Lines stay lines', async () => {
    const { out } = await repair('lines.jsonl');
    assert.equal(out, `${[head, call, closing, last].join('\n')}\n`);
  });

  test('-o writes a file and nothing to standard output; OUT may be FILE', async () => {
    const first = await repair('open.json', '-o', 'out.json');
    assert.deepEqual([first.code, first.out], [0, '']);
    const over = await repair('over.json', '-o', 'over.json');
    assert.deepEqual([over.code, over.out], [0, '']);
    for (const name of ['out.json', 'over.json']) {
      assert.equal((await rethread(['check', name], { cwd: folder })).code, 0);
    }
    assert.deepEqual(
      readdirSync(folder).filter((name) => name.startsWith('.')),
      [],
      'no draft is left',
    );
  });

  test('a link stays a link', async () => {
    symlinkSync('over.json', at('link.json'));
    assert.equal((await repair('open.json', '-o', 'link.json')).code, 0);
    assert.ok(lstatSync(at('link.json')).isSymbolicLink());
    assert.ok(readFileSync(at('over.json'), 'utf8').includes('well?'));
  });

  test('a file that cannot be written: the exit code is 2', async () => {
    const { code, err } = await repair('open.json', '-o', 'nowhere/out.json');
    assert.equal(code, 2);
    assert.match(err, /nowhere\/out\.json cannot be written/);
  });

  test('standard input to standard output', async () => {
    const { code, out } = await rethread(['repair', '-', '-d', 'mistral', '--json'], { input: body(head, call) });
    assert.equal(code, 0);
    assert.match(JSON.parse(out).messages[1].tool_calls[0].id, /^[A-Za-z0-9]{9}$/);
  });

  test('--json writes the report to standard error', async () => {
    const { out, err } = await repair('open.json', '--json', '-d', 'openai-chat');
    assert.ok(JSON.parse(out).messages);
    assert.deepEqual(
      JSON.parse(err).findings.map(({ code, action }) => [code, action]),
      [
        ['dangling_call', 'synthesized'],
        ['orphan_result', 'dropped'],
      ],
    );
  });

  test('--dangling-calls and --dangling-text', async () => {
    const omitted = JSON.parse((await repair('open.json', '--dangling-calls', 'omit')).out);
    assert.ok(!JSON.stringify(omitted).includes('call_1'));
    assert.ok((await repair('open.json', '--dangling-text', 'gone')).out.includes('"content":"gone"'));
  });
});
