// For bundlers and platforms that have no place for a file: the wasm is text in a module, and compiled on first use.
// The program of stores is in a module of its own.

import wasm from '../../dist/rethread_base64.js';
import { decompress } from '../base64.js';
import { onStoresLoad } from '../load-stores.js';
import { program } from '../rethread-program.js';

program.setSource(() => decompress(wasm));
onStoresLoad((stores) =>
  stores.setSource(async () => {
    const { default: storesWasm } = await import('../../dist/stores_base64.js');
    return decompress(storesWasm);
  }),
);

export * from '../api.js';
