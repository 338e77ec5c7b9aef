// All kills of a list of points: a few browsers at once, each with one profile that goes through kill after kill.

import { approach, recover, strike } from './scenario.mjs';
import { openWorld } from './world.mjs';

const REPEATS = Number(process.env.RETHREAD_KILL_REPEATS || 5);
const LANES = Number(process.env.RETHREAD_KILL_LANES || 2);
const ONLY = new RegExp(process.env.RETHREAD_KILL_POINTS || '');
const COUNTS = ['kills', 'landed', 'resumed', 'ran', 'reported', 'reran', 'repeated', 'refused'];
const DIALECTS = ['openai-chat', 'anthropic'];
/** Milliseconds from letting a write go to the kill. */
const DELAYS = [0, 2, 4, 1, 6, 3];

/** Kills at each point, and gives a row a point: its counts and what was wrong. */
export async function matrix(points) {
  const world = await openWorld();
  const rows = points.filter(({ name }) => ONLY.test(name)).map((point) => ({ name: point.name, point, failures: [], ...Object.fromEntries(COUNTS.map((key) => [key, 0])) }));
  const queue = Array.from({ length: REPEATS }, (_, repeat) => rows.map((row, at) => ({ row, repeat, at }))).flat();
  try {
    await Promise.all(Array.from({ length: LANES }, () => work(world, queue)));
  } finally {
    await world.close();
  }
  return rows;
}

async function work(world, queue) {
  let browser = null;
  for (let job = queue.shift(); job; job = queue.shift()) {
    const { row, repeat, at } = job;
    const name = `${at}-${repeat}`;
    const given = { lane: name, session: `session ${name}`, dialect: DIALECTS[repeat % 2], ...(row.point.onInterrupted ? { onInterrupted: row.point.onInterrupted } : {}) };
    try {
      browser ??= await world.launch(await world.newProfile());
      const { profile } = browser;
      const scene = { world, browser, given, point: row.point, delay: DELAYS[repeat % DELAYS.length] };
      const before = await approach(scene);
      const killed = await strike(scene);
      browser = null;
      // The next kill is of this very browser.
      browser = await world.launch(profile);
      const counts = await recover({ ...scene, browser, before, killed });
      for (const key of COUNTS) row[key] += counts[key];
    } catch (error) {
      row.failures.push(`${name}, ${given.dialect}: ${error.stack}`);
      await browser?.kill();
      browser = null;
    }
    world.forget(name);
  }
  await browser?.kill();
}

export function printTable(rows, print) {
  const width = Math.max(...rows.map(({ name }) => name.length));
  const line = (name, cells) => `${name.padEnd(width)} ${cells.map((cell) => String(cell).padStart(9)).join('')}`;
  print(line('point', COUNTS));
  for (const row of rows) print(line(row.name, COUNTS.map((key) => row[key])));
  print(line(`${rows.length} points`, COUNTS.map((key) => rows.reduce((sum, row) => sum + row[key], 0))));
  print('landed: the write that the kill came upon was there. ran, reported, reran: tools after the restart. repeated: model calls whose answer was not journalled.');
}
