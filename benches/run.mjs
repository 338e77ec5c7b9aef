// Measures speed, against what it cannot beat: JSON.stringify of the ready array, and IndexedDB with nothing around it.
//
//   npm run bench                     everything
//   npm run bench -- w1 --node        only W1, only in Node; --browser: only in Chromium; w2, w3, w4 likewise
//   npm run bench -- growth --node    N and 2N of what others control; --only TEXT: the cases whose name contains it.
//                                     The exit code is 1 if a ratio is above its limit
//   npm run bench -- bodies --node    hostile bodies (R63), with their times relative to JSON.parse and
//                                     JSON.stringify; --only as above; --bytes N: of N, 2N and 4N bytes, 250,000
//                                     unless told. The exit code is 1 if one is above 10 times JSON
//   npm run bench -- r32 --node       deltas of 1,000 and 3,000 turns; the exit code is 1 if they are not linear
//   npm run bench -- search --browser the list and the search over 5,000 sessions, or --sizes; the ratios are to a read
//                                     of the same heads without a library
//   npm run bench -- builds before=DIR DIR
//                                     several builds in one run, side by side. DIR: a package, or a dist folder, which
//                                     is combined with this checkout's js/. The ratios are to the first
//   npm run bench -- --sizes 100,1000 other numbers of messages (multiples of 5)
//   npm run bench -- --json FILE      writes the numbers to a file as well
//
// It measures dist/: build first. The peers that it compares with are in benches/package.json: `npm ci` in benches/.
// Times of two machines do not compare; ratios nearly do. Apart from growth no time is asserted: the exit code is 1
// only if the bench itself fails, or a body is not what was appended.

import { writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath, pathToFileURL } from 'node:url';
import { parseArgs } from 'node:util';
import { bodies } from './bodies.js';
import { WAYS } from './first-body.js';
import { compareBuilds } from './builds.mjs';
import { growth } from './growth.js';
import { SIZES as TURNS, GROWTH_MOST, r32 } from './service-deltas.js';
import {
  reportBodies,
  reportGrowth,
  reportR32,
  reportSearch,
  reportSizes,
  reportW1,
  reportW2,
  reportW3,
  reportW4,
} from './report.mjs';
import { summary } from './stats.js';
import { w1 } from './next-body.js';
import { w4 } from './wire-formats.js';
import { TURN } from './work.js';
import { copyPackage, openWorld, sizes, withTemporaryFolder } from './world.mjs';

const ROOT = fileURLToPath(new URL('..', import.meta.url));
const DATABASE = 'bench';
const OPENINGS = 10;
const ROUNDS = 30;
/** Numbers of sessions that are searched. */
const SEARCHED = [5000];

/** Opens a fresh page for each way and time. */
async function coldOpens(world, counts) {
  const rows = [];
  for (const size of counts) {
    const samples = {};
    const lengths = new Set();
    for (let at = 0; at < OPENINGS; at += 1) {
      for (const way of WAYS) {
        const page = await world.page('', 'first-body.html');
        const took = await page.evaluate(
          ([one, session]) => bench.firstBody(one, session),
          [way, { name: DATABASE, size }],
        );
        await page.close();
        if (!took) continue;
        if (took.length) lengths.add(took.length);
        for (const [name, value] of Object.entries(took.parts)) (samples[name] ??= []).push(value);
      }
    }
    if (lengths.size !== 1) throw new Error(`the bodies differ: ${[...lengths]}`);
    rows.push({
      size,
      times: Object.fromEntries(Object.entries(samples).map(([name, values]) => [name, summary(values)])),
    });
  }
  return rows;
}

/** Fills a database for each number of sessions, and searches it in a page that was just loaded, and in two more, for
 *  which the first has stored an index. */
async function searchBench(world, counts) {
  const rows = [];
  for (const count of counts) {
    const name = `search-${count}`;
    const filling = await world.page();
    await filling.evaluate(([database, sessions]) => bench.fillSessions(database, sessions), [name, count]);
    await filling.close();
    for (let at = 0; at < 3; at += 1) {
      const page = await world.page();
      const first = at === 0 ? 'first search, no index stored' : 'first search';
      const times = ([database, ...rest]) => bench.searchTimes(database, ...rest);
      rows.push({ count, ...(await page.evaluate(times, [name, ROUNDS, first])) });
      await page.close();
    }
  }
  return rows;
}

async function inBrowser(folder, { wants, searched, counts, results, sizeOf }) {
  const world = await openWorld({ '': folder });
  try {
    results.chromium = world.version;
    if (searched) {
      results.search = await searchBench(world, searched);
      reportSearch(results.search);
    }
    let page = await world.page();
    if (!(await page.evaluate(() => bench.isolated))) console.log('\nthe page is not isolated: its clock is coarse');
    if (wants('w1')) {
      results.w1Browser = await page.evaluate(([all, turn]) => bench.w1(all, turn), [counts, TURN]);
      reportW1(`Chromium ${world.version}`, results.w1Browser, sizeOf);
    }
    if (wants('w2') || wants('w3')) {
      const took = await page.evaluate(([name, all]) => bench.fill(name, all), [DATABASE, counts]);
      results.fill = took;
      console.log(
        `\nfilled turn by turn, ms a turn: ${Object.entries(took)
          .map(([size, each]) => `${size} messages ${each.toFixed(2)}`)
          .join(', ')}`,
      );
      await page.close();
      if (wants('w3')) {
        results.w3 = await coldOpens(world, counts);
        reportW3(results.w3);
      }
      if (wants('w2')) {
        page = await world.page();
        results.w2 = await page.evaluate(
          ([name, all, rounds]) => bench.w2(name, all, rounds),
          [DATABASE, counts, ROUNDS],
        );
        reportW2(results.w2, counts);
      }
    }
  } finally {
    await world.close();
  }
}

/** Imports a module of the package. */
const load = (folder, file) => import(pathToFileURL(path.join(folder, file)).href);

async function inNode(folder, { wants, counts, only, results, sizeOf }) {
  const rethread = await load(folder, 'js/entry/node.js');
  if (wants('w1')) {
    results.w1Node = await w1(rethread, counts, TURN);
    reportW1(`Node ${process.version}`, results.w1Node, sizeOf);
  }
  if (wants('w4')) {
    results.w4 = await w4(rethread, counts, TURN);
    reportW4(`Node ${process.version}`, results.w4);
  }
  if (only.r32) {
    const { drive } = await load(folder, 'js/host.js');
    results.r32 = await r32({ ...rethread, drive });
    reportR32(results.r32);
    if (
      results.r32.some(
        ({ name, times }) => name.startsWith('rethread') && times[TURNS[1]] > times[TURNS[0]] * GROWTH_MOST,
      )
    )
      process.exitCode = 1;
  }
  if (only.bodies) {
    // `repairing()` and the command line use the program of the formats.
    const formats = await load(folder, 'js/entry/formats-node.js');
    results.bodies = await bodies(
      { ...rethread, ...formats },
      { only: only.name, bytes: only.bytes, tell: reportBodies },
    );
    console.log(`${results.bodies.filter(({ met }) => met).length} of ${results.bodies.length} met`);
    if (!results.bodies.length || results.bodies.some(({ met }) => !met)) process.exitCode = 1;
  }
  if (!only.growth) return;
  const { drive } = await load(folder, 'js/host.js');
  results.growth = await growth({ ...rethread, drive }, { only: only.name, tell: reportGrowth });
  if (!results.growth.length || results.growth.some(({ met }) => !met)) process.exitCode = 1;
}

async function main(folder) {
  const {
    values,
    positionals: [first, ...rest],
  } = parseArgs({
    allowPositionals: true,
    options: {
      json: { type: 'string' },
      bytes: { type: 'string' },
      sizes: { type: 'string' },
      only: { type: 'string' },
      node: { type: 'boolean' },
      browser: { type: 'boolean' },
    },
  });
  const isComparison = first === 'builds';
  const counts = (values.sizes ?? (isComparison ? '1000,10000' : '100,1000,10000')).split(',').map(Number);
  if (counts.some((count) => !(count > 0) || count % TURN)) throw new Error(`--sizes are multiples of ${TURN}`);
  const average = os
    .loadavg()
    .map((one) => one.toFixed(1))
    .join(' ');
  console.log(`Node ${process.version}, ${os.cpus().length} cores, load ${average}`);
  const results = { node: process.version, cores: os.cpus().length, load: average };
  if (isComparison) {
    results.builds = await compareBuilds(rest, folder, { counts, node: !values.browser, browser: !values.node });
  } else {
    const chosen = first === undefined ? [] : [first, ...rest];
    const wants = (name) => chosen.length === 0 || chosen.includes(name);
    // Anthropic has four messages a turn; the turn is what is compared.
    const sizeOf = ({ turns }) => turns * TURN;
    copyPackage(ROOT, folder);
    results.sizes = sizes(folder);
    reportSizes(results.sizes);
    // Growth, bodies and r32 take minutes, so they run only if they are named.
    if (!values.browser)
      await inNode(folder, {
        wants,
        counts,
        only: {
          growth: chosen.includes('growth'),
          bodies: chosen.includes('bodies'),
          r32: chosen.includes('r32'),
          name: values.only,
          bytes: values.bytes && Number(values.bytes),
        },
        results,
        sizeOf,
      });
    const searched = chosen.includes('search') && (values.sizes ? counts : SEARCHED);
    if (!values.node && (searched || ['w1', 'w2', 'w3'].some(wants)))
      await inBrowser(folder, { wants, searched, counts, results, sizeOf });
  }
  if (values.json) writeFileSync(values.json, `${JSON.stringify(results, null, 2)}\n`);
}

await withTemporaryFolder(main).catch((error) => {
  console.error(`bench: ${error.stack ?? error}`);
  process.exitCode = 1;
});
