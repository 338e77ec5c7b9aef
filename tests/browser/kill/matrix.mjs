// All kills of a list of points: a few browsers at once, each with one profile that goes through kill after kill.

import assert from 'node:assert/strict';
import test from 'node:test';
import { approach, recover, strike } from './scenario.mjs';
import { openWorld } from './world.mjs';

/** Each point at least once in each dialect. */
const REPEATS = Number(process.env.RETHREAD_KILL_REPEATS || (process.env.RETHREAD_LONG ? 5 : 2));
/** Runs that die of one kill, each in a session of its own. */
const TOGETHER = Number(process.env.RETHREAD_KILL_TOGETHER || 6);
const LANES = Number(process.env.RETHREAD_KILL_LANES || 2);
const ONLY = new RegExp(process.env.RETHREAD_KILL_POINTS || '');
const COUNTS = ['kills', 'landed', 'resumed', 'ran', 'reported', 'reran', 'repeated', 'refused'];
const DIALECTS = ['openai-chat', 'anthropic'];
/** Milliseconds from letting a write go to the kill. */
const DELAYS = [0, 3, 6, 10, 20];

/** A test a point, and a table of them all. `begin`: what begins a test, such as that of another one. */
export function killTests(title, points, { repeats = REPEATS, begin = test } = {}) {
  return begin(`${title}: a run killed there is finished after the restart`, async (t) => {
    const { rows, removals } = await matrix(points, repeats);
    for (const row of rows) await t.test(row.name, () => assert.deepEqual(row.failures, []));
    if (rows.length) printTable(rows, (line) => console.log(line));
    for (const removal of removals) console.log(`Runs were killed again in a new profile, since ${removal}`);
  });
}

/** How often a run is killed again because Chromium deleted its damaged database. */
const REMOVALS = 2;

/** Kills at each point, and gives a row a point: its counts and what was wrong. */
async function matrix(points, repeats) {
  const world = await openWorld();
  const rows = points
    .filter(({ name }) => ONLY.test(name))
    .map((point) => ({ name: point.name, point, failures: [], ...Object.fromEntries(COUNTS.map((key) => [key, 0])) }));
  const removals = [];
  const queue = Array.from({ length: repeats }, (_, repeat) => rows.map((row, at) => ({ row, repeat, at }))).flat();
  try {
    await Promise.all(Array.from({ length: LANES }, () => work(world, queue, removals)));
  } finally {
    await world.close();
  }
  return { rows, removals };
}

async function work(world, queue, removals) {
  let browser = null;
  const launch = async (profile) => {
    browser = await world.launch(profile);
  };
  for (let jobs = take(queue); jobs.length; jobs = take(queue)) {
    const failed = (job, error) => job.row.failures.push(`${job.given.lane}, ${job.given.dialect}: ${error.stack}`);
    jobs.forEach((job, slot) => {
      job.given = givenFor(world, job, slot);
    });
    try {
      if (!browser) await launch(await world.newProfile());
      const { profile } = browser;
      const scenes = await each(jobs, failed, async ({ row, given }) => {
        const scene = { world, browser, given, point: row.point };
        return { ...scene, before: await approach(scene) };
      });
      const live = jobs.filter((_, i) => scenes[i]);
      const killed = await strike({
        world,
        browser,
        scenes: scenes.filter(Boolean),
        delay: DELAYS[(jobs[0].repeat + jobs[0].at) % DELAYS.length],
      });
      // The next kill is of this very browser.
      await launch(profile);
      const removal = await browser.page.evaluate(() => window.kill.removal());
      if (removal) {
        killAgain({ live, queue, failed, removal });
        removals.push(removal);
        await browser.kill();
        browser = null;
        continue;
      }
      const counts = await each(live, failed, ({ given }, i) =>
        recover({ ...scenes.filter(Boolean)[i], browser, given, killed: killed[i] }),
      );
      live.forEach(({ row }, i) => {
        for (const key of counts[i] ? COUNTS : []) row[key] += counts[i][key];
      });
    } catch (error) {
      for (const job of jobs) failed(job, error);
      await browser?.kill();
      browser = null;
    } finally {
      for (const { given } of jobs) world.forget(given.lane);
    }
  }
  await browser?.kill();
}

/** Puts runs back whose database Chromium has deleted because an earlier kill had cut its log (docs/stores.md). Any
 *  other removal is a failure. */
function killAgain({ live, queue, failed, removal }) {
  assert.match(removal, /found this site's database damaged and removed it/);
  for (const job of live) {
    job.removals = (job.removals ?? 0) + 1;
    if (job.removals > REMOVALS) failed(job, new Error(`lost ${job.removals} times: ${removal}`));
    else queue.push(job);
  }
}

/** The next runs that die together. One of them at the most is hit while it writes, so that each delay means one
 *  write. */
function take(queue) {
  const jobs = [];
  while (queue.length && jobs.length < TOGETHER) {
    const at = queue.findIndex(({ row }) => !row.point.race || !jobs.some((job) => job.row.point.race));
    if (at < 0) break;
    jobs.push(...queue.splice(at, 1));
  }
  return jobs;
}

function givenFor(world, { row, repeat, at }, slot) {
  const lane = `${at}-${repeat}`;
  const { onInterrupted, persistence } = row.point;
  return {
    lane,
    session: `session ${lane}`,
    standIn: world.standIn(lane, slot),
    dialect: DIALECTS[repeat % 2],
    ...(onInterrupted ? { onInterrupted } : {}),
    ...(persistence ? { persistence } : {}),
  };
}

/** Does it for all at once; what fails is told, and gives undefined. */
async function each(jobs, failed, work) {
  return Promise.all(
    jobs.map((job, i) =>
      Promise.resolve()
        .then(() => work(job, i))
        .catch((error) => failed(job, error) && undefined),
    ),
  );
}

function printTable(rows, print) {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const line = (name, cells) => `${name.padEnd(width)} ${cells.map((cell) => String(cell).padStart(9)).join('')}`;
  print(line('point', COUNTS));
  for (const row of rows)
    print(
      line(
        row.name,
        COUNTS.map((key) => row[key]),
      ),
    );
  print(
    line(
      `${rows.length} points`,
      COUNTS.map((key) => rows.reduce((sum, row) => sum + row[key], 0)),
    ),
  );
  print(
    'landed: the write that the kill came upon was there. ran, reported, reran: tools after the restart. repeated: model calls whose answer was not journalled.',
  );
}
