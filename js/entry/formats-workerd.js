// Workers: compiling bytes is not allowed, so the compiled module is imported. Wire formats only.

import wasm from '../../dist/formats_bg.wasm';
import { program } from '../formats-program.js';

program.initNow(wasm);

export * from '../formats-api.js';
