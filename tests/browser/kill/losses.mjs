// Kills Chromium while a page writes without pause, and counts what the next start has lost: docs/stores.md, "Kills of
// Chromium".
//
// The writer is rethread, or a few lines of raw IndexedDB, with durability relaxed or strict.

import { spawn } from 'node:child_process';
import { cp, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { until } from './scenario.mjs';
import { openWorld } from './world.mjs';

const LOOPS = ['a', 'b', 'c', 'd', 'e', 'f'];
/** A profile is replaced after so many kills, since a start reads what is in it. */
const KILLS_OF_PROFILE = 40;

/** In the page: opens a database, reports what it has of each loop, and appends until the page ends. */
async function writeRaw({ loops, waits, durability }) {
  const done = (request) =>
    new Promise((resolve, reject) => {
      request.onsuccess = () => resolve(request.result);
      request.onerror = () => reject(request.error);
    });
  let deleted = null;
  const opening = indexedDB.open('raw', 1);
  opening.onupgradeneeded = (event) => {
    if (event.dataLoss !== 'none') deleted = event.dataLossMessage;
    for (const store of ['heads', 'log']) opening.result.createObjectStore(store);
  };
  const db = await done(opening);
  const heads = db.transaction('heads').objectStore('heads');
  const found = await Promise.all(loops.map(async (loop) => (await done(heads.get(loop))) ?? 0));
  const appendOne = (loop, number) =>
    new Promise((resolve, reject) => {
      const transaction = db.transaction(['heads', 'log'], 'readwrite', { durability });
      transaction.oncomplete = resolve;
      transaction.onabort = () => reject(transaction.error);
      transaction.objectStore('log').add(new Uint8Array(1200), [loop, number]);
      transaction.objectStore('heads').put(number, loop);
      transaction.commit();
    });
  loops.forEach(async (loop, at) => {
    for (let number = found[at] + 1; ; number += 1) {
      await appendOne(loop, number);
      if (waits) await window.acknowledge(loop, number);
      else window.acknowledge(loop, number);
    }
  });
  return { deleted, found };
}

/** The same with rethread: an append of one message a number. */
async function writeSessions({ loops, waits, durability }) {
  const { open } = await import('rethread');
  let deleted = null;
  const opened = await open({ name: 'losses', durability }).catch((error) => {
    if (error.code !== 'evicted') throw error;
    deleted = error.message;
    return open({ name: 'losses', durability });
  });
  const sessions = await Promise.all(loops.map((loop) => opened.session(loop)));
  const found = await Promise.all(
    sessions.map(async (session) => {
      const { items } = await session.messages({ limit: 1_000_000 });
      const isWhole = items.every(({ parts }, at) => parts[0].text.startsWith(`${at + 1} `));
      return isWhole ? items.length : -1;
    }),
  );
  const { state } = await opened.status();
  loops.forEach(async (loop, at) => {
    for (let number = found[at] + 1; ; number += 1) {
      await sessions[at].append([{ role: 'user', parts: [{ type: 'text', text: `${number} ${'x'.repeat(1000)}` }] }]);
      if (waits) await window.acknowledge(loop, number);
      else window.acknowledge(loop, number);
    }
  });
  return { deleted, found, state };
}

const WRITERS = { raw: writeRaw, rethread: writeSessions };

/** Processes that keep the processors busy, beside the browser. */
function startLoad(count) {
  const spin =
    'const end = () => process.exit(0); process.stdin.on("end", end).resume(); (function turn() { for (let i = 0; i < 5e6; i += 1); setImmediate(turn); })()';
  const processes = Array.from({ length: count }, () =>
    spawn(process.execPath, ['-e', spin], { stdio: ['pipe', 'ignore', 'ignore'] }),
  );
  return () => processes.forEach((child) => child.stdin.end());
}

/** Number of launches after which a machine is too busy. */
const LAUNCHES = 5;

/** Launches a browser. On a busy machine that may take longer than it is waited for; what was launched is closed by the
 *  next kill. */
async function launched(world, profile) {
  for (let tries = 1; ; tries += 1) {
    try {
      return await world.launch(profile);
    } catch (error) {
      if (tries === LAUNCHES) throw error;
      await world.killAll();
    }
  }
}

/**
 * Kills a browser again and again. `deleted`: starts after which Chromium had deleted all databases of the site;
 * `lost`: other starts that lacked something acknowledged. The profile as the kill left it is kept for both.
 */
export async function countLosses({ writer, durability, kills, waits = false, load = 2, onProgress = () => {} }) {
  const world = await openWorld();
  const endLoad = startLoad(load);
  const counts = {
    writer,
    durability,
    waits,
    load,
    kills: 0,
    acknowledged: 0,
    deleted: 0,
    lost: 0,
    profiles: [],
    reasons: [],
  };
  const kept = await mkdtemp(path.join(tmpdir(), 'rethread-killed-'));
  let [profile, acknowledged, age] = [null, new Map(), 0];
  try {
    while (counts.kills < kills) {
      if (!profile || age >= KILLS_OF_PROFILE) [profile, acknowledged, age] = [await world.newProfile(), new Map(), 0];
      const before = path.join(kept, `kill-${counts.kills}`);
      if (age > 0) await cp(path.join(profile, 'Default', 'IndexedDB'), before, { recursive: true });
      const browser = await launched(world, profile);
      const acknowledgedBefore = counts.acknowledged;
      await browser.page.exposeFunction('acknowledge', (loop, number) => {
        acknowledged.set(loop, number);
        counts.acknowledged += 1;
      });
      const { deleted, found, state } = await browser.page.evaluate(WRITERS[writer], {
        loops: LOOPS,
        waits,
        durability,
      });
      const expected = LOOPS.map((loop) => acknowledged.get(loop) ?? 0);
      const isLost =
        deleted === null && (found.some((number, at) => number < expected[at]) || (state ?? 'ready') !== 'ready');
      if (deleted !== null || isLost) {
        counts[isLost ? 'lost' : 'deleted'] += 1;
        counts.profiles.push(before);
        counts.reasons.push(deleted ?? `found ${found} of ${expected}, ${state}`);
        profile = null;
      } else await rm(before, { recursive: true, force: true });
      await until('an append', () => counts.acknowledged > acknowledgedBefore + 1);
      await sleep(300 + Math.random() * 500);
      await browser.kill();
      [counts.kills, age] = [counts.kills + 1, age + 1];
      if (counts.kills % 10 === 0) onProgress(counts);
    }
  } finally {
    endLoad();
    await world.close();
    if (!counts.profiles.length) await rm(kept, { recursive: true, force: true });
  }
  return counts;
}
