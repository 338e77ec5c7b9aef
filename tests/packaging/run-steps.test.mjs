// .ci/run-steps.mjs: what steps print and how they end, however that is.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, test } from 'node:test';

const RUN_STEPS = new URL('../../.ci/run-steps.mjs', import.meta.url).href;
const LONG = 1_000_000;
const PROGRAM = `
import { spawn } from 'node:child_process';
import { flushOutput, runStepInThisProcess, runSteps } from ${JSON.stringify(RUN_STEPS)};
class Skip extends Error {}
const leave = () => spawn(process.execPath, ['-e', 'setTimeout(() => {}, 60000)'], { stdio: 'inherit', detached: true });
const STEPS = [
  { name: 'prints', step: async () => console.log('y'.repeat(${LONG})) },
  { name: 'leaves', step: async () => { const child = leave(); child.unref(); console.log('left=' + child.pid); } },
  { name: 'skips', step: async () => { throw new Skip('not here'); } },
  { name: 'fails', step: async () => { throw undefined; } },
  { name: 'ends', step: async () => process.exit(0) },
  { name: 'waits', step: () => new Promise(() => {}) },
  { name: 'hangs', step: async () => { console.log('hanging'); await new Promise((resolve) => setTimeout(resolve, 60000)); } },
  { name: 'talks', step: async () => { console.log('talking'); await new Promise((resolve) => setTimeout(resolve, 60000)); } },
  { name: 'first', after: ['last', 'second'], step: async () => {} },
  { name: 'second', needs: ['third'], step: async () => {} },
  { name: 'third', after: ['first'], step: async () => {} },
  { name: 'last', after: ['prints'], step: async () => {} },
].map((step) => ({ ...step, why: 'a test' }));
const at = process.argv.indexOf('--step');
if (at > 0) await runStepInThisProcess(STEPS.find(({ name }) => name === process.argv[at + 1]), Skip);
const names = process.argv[2].split(',');
const results = await runSteps(STEPS.filter(({ name }) => names.includes(name)), { program: process.argv[1], args: ['-'], keepGoing: true });
console.log('results=' + JSON.stringify(results.map(({ step, outcome }) => [step.name, outcome])));
await flushOutput();
process.exit(0);
`;

let folder;
let program;
before(() => {
  folder = mkdtempSync(path.join(tmpdir(), 'rethread-run-steps-'));
  program = path.join(folder, 'program.mjs');
  writeFileSync(program, PROGRAM);
});
after(() => rmSync(folder, { recursive: true }));

/** Starts the steps; `printed.text` is what they have printed so far. */
function start(...names) {
  const child = spawn(process.execPath, [program, names.join(',')], { stdio: ['ignore', 'pipe', 'pipe'] });
  const printed = { text: '' };
  for (const stream of [child.stdout, child.stderr])
    stream.setEncoding('utf8').on('data', (chunk) => {
      printed.text += chunk;
    });
  return { child, printed, ended: once(child, 'close') };
}

test('a step is what it reported; one that reported nothing has failed; its output is whole', async () => {
  const { printed, ended } = start('prints', 'leaves', 'skips', 'fails', 'ends', 'waits');
  await ended;
  const { text } = printed;
  const left = Number(/left=(\d+)/.exec(text)?.[1]);
  process.kill(left); // throws if it is not the program that the step has left behind
  assert.equal(/y{2,}/.exec(text)?.[0].length, LONG);
  assert.deepEqual(Object.fromEntries(JSON.parse(/results=(.*)/.exec(text)?.[1] ?? '[]')), {
    prints: 'ok',
    leaves: 'ok',
    skips: 'skip',
    fails: 'FAIL',
    ends: 'FAIL',
    waits: 'FAIL',
  });
});

test('steps that wait for each other are named, and none runs; of steps that are not run nothing is waited for', async () => {
  const circle = start('prints', 'first', 'second', 'third', 'last');
  assert.deepEqual(await circle.ended, [1, null]);
  assert.match(circle.printed.text, /Error: steps wait for each other: first after second after third after first\n/);
  assert.doesNotMatch(circle.printed.text, /===/);
  const line = start('third', 'second', 'last');
  assert.deepEqual(await line.ended, [0, null]);
  assert.match(line.printed.text, /=== third[^]*=== second/);
});

test('a run that is ended prints what its second step has said, and fails', async () => {
  const { child, printed, ended } = start('hangs', 'talks');
  while (!printed.text.includes('hanging')) await once(child.stdout, 'data');
  // The other one began at the same time; nothing tells from outside what it has printed.
  await new Promise((resolve) => setTimeout(resolve, 1500));
  assert.doesNotMatch(printed.text, /talking/);
  child.kill('SIGTERM');
  assert.deepEqual(await ended, [1, null]);
  assert.match(printed.text, /=== talks[^]*talking/);
});
