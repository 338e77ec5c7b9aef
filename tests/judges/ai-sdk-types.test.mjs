// The declarations of `rethread/ai-sdk` fit those of `ai` 6 and 7, under strict.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
// The declarations of `ai` are not ours to check.
const FLAGS =
  '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --skipLibCheck --target esnext --lib esnext,dom,dom.iterable --module nodenext --types node';

test('r53 the types fit those of ai 6 and 7', async () => {
  const tsc = ['node_modules/typescript/bin/tsc', ...FLAGS.split(' '), 'tests/judges/ai-sdk-types.ts'];
  await promisify(execFile)(process.execPath, tsc, { cwd: root }).catch((error) => assert.fail(error.stdout));
});
