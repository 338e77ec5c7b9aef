// Workers: code may not be compiled from bytes there; an import gives the compiled module. The formats alone.

import wasm from '../../dist/formats_bg.wasm';
import { program } from '../formats-program.js';

program.initNow(wasm);

export * from '../formats-api.js';
