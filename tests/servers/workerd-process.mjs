// Finds workerd, for tests that kill it.

import { execFileSync } from 'node:child_process';

/** The process of workerd that this process started last. */
export function workerdProcess() {
  const lines = execFileSync('ps', ['-A', '-o', 'pid=,ppid=,args='], { encoding: 'utf8' }).split('\n');
  const own = lines
    .map((line) => line.trim().split(/\s+/))
    .filter(([, parent, program]) => Number(parent) === process.pid && /workerd$/.test(program));
  return Math.max(...own.map(([pid]) => Number(pid)));
}
