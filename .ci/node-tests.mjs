// Runs *.test.mjs with node's test runner.

import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { root, run } from './shell.mjs';

/** More files than these fail for a reason that a second try does not cure. */
const MOST_TRIED_AGAIN = 3;

/** Runs files with node's test runner, and tells which have a failed test. */
async function runFiles(found, { node, filesAtOnce, timeoutMs, minutes, env }) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'rethread-tests-'));
  const list = path.join(folder, 'failed');
  const flags = [
    ['--test', `--test-timeout=${timeoutMs}`, `--test-concurrency=${filesAtOnce}`],
    ['--test-reporter=spec', '--test-reporter-destination=stdout'],
    [`--test-reporter=${path.join(root, '.ci/failed-files.mjs')}`, `--test-reporter-destination=${list}`],
  ].flat();
  try {
    await run(node, [...flags, ...found], { minutes, env });
    return { failed: [] };
  } catch (error) {
    return { error, failed: readFileSync(list, 'utf8').split('\n').filter(Boolean) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Runs test files. With `secondTry`, a file that fails runs once more, alone: pages in a browser on a loaded machine
 *  miss deadlines. What fails twice fails; what passes then is named in the note that this resolves to, since a test
 *  that passes sometimes shows a defect of the test or of the code. */
export async function runNodeTests(found, { secondTry = false, ...options }) {
  const { error, failed } = await runFiles(found, options);
  if (!error) return '';
  if (!secondTry || !failed.length || failed.length > MOST_TRIED_AGAIN) throw error;
  const names = failed.map((file) => path.relative(root, file)).join(', ');
  console.log(`\n${names}: failed. Once more, alone:\n`);
  const again = await runFiles(failed, { ...options, filesAtOnce: 1 });
  if (again.error) throw again.error;
  return `PASSED ONLY AT THE SECOND TRY: ${names}`;
}
