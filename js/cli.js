#!/usr/bin/env node
// `npx rethread`: checks, repairs and converts a saved body or a file of messages.

import { main } from './cli/main.js';

// A pipe may be closed early: `rethread check chat.json | head -1`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

// Not `process.exit`, which discards output that a pipe has not accepted yet.
process.exitCode = await main(process.argv.slice(2), {
  stdin: process.stdin,
  stdout: process.stdout,
  stderr: process.stderr,
  env: process.env,
});
