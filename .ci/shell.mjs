// Finds and runs programs, and reads files, with built-in modules only.

import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { accessSync, constants, existsSync, readdirSync, readFileSync } from 'node:fs';
import { homedir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';

export const root = path.dirname(path.dirname(fileURLToPath(import.meta.url)));

/** The folder for tools that take minutes to build: shared by all checkouts of a machine. */
export const cache =
  process.env.RETHREAD_CACHE || path.join(process.env.XDG_CACHE_HOME || path.join(homedir(), '.cache'), 'rethread');

/** The file that a bare program name would run, or null. */
export function which(program) {
  for (const dir of (process.env.PATH ?? '').split(path.delimiter)) {
    const file = path.join(dir, program);
    try {
      accessSync(file, constants.X_OK);
      return file;
    } catch {
      // not in this directory
    }
  }
  return null;
}

/** Runs a program and returns its standard output, or null if it is absent or fails. */
export function output(program, args, options = {}) {
  const done = spawnSync(program, args, { cwd: root, encoding: 'utf8', maxBuffer: 1 << 28, ...options });
  return done.status === 0 ? done.stdout : null;
}

/** What ends each program that is running, with its children. */
const running = new Set();
const SIGNALS = ['SIGINT', 'SIGTERM'];

function interrupted() {
  for (const end of running) end();
  process.exit(1);
}

/** Runs a program with this process's output. Rejects if it fails, or after `minutes`, and then ends its children as
 *  well. */
export function run(program, args, { minutes = 20, env = {}, cwd = root } = {}) {
  console.log(`$ ${[program, ...args].join(' ')}`);
  return new Promise((resolve, reject) => {
    // A separate process group, so that a hanging child such as a browser is ended as well.
    const child = spawn(program, args, {
      cwd,
      env: { ...process.env, ...env },
      stdio: ['ignore', 'inherit', 'inherit'],
      detached: true,
    });
    let isTimedOut = false;
    const end = () => {
      try {
        process.kill(-child.pid, 'SIGKILL');
      } catch {
        // it has already ended
      }
    };
    if (!running.size) for (const signal of SIGNALS) process.on(signal, interrupted);
    running.add(end);
    const timer = setTimeout(() => {
      isTimedOut = true;
      end();
    }, minutes * 60_000);
    const settle = (error) => {
      clearTimeout(timer);
      running.delete(end);
      if (!running.size) for (const signal of SIGNALS) process.off(signal, interrupted);
      if (error) reject(new Error(`${program} ${error}`));
      else resolve();
    };
    child.once('error', (e) => settle(e.code === 'ENOENT' ? 'is not installed' : e.message));
    child.once('exit', (code, signal) => {
      if (isTimedOut) settle(`took more than ${minutes} minutes`);
      else if (signal) settle(`was ended by ${signal}`);
      else settle(code === 0 ? null : `exited with ${code}`);
    });
  });
}

/** Installs packages of Debian as root; elsewhere throws `advice`. */
export async function aptInstall(packages, advice) {
  const canInstall = process.platform === 'linux' && process.getuid?.() === 0 && which('apt-get');
  if (!canInstall) throw new Error(advice);
  const env = { DEBIAN_FRONTEND: 'noninteractive' };
  await run('apt-get', ['update', '-q'], { env, minutes: 10 });
  await run('apt-get', ['install', '-y', '-q', '--no-install-recommends', ...packages], { env, minutes: 20 });
}

export const read = (file) => readFileSync(path.join(root, file), 'utf8');
export const present = (file) => existsSync(path.join(root, file));

/** Returns every file below a folder, relative to the repository and sorted; none if the folder does not exist. */
export function files(folder, ends = '') {
  if (!present(folder)) return [];
  return readdirSync(path.join(root, folder), { withFileTypes: true, recursive: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(ends))
    .map((entry) => path.relative(root, path.join(entry.parentPath ?? entry.path, entry.name)))
    .filter((file) => !file.split(path.sep).includes('node_modules'))
    .sort();
}

export function hash(names, ...more) {
  const sum = createHash('sha256');
  for (const name of names) {
    sum.update(`${name}\0`);
    sum.update(present(name) ? readFileSync(path.join(root, name)) : 'absent');
  }
  return sum.update(more.join('\0')).digest('hex');
}
