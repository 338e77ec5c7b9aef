// Node, Deno and Bun: read from disk at import, so `init` is not needed. Wire formats only.

import { program } from '../formats-program.js';
import { readWasm } from '../wasm-file.js';

const wasm = () => new URL('../../dist/formats_bg.wasm', import.meta.url);

program.initNow(readWasm('formats_bg.wasm', wasm, () => import.meta.url));

export * from '../formats-api.js';
