// The package as a stranger gets it: packed once, installed into empty folders.

import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const repository = fileURLToPath(new URL('../..', import.meta.url));
const projects = fileURLToPath(new URL('projects', import.meta.url));

const npm = (args, cwd) => execFileSync('npm', args, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] });

/** {folder, tarball, files, size, unpackedSize, remove}: `files` are the paths in the tarball, sizes are in bytes. */
export function pack() {
  const folder = mkdtempSync(path.join(tmpdir(), 'rethread-packaging-'));
  // Without prepack: its output would stand before the JSON, and the caller has built.
  const [{ filename, files, size, unpackedSize }] = JSON.parse(
    npm(['pack', '--json', '--ignore-scripts', '--pack-destination', folder], repository),
  );
  const remove = () => rmSync(folder, { recursive: true, force: true });
  const paths = files.map((file) => file.path).sort();
  return { folder, tarball: path.join(folder, filename), files: paths, size, unpackedSize, remove };
}

/** A project of its own with the tarball installed; answers its folder. `label` names a further copy of the project. */
export function install({ folder, tarball }, name, label = name) {
  const project = path.join(folder, label);
  cpSync(path.join(projects, name), project, { recursive: true });
  cpSync(path.join(projects, 'chat.js'), path.join(project, 'chat.js'));
  writeFileSync(
    path.join(project, 'package.json'),
    JSON.stringify({ name: `rethread-in-${label}`, private: true, type: 'module' }),
  );
  npm(
    [
      'install',
      '--offline',
      '--ignore-scripts',
      '--no-package-lock',
      '--no-audit',
      '--no-fund',
      '--loglevel=error',
      tarball,
    ],
    project,
  );
  return project;
}
