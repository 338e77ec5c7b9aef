// Node, Deno and Bun: read from disk at import, so `init` is not needed.

import { readFileSync } from 'node:fs';
import { program } from '../rethread-program.js';

program.initNow(readFileSync(new URL('../../dist/rethread_bg.wasm', import.meta.url)));

export * from '../api.js';
