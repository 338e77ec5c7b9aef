// Processes that tests start. They end with the test's process, also when node's test runner stops a file after its
// time.

const running = new Set();

/** Ends the child, by SIGKILL, when this process ends: by itself, by an exception, or by a signal that can be
 *  handled. */
export function endsWithThisProcess(child) {
  running.add(child);
  child.once('exit', () => running.delete(child));
  return child;
}

process.on('exit', () => {
  for (const child of running) child.kill('SIGKILL');
});
for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => process.exit(1));
