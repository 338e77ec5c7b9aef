// The conformance suite for Node, Deno and Bun: read from disk at import, so `init` is not needed.

import { program } from '../testing-program.js';
import { readWasm } from '../wasm-file.js';

const wasm = () => new URL('../../dist/testing_bg.wasm', import.meta.url);

program.initNow(readWasm('testing_bg.wasm', wasm, () => import.meta.url));

export * from '../testing.js';
