// When .ci/release.mjs publishes, and when it says why not.

import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { test } from 'node:test';
import { distTag, obstacles } from '../../.ci/release.mjs';

const READY = {
  version: '1.2.0',
  tag: 'v1.2.0',
  changelog: '# Changelog\n\n## 1.2.0, 2026-12-01\n',
  dirty: '',
  repository: 'rethread/rethread',
  isWorkflow: true,
  isDryRun: false,
};

test('r50 a tagged, unchanged checkout with its section of the changelog is released by the workflow alone', () => {
  assert.deepEqual(obstacles(READY), []);
  for (const [change, message] of [
    [{ tag: '' }, /the tag of this commit is missing/],
    [{ tag: 'v1.1.0' }, /v1\.1\.0, and package\.json has 1\.2\.0/],
    [{ changelog: '# Changelog\n' }, /no section 1\.2\.0/],
    [{ changelog: '## 1.2.0, unreleased\n' }, /marked as unreleased/],
    [{ dirty: ' M js/api.js' }, /js\/api\.js/],
    [{ isWorkflow: false }, /--dry-run/],
    [{ repository: undefined }, /GITHUB_REPOSITORY/],
  ]) {
    const found = obstacles({ ...READY, ...change });
    assert.equal(found.length, 1, String(message));
    assert.match(found[0], message);
  }
  assert.deepEqual(obstacles({ ...READY, isWorkflow: false, repository: undefined, isDryRun: true }), []);
});

test('r50 a version with a suffix is not what npm install gets', () => {
  assert.deepEqual(['1.2.0', '1.2.0-rc.1'].map(distTag), ['latest', 'next']);
});

test('r50 the package is published with provenance by a workflow that may sign it', () => {
  const read = (file) => readFileSync(new URL(`../../${file}`, import.meta.url), 'utf8');
  assert.match(read('.ci/release.mjs'), /'publish', '--provenance'/);
  assert.match(read('.github/workflows/release.yml'), /id-token: write[\s\S]*run: node \.ci\/release\.mjs\n/);
});
