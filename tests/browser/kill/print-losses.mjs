//   node tests/browser/kill/print-losses.mjs <raw|rethread> <relaxed|strict> <kills> [wait]
//
// With `wait`, each loop waits for this process after an append. RETHREAD_KILL_LOAD: busy processes beside the browser
// (2).

import { countLosses } from './losses.mjs';

const [writer = 'raw', durability = 'relaxed', kills = '75', wait] = process.argv.slice(2);
const onProgress = ({ kills, acknowledged, deleted, lost }) =>
  console.error(JSON.stringify({ kills, acknowledged, deleted, lost }));
const load = Number(process.env.RETHREAD_KILL_LOAD || 2);
console.log(
  JSON.stringify(
    await countLosses({ writer, durability, kills: Number(kills), waits: wait === 'wait', load, onProgress }),
  ),
);
process.exit(0);
