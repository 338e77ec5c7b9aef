// How long it takes, against what it cannot beat: JSON.stringify of the ready array, and IndexedDB with nothing around it.
//
//   npm run bench                      everything
//   npm run bench -- w1 --node         only W1, only in Node; --browser: only in Chromium; w2, w3, w4 likewise
//   npm run bench -- growth --node     N and 2N of what others control; --only TEXT: the cases whose name holds it. Exit code 1
//                                      where a ratio is above its limit
//   npm run bench -- --sizes 100,1000  other numbers of messages (multiples of 5)
//   npm run bench -- --json FILE       the numbers, as well
//
// It times what lies in dist/: build first. Times of two machines do not compare; ratios nearly do. Apart from growth no time is
// asserted: the exit code is 1 only when the bench itself breaks, or a body is not what was appended.

import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { brotliCompressSync, constants, gzipSync } from 'node:zlib';
import { launchBrowser } from '../.ci/browser.mjs';
import { serve } from '../.ci/serve.mjs';
import { growth } from './growth.js';
import { reportGrowth, reportSizes, reportW1, reportW2, reportW3, reportW4 } from './report.mjs';
import { summary } from './stats.js';
import { w1 } from './w1.js';
import { w4 } from './w4.js';
import { TURN } from './work.js';

const here = (path) => fileURLToPath(new URL(path, import.meta.url));
const DATABASE = 'bench';
const OPENINGS = 5;
const ROUNDS = 30;

/** The package as it is now, apart: a build that runs meanwhile would swap it under the bench. */
function packageApart() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'rethread-bench-'));
  for (const part of ['js', 'dist', 'package.json']) cpSync(here(`../${part}`), path.join(folder, part), { recursive: true });
  return folder;
}

function sizes(folder) {
  const rows = ['dist/rethread_bg.wasm', 'dist/rethread.js'].map((file) => {
    const bytes = readFileSync(path.join(folder, file));
    const params = { [constants.BROTLI_PARAM_QUALITY]: 11, [constants.BROTLI_PARAM_SIZE_HINT]: bytes.length };
    return { file, raw: bytes.length, gzip: gzipSync(bytes, { level: 9 }).length, brotli: brotliCompressSync(bytes, { params }).length };
  });
  const sum = (key) => rows.reduce((all, row) => all + row[key], 0);
  return [...rows, { file: 'total', raw: sum('raw'), gzip: sum('gzip'), brotli: sum('brotli') }];
}

/** A page is isolated, for a clock of 5 instead of 100 microseconds. */
async function openWorld(folder) {
  const server = await serve({
    folders: { '/': here('.'), '/js/': path.join(folder, 'js'), '/dist/': path.join(folder, 'dist') },
    handle: (_, res) => {
      res.setHeader('cross-origin-opener-policy', 'same-origin');
      res.setHeader('cross-origin-embedder-policy', 'require-corp');
      return false;
    },
  });
  const browser = await launchBrowser();
  const context = await browser.newContext();
  async function page() {
    const opened = await context.newPage();
    const broken = new Promise((_, reject) => {
      opened.on('pageerror', (error) => reject(new Error(`in the page: ${error?.stack || error}`)));
    });
    broken.catch(() => {});
    await opened.goto(`${server.url}/page.html`);
    await Promise.race([opened.waitForFunction(() => globalThis.bench), broken]);
    return opened;
  }
  const close = async () => {
    await browser.close();
    await server.close();
  };
  return { page, close, version: browser.version() };
}

/** Fresh pages, the ways in another order in each. */
async function coldOpens(world, counts) {
  const inits = [];
  const rows = [];
  for (const size of counts) {
    const samples = {};
    for (let at = 0; at < OPENINGS; at += 1) {
      const page = await world.page();
      inits.push(await page.evaluate(() => bench.init));
      const took = await page.evaluate(([name, count, first]) => bench.w3(name, count, first), [DATABASE, size, at]);
      for (const [name, value] of Object.entries(took)) (samples[name] ??= []).push(value);
      await page.close();
    }
    rows.push({ size, times: Object.fromEntries(Object.entries(samples).map(([name, values]) => [name, summary(values)])) });
  }
  return { rows, init: summary(inits) };
}

async function inBrowser(folder, wants, counts, results, sizeOf) {
  const world = await openWorld(folder);
  try {
    results.chromium = world.version;
    let page = await world.page();
    if (!await page.evaluate(() => bench.isolated)) console.log('\nthe page is not isolated: its clock is coarse');
    if (wants('w1')) {
      results.w1Browser = await page.evaluate(([all, turn]) => bench.w1(all, turn), [counts, TURN]);
      reportW1(`Chromium ${world.version}`, results.w1Browser, sizeOf);
    }
    if (wants('w2') || wants('w3')) {
      const took = await page.evaluate(([name, all]) => bench.fill(name, all), [DATABASE, counts]);
      results.fill = took;
      console.log(`\nfilled turn by turn, ms a turn: ${Object.entries(took).map(([size, each]) => `${size} messages ${each.toFixed(2)}`).join(', ')}`);
      await page.close();
      if (wants('w3')) {
        results.w3 = await coldOpens(world, counts);
        reportW3(results.w3.rows, results.w3.init);
      }
      if (wants('w2')) {
        page = await world.page();
        results.w2 = await page.evaluate(([name, all, rounds]) => bench.w2(name, all, rounds), [DATABASE, counts, ROUNDS]);
        reportW2(results.w2, counts);
      }
    }
  } finally {
    await world.close();
  }
}

async function main(folder) {
  const { values, positionals } = parseArgs({
    allowPositionals: true,
    options: { json: { type: 'string' }, sizes: { type: 'string', default: '100,1000,10000' }, only: { type: 'string' }, node: { type: 'boolean' }, browser: { type: 'boolean' } },
  });
  const counts = values.sizes.split(',').map(Number);
  if (counts.some((count) => !(count > 0) || count % TURN)) throw new Error(`--sizes are multiples of ${TURN}`);
  const wants = (name) => positionals.length === 0 || positionals.includes(name);
  // Anthropic puts a turn into four messages; what is compared is the turn.
  const sizeOf = ({ turns }) => turns * TURN;
  const load = os.loadavg().map((one) => one.toFixed(1)).join(' ');
  console.log(`Node ${process.version}, ${os.cpus().length} cores, load ${load}`);
  const results = { node: process.version, cores: os.cpus().length, load, sizes: sizes(folder) };
  reportSizes(results.sizes);
  if (wants('w1') && !values.browser) {
    const rethread = await import(pathToFileURL(path.join(folder, 'js/entry/node.js')).href);
    results.w1Node = await w1(rethread, counts, TURN);
    reportW1(`Node ${process.version}`, results.w1Node, sizeOf);
  }
  if (wants('w4') && !values.browser) {
    const rethread = await import(pathToFileURL(path.join(folder, 'js/entry/node.js')).href);
    results.w4 = await w4(rethread, counts, TURN);
    reportW4(`Node ${process.version}`, results.w4);
  }
  // Only where it is asked for: it takes minutes.
  if (positionals.includes('growth')) {
    const rethread = await import(pathToFileURL(path.join(folder, 'js/entry/node.js')).href);
    const { drive } = await import(pathToFileURL(path.join(folder, 'js/host.js')).href);
    results.growth = await growth({ ...rethread, drive }, { only: values.only, tell: reportGrowth });
    if (!results.growth.length || results.growth.some(({ met }) => !met)) process.exitCode = 1;
  }
  if (!values.node && ['w1', 'w2', 'w3'].some(wants)) await inBrowser(folder, wants, counts, results, sizeOf);
  if (values.json) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
}

let folder;
try {
  folder = packageApart();
  await main(folder);
} catch (e) {
  console.error(`bench: ${e.stack ?? e}`);
  process.exitCode = 1;
} finally {
  if (folder) rmSync(folder, { recursive: true, force: true });
}
