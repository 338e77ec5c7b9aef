// As kills-stored.test.mjs, where the host's atomics fail: every append is a key that is written once.

import { describeKills, host } from './kills.mjs';

describeKills('the world `stored` under wasmtime, with a bucket whose atomics fail', {
  program: 'python3',
  script: host('agent.py'),
  writes: 5,
  env: { NO_SWAP: '1' },
});
