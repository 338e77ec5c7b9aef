// r64: the types of every SDK take a `repairing()`, and the package's own types need no library of the platform.

import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describe, test } from 'node:test';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';

const root = fileURLToPath(new URL('../..', import.meta.url));
const STRICT = '--ignoreConfig --noEmit --strict --exactOptionalPropertyTypes --target esnext --module nodenext'.split(
  ' ',
);
const compiled = (flags, file) =>
  promisify(execFile)(
    process.execPath,
    [path.join(root, 'node_modules/typescript/bin/tsc'), ...STRICT, ...flags, file],
    { cwd: root },
  ).catch((error) => assert.fail(error.stdout));

describe('r64: types', () => {
  for (const lib of ['esnext,dom,dom.iterable', 'esnext']) {
    test(`repairing() fits the types of every SDK, with the libraries ${lib}`, async () => {
      // The SDKs' own declarations are not ours to check.
      await compiled(['--skipLibCheck', '--lib', lib, '--types', 'node'], 'tests/fetch/sdk-types.ts');
    });
  }

  const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
  // An adapter has the types of its peer, which need more: tests/types/adapters.ts compiles both.
  const peers = Object.keys(manifest.peerDependencies);
  const hasPeer = (entry) => {
    const text = readFileSync(path.join(root, entry), 'utf8');
    return peers.some((peer) => text.includes(`from "${peer}`));
  };
  const declared = Object.values(manifest.exports)
    .map((entry) => entry.types)
    .filter(Boolean);
  const entries = declared.filter((entry) => !hasPeer(entry));
  for (const flags of [
    ['--lib', 'esnext', '--typeRoots', 'none'],
    ['--lib', 'esnext', '--types', 'node'],
    ['--lib', 'esnext,dom', '--typeRoots', 'none'],
  ]) {
    test(`r50 the declarations of every entry compile with ${flags.join(' ')}`, async () => {
      const folder = mkdtempSync(path.join(tmpdir(), 'rethread-types-'));
      const file = path.join(folder, 'all.mts');
      try {
        assert.ok(entries.length >= 10);
        assert.deepEqual(declared.filter(hasPeer), [
          './js/adapters/openai-agents.d.ts',
          './js/adapters/langchain.d.ts',
          './js/adapters/tanstack-ai.d.ts',
        ]);
        writeFileSync(
          file,
          entries
            .map(
              (entry, i) =>
                `export * as entry${i} from ${JSON.stringify(path.join(root, entry.replace('.d.ts', '.js')))};\n`,
            )
            .join(''),
        );
        await compiled(flags, file);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });
  }

  test('the versions of SDKs in the README are those that are tested', () => {
    const versions = (name) =>
      Object.entries(manifest.devDependencies)
        .flatMap(([key, version]) =>
          key === name ? [version] : version.startsWith(`npm:${name}@`) ? [version.slice(`npm:${name}@`.length)] : [],
        )
        .map((version) => Number(version.split('.')[0]));
    const readme = readFileSync(path.join(root, 'README.md'), 'utf8');
    const rows = [...readme.matchAll(/^\| ((?:`[^`]+`(?:, )?)+)[^|]*\| ([\d, to]+) \|/gm)];
    assert.ok(rows.length >= 6, 'the table of SDKs');
    for (const [, names, stated] of rows) {
      for (const [, name] of names.matchAll(/`([^`]+)`/g)) {
        const numbers = [...new Set(versions(name))].sort((a, b) => a - b);
        const [first, last] = stated.split(' to ').map(Number);
        const written =
          last === undefined
            ? stated.split(', ').map(Number)
            : Array.from({ length: last - first + 1 }, (_, i) => first + i);
        assert.deepEqual(written, numbers, name);
      }
    }
  });
});
