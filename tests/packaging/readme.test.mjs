// The README keeps its word: its example is run as it stands, its table and its commands are looked at.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { repair, validate } from '../../js/entry/node.js';
import { startStandIn } from '../stand-in/server.mjs';

const exec = promisify(execFile);
const root = fileURLToPath(new URL('../..', import.meta.url));
const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
const [[, oneLine], [, example]] = readme.matchAll(/^```js\n([\s\S]*?)^```$/gm);

let project;
let standIn;
before(async () => {
  project = mkdtempSync(path.join(tmpdir(), 'rethread-readme-'));
  mkdirSync(path.join(project, 'node_modules'));
  symlinkSync(root, path.join(project, 'node_modules/rethread'), 'dir');
  symlinkSync(path.join(root, 'node_modules/openai'), path.join(project, 'node_modules/openai'), 'dir');
  standIn = await startStandIn();
});
after(async () => {
  await standIn?.close();
  if (project) rmSync(project, { recursive: true, force: true });
});

/** Runs it, its providers replaced by a lane of the stand-in; answers what it printed and what was asked. */
async function run(lane, source) {
  const here = (name, address) => {
    const pattern = new RegExp(`const ${name} = "https://[^"]+";`);
    assert.match(source, pattern);
    source = source.replace(pattern, `const ${name} = "${standIn.url}/lane/${lane}/${address}";`);
  };
  here('OPENAI', 'v1/chat/completions');
  here('ANTHROPIC', 'v1/messages');
  const file = path.join(project, `${lane}.mjs`);
  writeFileSync(file, source);
  const { stdout } = await exec(process.execPath, [file], {
    cwd: project,
    timeout: 60_000,
    env: { ...process.env, OPENAI_API_KEY: 'sk-readme', ANTHROPIC_API_KEY: 'sk-readme' },
  });
  const requests = await (await fetch(`${standIn.url}/lane/${lane}/control/requests`)).json();
  return { lines: stdout.trim().split('\n'), requests };
}

function assertAnswered({ lines, requests }) {
  assert.equal(lines.filter((line) => line.startsWith('finished: ')).length, 2, lines.join('\n'));
  for (const { n, status, error } of requests)
    assert.equal(status, 200, `request ${n} was refused: ${JSON.stringify(error)}`);
}

describe('r64: the line at the top of the README', () => {
  const broken = [
    { role: 'user', content: 'What is the weather in Lisbon?' },
    {
      role: 'assistant',
      content: null,
      tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'get_weather', arguments: '{}' } }],
    },
    { role: 'user', content: 'Hello?' },
  ];
  /** Sends the broken conversation with the client that the source makes; answers what was printed. */
  async function ask(lane, source) {
    const file = path.join(project, `${lane}.mjs`);
    writeFileSync(
      file,
      `${source}
const answer = await client.chat.completions.create({ model: 'gpt-4.1', messages: ${JSON.stringify(broken)} }).catch((error) => error);
console.log(answer.status ?? answer.choices[0].message.content);`,
    );
    const env = { ...process.env, OPENAI_API_KEY: 'sk-readme', OPENAI_BASE_URL: `${standIn.url}/lane/${lane}/v1` };
    return (await exec(process.execPath, [file], { cwd: project, timeout: 60_000, env })).stdout.trim();
  }

  test('the client sends a body that is accepted', async () =>
    assert.match(await ask('one-line', oneLine), /^You said: "Hello\?"/));

  test('without repairing() the request is rejected', async () => {
    assert.match(oneLine, /\{ fetch: repairing\(\) \}/);
    assert.equal(await ask('without', oneLine.replace('{ fetch: repairing() }', '{}')), '400');
  });
});

describe('the example', () => {
  test('the provider rejects the body that it starts with', async () => {
    const [, broken] = /^const broken = ([\s\S]*?);\n$/m.exec(example);
    const { messages } = new Function(`return ${broken}`)();
    const response = await fetch(`${standIn.url}/lane/broken/v1/chat/completions`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ model: 'gpt-4.1', messages }),
    });
    assert.equal(response.status, 400);
    assert.match((await response.json()).error.message, /tool_calls/);
  });

  test('runs unchanged', async () => {
    const ran = await run('example', example);
    assertAnswered(ran);
    assert.equal(ran.lines[0], 'dangling_call: synthesized');
    assert.match(ran.lines.at(-1), /^\d+ messages in the view$/);

    const { requests } = ran;
    const dialects = requests.map(({ dialect }) => dialect);
    assert.deepEqual([...new Set(dialects)], ['openai-chat', 'anthropic'], 'first one provider, then the other');
    for (const { dialect, headers } of requests)
      assert.equal(headers[dialect === 'anthropic' ? 'x-api-key' : 'authorization'], 'present');
    // The other provider is told everything that came before.
    const told = requests.find(({ dialect }) => dialect === 'anthropic').bodyText;
    for (const text of [
      'What is the weather in Lisbon?',
      'Hello? Are you there?',
      'And in Oslo?',
      'Which is warmer?',
      'celsius',
    ])
      assert.ok(told.includes(text), text);
  });

  test('resumes a run that was interrupted', async () => {
    // As after a crash: a run whose second model call never came back, in the store that the example opens.
    const crashed = `
async function openAfterCrash() {
  const rethread = await open();
  const session = await rethread.session('chat-1');
  let calls = 0;
  const cut = async (...given) => {
    if (++calls > 1) throw new TypeError('the network is gone');
    return fetch(...given);
  };
  const lost = await drive(await session.run({ input: 'What is the weather in Rome?', provider: gpt, tools, retry: { attempts: 1 } }), { headers, fetch: cut }).result;
  console.log('lost: ' + lost.status);
  return rethread;
}
`;
    const ran = await run(
      'resumed',
      example.replace('const rethread = await open();', 'const rethread = await openAfterCrash();') + crashed,
    );
    assertAnswered(ran);
    assert.ok(ran.lines.includes('lost: failed'));
    const rome = ran.requests.filter(({ body }) =>
      JSON.stringify(body.messages.at(-1)).includes('What is the weather in Rome?'),
    );
    assert.equal(rome.length, 1, 'an answer that was received is not asked for again');
    assert.ok(
      ran.requests.at(-1).bodyText.includes('What is the weather in Rome?'),
      'the resumed turn is part of history',
    );
  });
});

describe('the table of repairs', () => {
  const user = (content = 'hi') => ({ role: 'user', content });
  const calls = (...ids) => ({
    role: 'assistant',
    content: null,
    tool_calls: ids.map((id) => ({ id, type: 'function', function: { name: 'look', arguments: '{}' } })),
  });
  const result = (id, content = 'ok') => ({ role: 'tool', tool_call_id: id, content });
  const said = { role: 'assistant', content: 'done' };
  const closing = (message) => message.role === 'tool' && /Interrupted/.test(message.content);

  const ROWS = {
    'call, user': [[user(), calls('a'), user('?')], (out) => assert.ok(closing(out[2]) && out[3].content === '?')],
    'two calls, one result': [
      [user(), calls('a', 'b'), result('a'), user('?')],
      (out) => assert.ok(out[2].content === 'ok' && closing(out[3])),
    ],
    'a result without a call': [[user(), result('x'), user('?')], (out) => assert.deepEqual(out, [user(), user('?')])],
    'call, user, result': [
      [user(), calls('a'), user('?'), result('a')],
      (out) => assert.deepEqual(out, [user(), calls('a'), result('a'), user('?')]),
    ],
    'one result twice': [
      [user(), calls('a'), result('a'), result('a', 'other'), user('?')],
      (out) => assert.deepEqual(out, [user(), calls('a'), result('a'), user('?')]),
    ],
    'results in another order than the calls': [[user(), calls('a', 'b'), result('b'), result('a'), user('?')], null],
    'one call id in two turns': [
      [user(), calls('a'), result('a'), said, user(), calls('a'), result('a'), user('?')],
      null,
    ],
  };
  const written = [...readme.matchAll(/^\| (.+?) \| .+? \|(?: `(\w+)`(?: \(warning\))?)? \|$/gm)]
    .filter(([, row]) => Object.hasOwn(ROWS, row))
    .map(([, row, code]) => [row, code]);

  test('contains every row that is tested here', () =>
    assert.deepEqual(written.map(([row]) => row).sort(), Object.keys(ROWS).sort()));

  for (const [row, code] of written) {
    test(row, async () => {
      const [messages, check] = ROWS[row];
      const { body, report } = repair({ messages }, 'openai-chat');
      assert.deepEqual(
        report.map((finding) => finding.code),
        code ? [code] : [],
      );
      if (check) check(body.messages);
      else assert.deepEqual(body.messages, messages);
      assert.deepEqual(
        validate(body, 'openai-chat').filter(({ severity }) => severity === 'error'),
        [],
      );
      assert.deepEqual(repair(body, 'openai-chat').body, body);
      const response = await fetch(`${standIn.url}/lane/table/v1/chat/completions`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: JSON.stringify({ model: 'gpt-4.1', ...body }),
      });
      assert.equal(response.status, 200, await response.text());
    });
  }
});

test('commands that the documents name exist', () => {
  const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  const guides = readdirSync(path.join(root, 'docs'), { recursive: true })
    .filter((name) => name.endsWith('.md'))
    .map((name) => `docs/${name}`);
  for (const name of ['README.md', 'ARCHITECTURE.md', 'CONTRIBUTING.md', 'CHANGELOG.md', 'SECURITY.md', ...guides]) {
    const text = readFileSync(path.join(root, name), 'utf8');
    for (const [, command] of text.matchAll(/\bnpm run ([\w-]+)/g))
      assert.ok(Object.hasOwn(scripts, command), `${name}: npm run ${command}`);
  }
});
