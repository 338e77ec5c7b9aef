// An agent drives a turn that calls tools against the stand-in. Its process is killed wherever the turn waits and at
// its writes, and started again: nothing is lost, nothing doubled.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, before, describe, test } from 'node:test';
import { setTimeout as pause } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { startStandIn } from '../stand-in/server.mjs';

/** The path of an agent. */
export const host = (name) => fileURLToPath(new URL(`hosts/${name}`, import.meta.url));

const QUESTION = 'What is the weather in Bern?';
/** Where a turn waits, as the stand-in names it. */
const WAITS = [
  { phase: 'model', ordinal: 1 },
  { phase: 'start', name: 'weather', ordinal: 1 },
  { phase: 'end', name: 'weather', ordinal: 1 },
  { phase: 'model', ordinal: 2 },
  { phase: 'start', name: 'weather', ordinal: 3 },
  { phase: 'model', ordinal: 3 },
];
const LIMIT = 60_000;

let standIn;
let folder;
let lanes = 0;
before(async () => {
  standIn = await startStandIn({ port: 0 });
  folder = mkdtempSync(path.join(tmpdir(), 'rethread-hosts-'));
});
after(async () => {
  await standIn.close();
  rmSync(folder, { recursive: true, force: true });
});

/** A lane of the stand-in, and a file for the store. */
function newPlace() {
  lanes += 1;
  const base = `${standIn.url}/lane/component-${lanes}`;
  const call = async (at, body) =>
    (await fetch(`${base}/control/${at}`, body && { method: 'POST', body: JSON.stringify(body) })).json();
  return { base, call, file: path.join(folder, `store-${lanes}.jsonl`) };
}

/** Starts an agent: its process, and a promise of what it printed. */
function start({ program, script, env }, { base, file }) {
  const options = { stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, ...env } };
  const child = spawn(program, [script, file, base, QUESTION], options);
  const ended = new Promise((resolve) => {
    const printed = { stdout: '', stderr: '' };
    for (const name of ['stdout', 'stderr'])
      child[name].setEncoding('utf8').on('data', (text) => {
        printed[name] += text;
      });
    child.on('close', (code, signal) => resolve({ code, signal, ...printed }));
  });
  return { child, ended };
}

async function until(what, condition) {
  for (let waited = 0; waited < LIMIT; waited += 2) {
    if (await condition()) return;
    await pause(2);
  }
  assert.fail(`${what} did not come in ${LIMIT} ms`);
}

/** Runs an agent to its end and returns the messages that it printed. */
async function finish(agent, place) {
  const { code, stdout, stderr } = await start(agent, place).ended;
  assert.equal(code, 0, stderr);
  return JSON.parse(stdout);
}

/** Asserts that the turn is whole: no request was refused, no tool started twice, no answer that was stored asked for
 *  again. `repeated`: how many requests may have been sent twice. */
async function assertWhole({ call }, messages, repeated) {
  const requests = await call('requests');
  assert.deepEqual(
    requests.filter(({ error }) => error).map(({ error, bodyText }) => [error, bodyText]),
    [],
  );
  const bodies = requests.map(({ bodyText }) => bodyText);
  assert.ok(bodies.length - new Set(bodies).size <= repeated, `repeated requests: ${bodies.join('\n')}`);
  const started = (await call('tools'))
    .filter(({ phase }) => phase === 'start')
    .map(({ invocationId }) => invocationId);
  assert.equal(new Set(started).size, started.length, 'a tool was started twice');
  const calls = messages.flatMap(({ parts }) => parts.filter(({ type }) => type === 'tool_call'));
  assert.equal(calls.length, 3);
  assert.ok(started.every((id) => calls.some(({ invocation }) => invocation === id)));
  assert.deepEqual([messages[0].role, messages[0].parts[0].text], ['user', QUESTION]);
  assert.deepEqual(
    messages.map(({ role }) => role),
    ['user', 'assistant', 'assistant', 'assistant'],
  );
  assert.equal(messages.at(-1).parts.at(-1).type, 'text');
  assert.equal(new Set(messages.map(({ id }) => id)).size, messages.length);
  return { calls, started };
}

const writesOf = ({ file }) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').length - 1 : 0);

/** The tests of an agent: a program and its script, the least number of writes of a turn, of which each `step`-th is
 *  tried, and what its environment has besides. */
export function describeKills(name, agent) {
  describe(name, () => {
    test('r51 a turn that calls tools is driven to its end', async () => {
      const place = newPlace();
      const messages = await finish(agent, place);
      const { calls } = await assertWhole(place, messages, 0);
      assert.ok(calls.every(({ status }) => status === 'ok'));
      assert.ok(writesOf(place) >= agent.writes, `${writesOf(place)} writes`);
      // Started again it has nothing to do, and shows what is stored.
      assert.deepEqual(await finish(agent, place), messages);
    });

    for (const hold of WAITS) {
      test(`r51 r18 killed while it waits for ${hold.phase} ${hold.ordinal}, it goes on`, async () => {
        const place = newPlace();
        await place.call('hold', hold);
        const { child, ended } = start(agent, place);
        await until('the wait', async () => (await place.call('waiting')).length > 0);
        child.kill('SIGKILL');
        assert.equal((await ended).signal, 'SIGKILL');
        await place.call('release', {});
        const messages = await finish(agent, place);
        await assertWhole(place, messages, hold.phase === 'model' ? 1 : 0);
      });
    }

    test('r51 r18 killed after each write, it goes on', async () => {
      for (let writes = 1; writes <= agent.writes; writes += agent.step ?? 1) {
        const place = newPlace();
        const { child, ended } = start(agent, place);
        await until(`write ${writes}`, () => writesOf(place) >= writes || child.exitCode !== null);
        child.kill('SIGKILL');
        await ended;
        await assertWhole(place, await finish(agent, place), 1);
      }
    });

    test('r51 r18 killed over and over, each time a little later, it comes to the end', async () => {
      const place = newPlace();
      let kills = 0;
      for (let life = 400; ; life += 100) {
        const { child, ended } = start(agent, place);
        const killed = await Promise.race([ended.then(() => false), pause(life, true)]);
        if (!killed) break;
        child.kill('SIGKILL');
        await ended;
        kills += 1;
      }
      await assertWhole(place, await finish(agent, place), kills);
    });
  });
}
