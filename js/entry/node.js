// Node, Deno and Bun: read from disk at import, so `init` is not needed; the program of stores with the first store that
// needs it.

import { readFileSync } from 'node:fs';
import { onStoresLoad } from '../load-stores.js';
import { program } from '../rethread-program.js';

program.initNow(readFileSync(new URL('../../dist/rethread_bg.wasm', import.meta.url)));
onStoresLoad((stores) => stores.initNow(readFileSync(new URL('../../dist/stores_bg.wasm', import.meta.url))));

export * from '../api.js';
