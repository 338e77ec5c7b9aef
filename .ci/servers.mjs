// Programs for the tests of stores on servers: Node with node:sqlite, PostgreSQL and Redis. Installs those that are
// missing.

import { existsSync, mkdirSync, readdirSync } from 'node:fs';
import path from 'node:path';
import { aptInstall, cache, output, run, which } from './shell.mjs';

const NODE = '22.23.3';

/** Installs a package into the cache, in a folder named after `label`, if `file` of its node_modules is missing.
 *  Returns the folder. */
export async function npmPackage(name, version, file, label = name) {
  return npmPackages(`${label}-${version}`, [`${name}@${version}`], file);
}

/** Installs packages, each with its version, into a folder of the cache, if `file` of its node_modules is missing.
 *  Returns the folder. */
export async function npmPackages(name, packages, file) {
  const folder = path.join(cache, name);
  if (!existsSync(path.join(folder, 'node_modules', file))) {
    mkdirSync(folder, { recursive: true });
    await run(
      'npm',
      ['install', '--prefix', folder, '--ignore-scripts', '--no-save', '--no-audit', '--no-fund', ...packages],
      { minutes: 10 },
    );
  }
  return folder;
}

/** Returns what `find` finds; installs the system's package first if that is nothing. `title` and `program` are for
 *  error messages. */
export async function systemPackage(name, { title, program, find }) {
  if (!find())
    await aptInstall(
      [name],
      `${title} is needed: as root on Debian \`apt-get install ${name}\`, elsewhere install it so that \`${program}\` is on PATH`,
    );
  const found = find();
  if (!found) throw new Error(`${title} was installed, but \`${program}\` is not found`);
  return found;
}

/** A Node that has node:sqlite without a flag: this one, else the npm package `node`. */
export async function nodeWithSqlite() {
  const has = (program) => output(program, ['--no-warnings', '-e', 'require("node:sqlite")']) !== null;
  if (has(process.execPath)) return process.execPath;
  // The package is named after the platform: its installer is a script, and scripts are off here.
  const name = `node-${process.platform === 'win32' ? 'win' : process.platform}-${process.arch}`;
  const file = path.join(name, 'bin', 'node');
  const folder = await npmPackage(name, NODE, file, 'node');
  const program = path.join(folder, 'node_modules', file);
  if (!has(program)) throw new Error(`a Node with node:sqlite is needed, 22.13 or newer, and ${program} lacks it`);
  console.log(`node: ${NODE} in ${folder}`);
  return program;
}

/** The program of the Redis server, from the system's packages. */
export async function redisProgram() {
  const found = await systemPackage('redis-server', {
    title: 'Redis',
    program: 'redis-server',
    find: () => which('redis-server'),
  });
  console.log(`redis: ${found}`);
  return found;
}

function findPostgres() {
  const debian = '/usr/lib/postgresql';
  const versions = existsSync(debian) ? readdirSync(debian).sort((a, b) => Number(b) - Number(a)) : [];
  const folders = versions.map((version) => path.join(debian, version, 'bin'));
  const onPath = which('initdb');
  if (onPath) folders.push(path.dirname(onPath));
  return (
    folders.find((folder) => ['initdb', 'postgres'].every((program) => existsSync(path.join(folder, program)))) ?? null
  );
}

/** The folder of PostgreSQL's programs, from the system's packages. */
export async function postgresPrograms() {
  const found = await systemPackage('postgresql', { title: 'PostgreSQL', program: 'initdb', find: findPostgres });
  console.log(`postgres: ${found}`);
  return found;
}

const BETTER_SQLITE3 = '12.11.1';

/** A folder in which better-sqlite3 is installed, for the Node that runs this. It is compiled unless its authors did
 *  that. */
export async function betterSqlite3() {
  const place = path.join(cache, `better-sqlite3-${BETTER_SQLITE3}-abi-${process.versions.modules}`);
  const load = () => output(process.execPath, ['-e', 'new (require("better-sqlite3"))(":memory:")'], { cwd: place });
  if (!existsSync(place) || load() === null) {
    mkdirSync(place, { recursive: true });
    await run(
      'npm',
      ['install', '--prefix', place, '--no-save', '--no-audit', '--no-fund', `better-sqlite3@${BETTER_SQLITE3}`],
      { minutes: 15 },
    );
  }
  if (load() === null)
    throw new Error(
      'better-sqlite3 is needed: its binary was neither downloaded nor compiled, which needs Python and a C++ compiler',
    );
  return place;
}

const VITEST = '3.2.7';

/** The folder with vitest in its node_modules. */
export async function vitest() {
  return npmPackage('vitest', VITEST, 'vitest/vitest.mjs');
}

/** The version that contains the miniflare of package.json. */
const WRANGLER = '4.86.0';

/** The folder with wrangler in its node_modules: it bundles the example for Workers. */
export async function wrangler() {
  return npmPackage('wrangler', WRANGLER, 'wrangler/bin/wrangler.js');
}

const VITE = ['7.3.8', '8.3.8'];

/** The versions of Vite that the tests use, each with the folder that has it in its node_modules. */
export async function vite() {
  const folders = [];
  for (const version of VITE) folders.push([version, await npmPackage('vite', version, 'vite/bin/vite.js')]);
  return folders;
}

const WEBPACK = '5.112.2';

/** The folder with webpack in its node_modules. */
export async function webpack() {
  return npmPackage('webpack', WEBPACK, 'webpack/lib/index.js');
}

const ROLLUP = '4.68.8';

/** The folder with Rollup in its node_modules, and the plugins that find packages and files. */
export async function rollup() {
  const plugins = ['@rollup/plugin-node-resolve@16.0.3', '@rollup/plugin-url@8.0.2'];
  return npmPackages(`rollup-url-${ROLLUP}`, [`rollup@${ROLLUP}`, ...plugins], '@rollup/plugin-url/package.json');
}

const LANGGRAPH = '1.7.3';
const MCP_SDK = '1.32.2';

/** The folders with LangGraph and the SDK of MCP in their node_modules, 67 and 29 MB. */
export async function agentPackages() {
  const langGraph = await npmPackage(
    '@langchain/langgraph',
    LANGGRAPH,
    '@langchain/langgraph/package.json',
    'langgraph',
  );
  const mcp = '@modelcontextprotocol/sdk';
  return { LANGGRAPH: langGraph, MCP_SDK: await npmPackage(mcp, MCP_SDK, `${mcp}/package.json`, 'mcp-sdk') };
}

const AI_SDK_REACT = '4.0.177';
const REACT = '19.3.1';

/** The folder with `@ai-sdk/react`, its `ai` 7, and React in its node_modules, 35 MB. */
export async function aiSdkReact() {
  const packages = [`@ai-sdk/react@${AI_SDK_REACT}`, `react@${REACT}`, `react-dom@${REACT}`];
  return npmPackages(`ai-sdk-react-${AI_SDK_REACT}`, packages, '@ai-sdk/react/package.json');
}
