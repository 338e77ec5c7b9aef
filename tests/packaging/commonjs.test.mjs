// `require` of the package. A Node that can require modules (20.19, 22.12 and newer) gets the modules themselves; an
// older one, and a test runner that has a `require` of its own, get dist/cjs.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { after, before, test } from 'node:test';
import { promisify } from 'node:util';
import { commonJsEntries } from '../../.ci/base64-and-cjs.mjs';
import { jest, oldNodes } from '../../.ci/matrix.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { assertDone } from './page.mjs';
import { install, pack, repository } from './project.mjs';

const exec = promisify(execFile);
const isLong = Boolean(process.env.RETHREAD_LONG);

let packed;
let standIn;
let project;
before(async () => {
  packed = pack();
  standIn = await startStandIn();
  project = install(packed, 'commonjs');
  const chat = readFileSync(path.join(project, 'chat.js'), 'utf8');
  writeFileSync(path.join(project, 'chat.cjs'), asCommonJs(chat));
  // The peer of rethread/langchain, which that entry loads.
  mkdirSync(path.join(project, 'node_modules/@langchain'), { recursive: true });
  symlinkSync(
    path.join(repository, 'node_modules/@langchain/core'),
    path.join(project, 'node_modules/@langchain/core'),
    'dir',
  );
});
after(async () => {
  await standIn?.close();
  packed?.remove();
});

/** The same program, with `require` and `module.exports`. */
function asCommonJs(source) {
  const exported = [...source.matchAll(/^export (?:async )?function (\w+)/gm)].map(([, name]) => name);
  const required = source
    .replace(/^import \{ (.*?) \} from '(.*?)';$/gm, "const { $1 } = require('$2');")
    .replace(/^export (?=(?:async )?function)/gm, '');
  assert.doesNotMatch(required, /^(import|export)\b/m);
  return `${required}\nmodule.exports = { ${exported.join(', ')} };\n`;
}

const names = () => commonJsEntries().map(({ name }) => name.replace('.', 'rethread'));
const model = (lane) => `${standIn.url}/lane/${lane}/v1/chat/completions`;

/** Runs main.cjs; returns what it printed. */
async function run(lane, flags = [], node = process.execPath) {
  const args = [...flags, 'main.cjs', model(`${lane}-fetch`), model(lane), JSON.stringify(names())];
  const { stdout } = await exec(node, args, { cwd: project, timeout: 60_000 });
  return JSON.parse(stdout);
}

function assertRequired(answer, isSame) {
  assertDone(answer);
  assert.ok(answer.oneHost);
  assert.deepEqual(Object.keys(answer.exported), names());
  for (const [name, entry] of Object.entries(answer.exported))
    assert.deepEqual(entry, { isComplete: true, isSame: isSame || entry.isSame }, name);
  assert.equal(answer.exported.rethread.isSame, isSame);
}

test('r50 every entry but that of Workers can be required', () => {
  const { exports } = JSON.parse(readFileSync(path.join(repository, 'package.json'), 'utf8'));
  const modules = Object.entries(exports).filter(([, target]) => typeof target !== 'string' || /\.js$/.test(target));
  const missing = modules.filter(([, target]) => !target.node?.require).map(([name]) => name);
  // `./base64` is for bundlers.
  assert.deepEqual(missing, ['./cloudflare', './base64']);
  for (const { name, file } of commonJsEntries())
    assert.equal(file, `./dist/cjs/${name === '.' ? 'index' : name.slice(2)}.cjs`);
});

test('r50 require returns the modules that import returns', async () => assertRequired(await run('modules'), true));

test('r50 require in a Node that cannot require modules has a chat with tools', async () =>
  assertRequired(await run('files', ['--no-experimental-require-module']), false));

test('r50 require in older Nodes', { skip: isLong ? false : 'RETHREAD_LONG', timeout: 600_000 }, async () => {
  for (const [version, node] of await oldNodes()) assertRequired(await run(`node-${version}`, [], node), false);
});

test('r50 require under Jest', { skip: isLong ? false : 'RETHREAD_LONG', timeout: 600_000 }, async () => {
  const program = path.join(await jest(), 'node_modules/jest/bin/jest.js');
  writeFileSync(
    path.join(project, 'chat.test.cjs'),
    `const { chat, keep, mapDriver } = require('./chat.cjs');
test('a chat with tools', async () => {
  const { answers, invocations } = await chat(${JSON.stringify(model('jest'))});
  expect(answers.map(({ status }) => status)).toEqual(['finished', 'finished']);
  expect(invocations).toBeGreaterThanOrEqual(2);
  expect(await keep(mapDriver())).toEqual(['kept']);
});\n`,
  );
  const flags = ['--rootDir', project, '--testMatch', '**/chat.test.cjs', '--json'];
  const { stdout } = await exec(process.execPath, [program, ...flags], { cwd: project, timeout: 120_000 });
  assert.equal(JSON.parse(stdout).numPassedTests, 1);
});
