// Runs the vectors against other libraries and this one, and writes the table of docs/yardstick.md.
//
//   npm run yardstick                      all libraries, and the table
//   npm run yardstick -- ai litellm        these: the outcome of every vector, no table
//   npm run yardstick -- ai --bodies       also what was sent for each
//   npm run yardstick -- --program 'python3 mine.py'    a program of yours: the outcome of every vector
//
// A library gets each vector in its own message types, and sends it with its own provider package to the stand-in,
// which rejects what providers reject. Python's libraries need Python 3.10 with pip.

import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { nodeWithSqlite } from '../../.ci/servers.mjs';
import { cache, run } from '../../.ci/shell.mjs';
import { startStandIn } from '../stand-in/server.mjs';
import { readVectors } from './generate.mjs';
import { isJudged, judge } from './judge.mjs';
import { PEERS, RETHREAD } from './packages.mjs';
import { writeTable } from './table.mjs';

const here = path.dirname(fileURLToPath(import.meta.url));
const MINUTES = 10;
/** How packages are installed; the folder follows. */
const NPM = ['install', '--ignore-scripts', '--no-save', '--no-audit', '--no-fund', '--prefix'];
const PIP = '-m pip install -q --disable-pip-version-check --root-user-action ignore --upgrade --target'.split(' ');
/** Begins the lines of a report: libraries print as well. */
const MARK = 'yardstick ';

/** A folder of the cache with the packages of a library, which are installed when one of their versions changes. */
async function installed({ npm, pip }) {
  const [[first, version]] = Object.entries(npm ?? pip);
  const label = first.replace(/\[.*/, '').replace(/[@/]+/g, '-').replace(/^-/, '');
  const folder = path.join(cache, `yardstick-${label}-${version}`);
  const done = path.join(folder, '.installed');
  const wanted = Object.entries(npm ?? pip).map(([one, of]) => `${one}${npm ? '@' : '=='}${of}`);
  if (existsSync(done) && readFileSync(done, 'utf8') === wanted.join('\n')) return folder;
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const options = npm ? NPM : PIP;
  await run(npm ? 'npm' : 'python3', [...options, folder, ...wanted], { minutes: 15 });
  writeFileSync(done, wanted.join('\n'));
  return folder;
}

/** How the program of a library is started, without its environment's addresses of vectors. */
async function startOf(peer) {
  if (peer.command) return { command: peer.command, args: [], shell: true, env: process.env };
  const folder = await installed(peer);
  const program = path.join(here, peer.program);
  const { PATH, HOME } = process.env;
  if (peer.pip)
    return {
      command: 'python3',
      args: [program],
      env: { PATH, HOME, PYTHONPATH: folder, PYTHONDONTWRITEBYTECODE: '1' },
    };
  const args = ['--import', path.join(here, 'peers/packages-of.mjs'), program];
  return { command: await nodeWithSqlite(), args, env: { PATH, HOME, YARDSTICK_PACKAGES: folder } };
}

/** Runs the program of a library. Returns its lines by the ids of vectors. */
async function reportsOf(peer, addresses) {
  const { command, args, shell = false, env } = await startOf(peer);
  const child = spawn(command, args, {
    shell,
    env: { ...env, ...addresses },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: MINUTES * 60_000,
  });
  let out = '';
  let errors = '';
  child.stdout.on('data', (data) => (out += data));
  child.stderr.on('data', (data) => (errors += data));
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  if (code) throw new Error(`the program of ${peer.name} ended with ${code}: ${errors.slice(-2000)}`);
  return new Map(
    out
      .split('\n')
      .filter((line) => line.startsWith(MARK))
      .map((line) => JSON.parse(line.slice(MARK.length)))
      .map((report) => [report.id, report]),
  );
}

/** What the stand-in does with the requests of a vector: the answer that the vector has, then one text. */
const scriptOf = ({ provider: { answer } }) => [
  ...(answer ? [{ status: 400, body: answer }] : []),
  { text: 'Done.' },
  { text: 'Done.' },
];

async function measured(peer, vectors, standIn) {
  const work = mkdtempSync(path.join(tmpdir(), 'yardstick-'));
  const lanes = vectors.map((vector, at) => ({ lane: `${peer.name.replace(/\W+/g, '-')}-${at}`, vector }));
  for (const { lane, vector } of lanes)
    await fetch(`${standIn.url}/lane/${lane}/control/script`, {
      method: 'POST',
      body: JSON.stringify({ steps: scriptOf(vector) }),
    });
  const file = path.join(work, 'vectors.json');
  writeFileSync(file, JSON.stringify(lanes));
  try {
    const reports = await reportsOf(peer, { YARDSTICK_URL: standIn.url, YARDSTICK_VECTORS: file });
    const results = new Map();
    for (const { lane, vector } of lanes) {
      const report = reports.get(vector.id);
      if (!report) throw new Error(`the program of ${peer.name} has no line for ${vector.id}`);
      const requests = await (await fetch(`${standIn.url}/lane/${lane}/control/requests`)).json();
      const bodies = requests.map(({ body }) => body);
      results.set(vector.id, resultOf(vector, report, bodies));
    }
    return results;
  } finally {
    rmSync(work, { recursive: true, force: true });
  }
}

const NO_RULE = { outcome: 'n/a', detail: 'the stand-in has no such rule' };

function resultOf(vector, { cannot, threw, tools }, bodies) {
  if (!isJudged(vector)) return NO_RULE;
  if (cannot) return { outcome: 'n/a', detail: cannot };
  return { ...judge(vector, { bodies, threw }), ...(tools && { tools }), bodies };
}

const { values: options, positionals: chosen } = parseArgs({
  allowPositionals: true,
  options: { bodies: { type: 'boolean' }, program: { type: 'string' } },
});
const unknown = chosen.find((name) => name !== RETHREAD.name && !PEERS.some((peer) => peer.name === name));
if (unknown)
  throw new Error(`no library ${unknown}: one of ${[...PEERS, RETHREAD].map(({ name }) => name).join(', ')}`);

/** True if the run is not of all libraries: then there are lists instead of the table. */
const isPart = chosen.length > 0 || options.program !== undefined;
const wanted = isPart ? PEERS.filter(({ name }) => chosen.includes(name)) : PEERS;
if (options.program !== undefined) wanted.push({ name: options.program, command: options.program });

const vectors = readVectors();
const standIn = await startStandIn();
const columns = [];
try {
  for (const peer of wanted) columns.push({ peer, results: await measured(peer, vectors, standIn) });
} finally {
  await standIn.close();
}
if (!isPart || chosen.includes(RETHREAD.name)) {
  // It needs a build, which the others do not.
  const { sentByRethread } = await import('./rethread.mjs');
  const results = new Map(
    vectors.map((vector) => [vector.id, isJudged(vector) ? judge(vector, sentByRethread(vector)) : NO_RULE]),
  );
  columns.push({ peer: RETHREAD, results });
}
for (const { peer, results } of columns) {
  const counts = {};
  for (const { outcome } of results.values()) counts[outcome] = (counts[outcome] ?? 0) + 1;
  console.log(
    `${peer.name}: ${Object.entries(counts)
      .map(([outcome, count]) => `${outcome} ${count}`)
      .join(', ')}`,
  );
  if (isPart)
    for (const [id, { outcome, detail = '', tools, bodies = [] }] of results) {
      console.log(`  ${outcome.padEnd(14)}${id}  ${detail.slice(0, 200)}${tools ? `  [ran ${tools} tools]` : ''}`);
      if (options.bodies) for (const body of bodies) console.log(`    ${JSON.stringify(body)}`);
    }
}
if (!isPart) writeTable(vectors, columns, new Date().toISOString().slice(0, 10));
