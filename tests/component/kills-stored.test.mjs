// The host in Python: the world `stored` under wasmtime, over a wasi:keyvalue in a file, whose buckets swap.

import { describeKills, host } from './kills.mjs';

describeKills('the world `stored` under wasmtime, with a bucket that swaps', {
  program: 'python3',
  script: host('agent.py'),
  writes: 20,
  step: 4,
});
