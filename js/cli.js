#!/usr/bin/env node
// `npx rethread`: looks at a saved body or a file of messages, mends it, and writes it for another provider.

import { main } from './cli/main.js';

// Whoever reads may stop early: `rethread check chat.json | head -1`.
for (const stream of [process.stdout, process.stderr]) {
  stream.on('error', (error) => {
    if (error.code !== 'EPIPE') throw error;
  });
}

// Not `process.exit`: what was written to a pipe would be cut.
process.exitCode = await main(process.argv.slice(2), {
  stdin: process.stdin, stdout: process.stdout, stderr: process.stderr, env: process.env,
});
