// Node, Deno and Bun: read from the disk at import, so that nothing needs `init`. The formats alone.

import { readFileSync } from 'node:fs';
import { program } from '../formats-program.js';

program.initNow(readFileSync(new URL('../../dist/formats_bg.wasm', import.meta.url)));

export * from '../formats-api.js';
