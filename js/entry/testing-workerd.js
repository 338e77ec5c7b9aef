// The conformance suite for Workers: compiling bytes is not allowed, so the compiled module is imported.

import wasm from '../../dist/testing_bg.wasm';
import { program } from '../testing-program.js';

program.initNow(wasm);

export * from '../testing.js';
