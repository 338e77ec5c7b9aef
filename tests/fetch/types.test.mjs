// r64: the types of every SDK take a `repairing()`.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));

test('repairing() fits the types of every SDK', async () => {
  // The SDKs' own declarations are not ours to check.
  const flags = '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --skipLibCheck --target esnext --lib esnext,dom,dom.iterable --module nodenext --types node'.split(' ');
  await promisify(execFile)(process.execPath, ['node_modules/typescript/bin/tsc', ...flags, 'tests/fetch/sdk-types.ts'], { cwd: root }).catch((error) => assert.fail(error.stdout));
});
