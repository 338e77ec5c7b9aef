// Two processes append to one session.

import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const writer = fileURLToPath(new URL('writer.mjs', import.meta.url));

/** Returns the conflicts of both. None of them runs any more when it rejects. */
export async function twoProcesses(store, place, session, count) {
  const args = (number) => ['--no-warnings', writer, store, place, session, String(number), String(count)];
  const both = await Promise.allSettled([0, 1].map((number) => promisify(execFile)(process.execPath, args(number))));
  for (const { status, reason } of both) if (status === 'rejected') throw reason;
  return both.map(({ value }) => Number(value.stdout));
}
