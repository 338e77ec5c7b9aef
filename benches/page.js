// The functions that the runner calls in the page. The query says which package is loaded: `?package=/name`.

import { coldOpen, store } from './cold-open.js';
import { w1 } from './next-body.js';
import { fillSessions, searchTimes } from './search.js';
import { fill, w2 } from './stored-turns.js';

/** The linear memories of all instances. */
const memories = [];
const { instantiate } = WebAssembly;
WebAssembly.instantiate = async (...args) => {
  const made = await instantiate(...args);
  const { memory } = (made.instance ?? made).exports;
  if (memory) memories.push(memory);
  return made;
};
const linearMemory = () => memories.reduce((sum, { buffer }) => sum + buffer.byteLength, 0);

const prefix = new URLSearchParams(location.search).get('package') ?? '';
const rethread = await import(`${prefix}/js/entry/browser.js`);
await rethread.init();

globalThis.bench = {
  isolated: crossOriginIsolated,
  w1: (sizes, turn) => w1(rethread, sizes, turn),
  fill: (name, sizes) => fill(rethread, name, sizes),
  w2: (name, sizes, rounds) => w2(rethread, name, sizes, rounds),
  store: (name, size) => store(rethread, name, size),
  fillSessions: (name, count) => fillSessions(rethread, name, count),
  searchTimes: (name, rounds, first) => searchTimes(rethread, name, rounds, first),
  coldOpen: (name, session) => coldOpen(rethread, name, session, linearMemory),
};
