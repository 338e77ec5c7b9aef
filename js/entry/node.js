// Node, Deno and Bun: read from the disk at import, so that nothing needs `init`.

import { readFileSync } from 'node:fs';
import { program } from '../rethread-program.js';

program.initNow(readFileSync(new URL('../../dist/rethread_bg.wasm', import.meta.url)));

export * from '../api.js';
