// Counts after how many kills Chromium has deleted IndexedDB, without rethread: docs/stores.md, "Kills of Chromium".
//
//   node tests/browser/kill/print-chromium-losses.mjs <kills> [wait]     with `wait`, each loop waits for this process after an append

import { setTimeout as sleep } from 'node:timers/promises';
import { openWorld } from './world.mjs';

const LOOPS = ['a', 'b', 'c', 'd', 'e', 'f'];
const kills = Number(process.argv[2] || 75);
const waits = process.argv[3] === 'wait';

/** In the page: opens a database, reports what it has, and appends until the page ends. */
async function append({ loops, waits }) {
  const done = (request) => new Promise((resolve, reject) => { request.onsuccess = () => resolve(request.result); request.onerror = () => reject(request.error); });
  let loss = null;
  const opening = indexedDB.open('raw', 1);
  opening.onupgradeneeded = (event) => {
    if (event.dataLoss !== 'none') loss = event.dataLossMessage;
    for (const store of ['heads', 'log']) opening.result.createObjectStore(store);
  };
  const db = await done(opening);
  const heads = db.transaction('heads').objectStore('heads');
  const found = await Promise.all(loops.map(async (loop) => (await done(heads.get(loop))) ?? 0));
  const appendOne = (loop, number) => new Promise((resolve, reject) => {
    const transaction = db.transaction(['heads', 'log'], 'readwrite', { durability: 'relaxed' });
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
      else if (number % 10 === 0) window.acknowledge(loop, number);
    }
  });
  return { loss, found };
}

const world = await openWorld();
const counts = { kills: 0, deleted: 0, lostOtherwise: 0, acknowledged: 0 };
let [profile, acknowledged] = [null, new Map()];
while (counts.kills < kills) {
  if (!profile) [profile, acknowledged] = [await world.newProfile(), new Map()];
  const browser = await world.launch(profile);
  await browser.page.exposeFunction('acknowledge', (loop, number) => { acknowledged.set(loop, number); counts.acknowledged += waits ? 1 : 10; });
  const { loss, found } = await browser.page.evaluate(append, { loops: LOOPS, waits });
  if (loss !== null) {
    counts.deleted += 1;
    profile = null;
  } else if (LOOPS.some((loop, at) => found[at] < (acknowledged.get(loop) ?? 0))) counts.lostOtherwise += 1;
  await sleep(300 + Math.random() * 500);
  await browser.kill();
  counts.kills += 1;
}
await world.close();
console.log(JSON.stringify(counts));
process.exit(0);
