// Node, Deno and Bun: read from disk at import, so `init` is not needed; the program of stores with the first store that
// needs it. Bundlers look for the literal `new URL`.

import { onStoresLoad } from '../load-stores.js';
import { program } from '../rethread-program.js';
import { readWasm } from '../wasm-file.js';

const moduleUrl = () => import.meta.url;
const wasm = () => new URL('../../dist/rethread_bg.wasm', import.meta.url);
const storesWasm = () => new URL('../../dist/stores_bg.wasm', import.meta.url);

program.initNow(readWasm('rethread_bg.wasm', wasm, moduleUrl));
onStoresLoad((stores) => stores.initNow(readWasm('stores_bg.wasm', storesWasm, moduleUrl)));

export * from '../api.js';
