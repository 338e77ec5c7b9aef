// A process that asks in a thread, and is killed at the first operation of its store after an answer:
// node thread-program.mjs <file> <url> <session> <mode> <question> <answer> <before|after> <notes>
// It ends by itself if the run has fewer answers.

import { appendFileSync } from 'node:fs';
import { open } from 'rethread';
import { drive } from 'rethread/host';
import { sqlite } from 'rethread/sqlite';
import { watchedDriver } from './run-kill-model.mjs';

const [file, url, id, persistence, input, answer, when, notes] = process.argv.slice(2);
let answers = 0;
const driver = watchedDriver(sqlite(file), { isCounting: true, operations: 0 }, (_, moment) => {
  if (answers === Number(answer) && moment === when) process.kill(process.pid, 'SIGKILL');
});
const client = await open({ store: driver, leaseMs: 100 });
const session = await client.session(id, { owner: { kind: 'response', auto: true } });
const run = await session.run({
  input,
  persistence,
  provider: { dialect: 'anthropic', url, params: { model: 'm' } },
  tools: {
    look: {
      execute: (_, { invocationId }) => {
        appendFileSync(notes, `${invocationId}\n`);
        return 'found';
      },
    },
  },
});
const { status, error } = await drive(run, {
  fetch: async (...request) => {
    const response = await fetch(...request);
    const bytes = await response.arrayBuffer();
    answers += 1;
    return new Response(bytes, { status: response.status, headers: response.headers });
  },
}).result;
if (error) console.error(JSON.stringify(error));
await client.close();
process.exitCode = status === 'finished' ? 0 : 1;
