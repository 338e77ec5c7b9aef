// Programs for the tests of stores on servers: Node with node:sqlite, PostgreSQL and Redis. Installs those that are missing.

import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { cache, output, run, which } from './shell.mjs';

const NODE = '22.23.3';

/** A Node that has node:sqlite without a flag: this one, else the npm package `node`. */
export async function nodeWithSqlite() {
  const has = (program) => output(program, ['--no-warnings', '-e', 'require("node:sqlite")']) !== null;
  if (has(process.execPath)) return process.execPath;
  const place = path.join(cache, `node-${NODE}`);
  // The package is named after the platform: its installer is a script, and scripts are off here.
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const program = path.join(place, 'node_modules', name, 'bin', 'node');
  if (!existsSync(program)) {
    mkdirSync(place, { recursive: true });
    await run('npm', ['install', '--prefix', place, '--ignore-scripts', '--no-save', '--no-audit', '--no-fund', `${name}@${NODE}`], { minutes: 10 });
  }
  if (!has(program)) throw new Error(`a Node with node:sqlite is needed, from 22.13 on: ${program} is none`);
  console.log(`node: ${NODE} in ${place}`);
  return program;
}

/** The program of the Redis server, from the system's packages. */
export async function redisProgram() {
  if (!which('redis-server')) {
    const canInstall = process.platform === 'linux' && process.getuid?.() === 0 && which('apt-get');
    if (!canInstall) throw new Error('Redis is needed: as root on Debian `apt-get install redis-server`, elsewhere install it so that `redis-server` is on PATH');
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '-q'], { env, minutes: 10 });
    await run('apt-get', ['install', '-y', '-q', '--no-install-recommends', 'redis-server'], { env, minutes: 10 });
  }
  const found = which('redis-server');
  if (!found) throw new Error('Redis was installed, and `redis-server` is not on PATH');
  console.log(`redis: ${found}`);
  return found;
}

function findPostgres() {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = versions.map((version) => path.join(debian, version, 'bin'));
  const onPath = which('initdb');
  if (onPath) folders.push(path.dirname(onPath));
  return folders.find((folder) => ['initdb', 'postgres'].every((program) => existsSync(path.join(folder, program)))) ?? null;
}

/** The folder of PostgreSQL's programs, from the system's packages. */
export async function postgresPrograms() {
  if (!findPostgres()) {
    const canInstall = process.platform === 'linux' && process.getuid?.() === 0 && which('apt-get');
    if (!canInstall) throw new Error('PostgreSQL is needed: as root on Debian `apt-get install postgresql`, elsewhere install it so that `initdb` is on PATH');
    const env = { DEBIAN_FRONTEND: 'noninteractive' };
    await run('apt-get', ['update', '-q'], { env, minutes: 10 });
    await run('apt-get', ['install', '-y', '-q', '--no-install-recommends', 'postgresql'], { env, minutes: 20 });
  }
  const found = findPostgres();
  if (!found) throw new Error('PostgreSQL was installed, and `initdb` is not found');
  console.log(`postgres: ${found}`);
  return found;
}

const BETTER_SQLITE3 = '12.11.1';

/** A folder in which better-sqlite3 is installed, for the Node that runs this. It is compiled unless its authors did that. */
export async function betterSqlite3() {
  const place = path.join(cache, `better-sqlite3-${BETTER_SQLITE3}-abi-${process.versions.modules}`);
  const load = () => output(process.execPath, ['-e', 'new (require("better-sqlite3"))(":memory:")'], { cwd: place });
  if (!existsSync(place) || load() === null) {
    mkdirSync(place, { recursive: true });
    await run('npm', ['install', '--prefix', place, '--no-save', '--no-audit', '--no-fund', `better-sqlite3@${BETTER_SQLITE3}`], { minutes: 15 });
  }
  if (load() === null) throw new Error('better-sqlite3 is needed: its binary was neither downloaded nor compiled, which needs Python and a C++ compiler');
  return place;
}

const VITEST = '3.2.7';

/** The folder with vitest in its node_modules. */
export async function vitest() {
  const place = path.join(cache, `vitest-${VITEST}`);
  if (!existsSync(path.join(place, 'node_modules/vitest/vitest.mjs'))) {
    mkdirSync(place, { recursive: true });
    await run('npm', ['install', '--prefix', place, '--ignore-scripts', '--no-save', '--no-audit', '--no-fund', `vitest@${VITEST}`], { minutes: 10 });
  }
  return place;
}

/** The version that contains the miniflare of package.json. */
const WRANGLER = '4.86.0';

/** The folder with wrangler in its node_modules: it bundles the example for Workers. */
export async function wrangler() {
  const place = path.join(cache, `wrangler-${WRANGLER}`);
  if (!existsSync(path.join(place, 'node_modules/wrangler/bin/wrangler.js'))) {
    mkdirSync(place, { recursive: true });
    await run('npm', ['install', '--prefix', place, '--ignore-scripts', '--no-save', '--no-audit', '--no-fund', `wrangler@${WRANGLER}`], { minutes: 10 });
  }
  return place;
}
