// A file of tests that is stopped, as the test runner does after its time, leaves no server behind.

import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { endsWithThisProcess } from './child-processes.mjs';
import { until } from './polling.mjs';

const program = fileURLToPath(new URL('leftovers-program.mjs', import.meta.url));

const isRunning = (pid) => {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    assert.equal(error.code, 'ESRCH');
    return false;
  }
};

for (const server of ['PostgreSQL', 'Redis', 'workerd']) {
  test(`${server} ends with the process that started it`, async () => {
    const child = endsWithThisProcess(
      spawn(process.execPath, ['--no-warnings', program, server], { stdio: ['ignore', 'pipe', 'inherit'] }),
    );
    const [output] = await once(child.stdout, 'data');
    const pid = Number(output);
    assert.ok(pid > 1 && isRunning(pid));
    child.kill('SIGTERM');
    await once(child, 'exit');
    await until(`the end of ${server}`, () => !isRunning(pid));
  });
}
