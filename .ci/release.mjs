// Publishes the package to the registry, with provenance: run by .github/workflows/release.yml when a tag is pushed.
//
//   node .ci/release.mjs --dry-run   everything but the upload, on any machine
//   node .ci/release.mjs             the same, and the upload: in the workflow alone, since provenance is signed by it

import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { build } from './build.mjs';
import { read, root, run } from './shell.mjs';

const git = (...args) => execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim();

/** What keeps this checkout from being released as `version`; empty if nothing does. `dirty` is git's list of changed
 *  files. */
export function obstacles({ version, tag, changelog, dirty, repository, isWorkflow, isDryRun }) {
  const found = [];
  const heading = changelog.split('\n').find((line) => line.startsWith(`## ${version}`));
  if (!heading) found.push(`CHANGELOG.md has no section ${version}`);
  else if (/unreleased/.test(heading)) found.push(`CHANGELOG.md: ${version} is marked as unreleased; give it its date`);
  if (tag !== `v${version}`)
    found.push(`the tag of this commit is ${tag || 'missing'}, and package.json has ${version}`);
  if (dirty) found.push(`files are changed:\n${dirty}`);
  // A dry run needs neither.
  if (!isDryRun && !isWorkflow)
    found.push('provenance is signed by the workflow release.yml: push the tag, or use --dry-run');
  if (!isDryRun && !repository) found.push('GITHUB_REPOSITORY is missing');
  return found;
}

/** The dist-tag of a version: a version with a suffix, such as 1.0.0-rc.1, is not what `npm install` gets. */
export const distTag = (version) => (version.includes('-') ? 'next' : 'latest');

/** Adds the repository to package.json, in this checkout alone: the registry compares it with the provenance. */
function nameRepository(repository) {
  const file = path.join(root, 'package.json');
  const manifest = JSON.parse(read('package.json'));
  manifest.repository = { type: 'git', url: `git+https://github.com/${repository}.git` };
  writeFileSync(file, `${JSON.stringify(manifest, null, 2)}\n`);
}

async function release(isDryRun) {
  const { version } = JSON.parse(read('package.json'));
  const repository = process.env.GITHUB_REPOSITORY;
  const found = obstacles({
    version,
    tag: git('tag', '--points-at', 'HEAD', `v${version}`),
    changelog: read('CHANGELOG.md'),
    dirty: git('status', '--porcelain'),
    repository,
    isWorkflow: process.env.GITHUB_ACTIONS === 'true',
    isDryRun,
  });
  for (const obstacle of found) console.log(`release: ${obstacle}`);
  if (found.length && !isDryRun) throw new Error('nothing was published');
  await build({ component: false });
  // What is uploaded is what the tests have listed.
  await run(process.execPath, ['--test', '--test-reporter=spec', 'tests/packaging/tarball.test.mjs']);
  // `dist` is built: the hook would build it again.
  const flags = ['--ignore-scripts', '--access', 'public', '--tag', distTag(version)];
  if (isDryRun) return run('npm', ['publish', '--dry-run', ...flags]);
  nameRepository(repository);
  await run('npm', ['publish', '--provenance', ...flags]);
}

if (path.resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  const { values } = parseArgs({ options: { 'dry-run': { type: 'boolean', default: false } } });
  await release(values['dry-run']).catch((error) => {
    console.error(`release: ${error.message}`);
    process.exit(1);
  });
}
