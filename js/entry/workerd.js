// Workers: compiling bytes is not allowed, so the compiled module is imported.

import wasm from '../../dist/rethread_bg.wasm';
import { program } from '../rethread-program.js';

program.initNow(wasm);

export * from '../api.js';
