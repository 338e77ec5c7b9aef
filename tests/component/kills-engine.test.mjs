// The host in JavaScript: the world `engine` in Node, over a store in a file.

import { after } from 'node:test';
import { transpiled } from './component.mjs';
import { describeKills, host } from './kills.mjs';

// Once, and not at each start of the agent.
const { file, remove } = await transpiled('engine');
after(remove);

describeKills('the world `engine` in Node over a file', {
  program: process.execPath,
  script: host('agent.mjs'),
  writes: 5,
  env: { ENGINE_MODULE: file },
});
