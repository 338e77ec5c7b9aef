// R23 and R77: a process that asks in a message thread is killed with SIGKILL when the service has answered, before or
// after the answer is stored in SQLite; another process goes on. The service continues a response once.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';
import { THREAD, calling, serviceOf, withoutResults, wordsOf, wordsOfSession } from '../bindings/thread-chat.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { endsWithThisProcess } from './child-processes.mjs';
import { MODES } from './run-kill-model.mjs';

const program = fileURLToPath(new URL('thread-program.mjs', import.meta.url));
/** With `npm test -- --long` every mode. */
const CHOSEN = process.env.RETHREAD_LONG ? MODES : ['run'];
const linesOf = (file) => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []);

async function isKilled(args) {
  const child = spawn(process.execPath, ['--no-warnings', program, ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
  const [code, signal] = await once(endsWithThisProcess(child), 'exit');
  assert.ok(signal === 'SIGKILL' || code === 0, `the run ended with ${code}`);
  return signal === 'SIGKILL';
}

/** Waits until the killed process counts as gone. */
async function pendingOf(session) {
  let [pending] = await session.pendingRuns();
  for (; pending?.state === 'live'; [pending] = await session.pendingRuns())
    await new Promise((resolve) => setTimeout(resolve, 20));
  return pending;
}

test('r23_r77_SIGKILL_between_the_answer_of_a_thread_and_its_storing_doubles_and_loses_nothing', {
  timeout: 60_000,
}, async () => {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-threads-'));
  const file = path.join(folder, 'chats.sqlite');
  const standIn = await startStandIn();
  const client = await open({ store: sqlite(file), leaseMs: 100 });
  try {
    for (const mode of CHOSEN)
      for (const answer of [1, 2])
        for (const when of ['before', 'after']) {
          const name = `${mode}-${answer}-${when}`;
          const notes = path.join(folder, name);
          const { lane, provider, finish, threads, check } = serviceOf(standIn.url, name);
          const session = await client.session(name, { owner: THREAD });
          await finish(session, { input: 'One' }, { text: 'First.' });
          await lane.script([calling(), { text: 'Second.' }]);
          assert.ok(await isKilled([file, lane.messages, name, mode, 'Two', String(answer), when, notes]), name);
          await session.refresh();
          // The model says it again if the answer was lost.
          const isLost = when === 'before';
          await lane.script([...(isLost && answer === 1 ? [calling()] : []), { text: 'Second, again.' }]);
          const tools = { look: { execute: (_, { invocationId }) => `found by ${invocationId}` } };
          const pending = await pendingOf(session);
          const stored = (await session.messages()).items.length;
          if (pending || stored === 2) {
            const run = pending
              ? await session.resume(pending.id, { provider, tools })
              : await session.run({ input: 'Two', provider, tools });
            const result = await drive(run).result;
            assert.equal(result.status, 'finished', `${name}: ${JSON.stringify(result.error)}`);
            // The service had continued the response: another thread has the history.
            assert.equal(
              result.report.some(({ code }) => code === 'chain_restarted'),
              isLost,
              name,
            );
          } else assert.ok(!isLost && answer === 2, name);
          await finish(session, { tools, input: 'Three' }, { text: 'Third.' });
          const words = withoutResults(wordsOf((await threads()).newest.messages));
          assert.deepEqual(words, await wordsOfSession(session), name);
          assert.equal(new Set(words).size, words.length, words.join('; '));
          for (const question of ['user: One', 'user: Two', 'user: Three']) assert.ok(words.includes(question), name);
          assert.ok(linesOf(notes).length <= 1, 'a tool ran twice');
          await check();
        }
  } finally {
    await client.close();
    await standIn.close();
    rmSync(folder, { recursive: true, force: true });
  }
});
