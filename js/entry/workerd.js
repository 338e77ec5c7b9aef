// Workers: code may not be compiled from bytes there; an import gives the compiled module.

import wasm from '../../dist/rethread_bg.wasm';
import { program } from '../rethread-program.js';

program.initNow(wasm);

export * from '../api.js';
