// Workers: compiling bytes is not allowed, so the compiled modules are imported.

import wasm from '../../dist/rethread_bg.wasm';
import storesWasm from '../../dist/stores_bg.wasm';
import { program } from '../rethread-program.js';
import { program as stores } from '../stores-program.js';

program.initNow(wasm);
stores.initNow(storesWasm);

export * from '../api.js';
