// The wasm program of SQL and key-value stores.

import { createGlue } from '../dist/stores.js';
import { Program } from './program.js';

export const program = new Program(
  createGlue,
  'rethread/slim contains no wasm, and this store needs that of `rethread/stores.wasm` too: pass it to init, as ' +
    '`init(source, { stores })`, with the bytes, a WebAssembly.Module or a URL',
);
