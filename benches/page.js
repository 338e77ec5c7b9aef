// What the runner calls in the page.

import * as rethread from '/js/entry/browser.js';
import { w1 } from './w1.js';
import { fill, w2 } from './w2.js';
import { w3 } from './w3.js';

const start = performance.now();
await rethread.init();
const init = performance.now() - start;

globalThis.bench = {
  init,
  isolated: crossOriginIsolated,
  w1: (sizes, turn) => w1(rethread, sizes, turn),
  fill: (name, sizes) => fill(rethread, name, sizes),
  w2: (name, sizes, rounds) => w2(rethread, name, sizes, rounds),
  w3: (name, size, first) => w3(rethread, name, size, first),
};
