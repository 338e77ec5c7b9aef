// The conformance suite for Node, Deno and Bun: read from disk at import, so `init` is not needed.

import { readFileSync } from 'node:fs';
import { program } from '../testing-program.js';

program.initNow(readFileSync(new URL('../../dist/testing_bg.wasm', import.meta.url)));

export * from '../testing.js';
