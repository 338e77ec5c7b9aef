// r53: a loop of `streamText` of `ai` 6 and 7 in processes that are killed.

import assert from 'node:assert/strict';
import { fork } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { after, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { shown } from '../judges/ai-sdk-chat.mjs';
import { endsWithThisProcess } from './child-processes.mjs';

const PROGRAM = fileURLToPath(new URL('ai-sdk-loop-program.mjs', import.meta.url));
const folder = mkdtempSync(path.join(tmpdir(), 'rethread-ai-sdk-'));
after(() => rmSync(folder, { recursive: true, force: true }));

/** Runs the program until it sends something, and kills it. */
async function killedAfter(...args) {
  const child = endsWithThisProcess(fork(PROGRAM, args));
  const ended = once(child, 'exit');
  const [message] = await Promise.race([
    once(child, 'message'),
    ended.then(([code]) => assert.fail(`the program ended with ${code}`)),
  ]);
  child.kill('SIGKILL');
  await ended;
  return message;
}

/** Kills the program at each place in turn, and lets it go on to its end. Returns what happened. */
async function killedAt(version, places, { rerun = '', kind = 'loop' } = {}) {
  const file = path.join(folder, `${version}-${places.join('-').replaceAll(' ', '_')}-${rerun}-${kind}.sqlite`);
  for (const place of places) assert.equal((await killedAfter(file, version, place, rerun, kind)).hangs, place);
  const end = await killedAfter(file, version, 'nowhere', rerun, kind);
  const lines = readFileSync(`${file}.log`, 'utf8').trim().split('\n');
  return {
    ...end,
    prompt: JSON.parse(lines.findLast((line) => line.startsWith('prompt')).slice('prompt '.length)),
    lines,
  };
}

const happened = (lines) => lines.filter((line) => !line.startsWith('prompt')).sort();
const ALL = ['look c1', 'look c3', 'model 0', 'model 1', 'model 2', 'pay c2'];
const STORED = ['user: Go.', 'assistant: c1 output-available: c2 output-available: c3 output-available: Done.'];

for (const version of ['6', '7'])
  test(`r53 a loop that is killed in a model call, in a tool or between two steps goes on: nothing is asked or run twice, with ai ${version}`, {
    timeout: 240_000,
  }, async () => {
    const [asked, inTool, ofPage, again, bare] = await Promise.all([
      killedAt(version, ['model 0', 'model 1']),
      killedAt(version, ['pay c2', 'model 2']),
      killedAt(version, ['pay c2', 'model 2'], { kind: 'page' }),
      killedAt(version, ['pay c2'], { rerun: 'pay' }),
      killedAt(version, ['pay c2'], { kind: 'bare' }),
    ]);
    // A model call that was not acknowledged is asked again; nothing else is.
    assert.equal(asked.text, 'Done.');
    assert.deepEqual(happened(asked.lines), [...ALL, 'model 0', 'model 1'].sort());
    assert.deepEqual(shown(asked.stored), STORED);
    for (const { lines, prompt, stored, text, calls } of [inTool, ofPage]) {
      assert.equal(text, 'Done.');
      assert.deepEqual(happened(lines), [...ALL, 'model 2'].sort());
      assert.match(prompt.join('\n'), /c1 = "look result": c2 = "Interrupted: .*may or may not have run/);
      assert.deepEqual(shown(stored), [STORED[0], STORED[1].replace('c2 output-available', 'c2 output-error')]);
      assert.deepEqual(
        calls.map(([, status]) => status),
        ['ok', 'interrupted', 'ok'],
      );
    }
    // Without `durableTools` nobody knows of any call of the round whether it ran.
    assert.match(bare.prompt.join('\n'), /c1 = "Interrupted: .*: c2 = "Interrupted: .*may or may not have run/);
    assert.deepEqual(happened(bare.lines), ALL);
    // A tool that may run again does.
    assert.deepEqual(happened(again.lines), [...ALL, 'pay c2'].sort());
    assert.deepEqual(shown(again.stored), STORED);
  });
