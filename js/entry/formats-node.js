// Node, Deno and Bun: read from disk at import, so `init` is not needed. Wire formats only.

import { readFileSync } from 'node:fs';
import { program } from '../formats-program.js';

program.initNow(readFileSync(new URL('../../dist/formats_bg.wasm', import.meta.url)));

export * from '../formats-api.js';
