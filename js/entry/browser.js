// Browsers, and bundlers for them: fetched on first use. Bundlers look for the literal `new URL`.

import { onStoresLoad } from '../load-stores.js';
import { findMovedFile } from '../moved-file.js';
import { program } from '../rethread-program.js';

program.setSource(new URL('../../dist/rethread_bg.wasm', import.meta.url), () =>
  findMovedFile('rethread/rethread.wasm', import.meta.url),
);
onStoresLoad((stores) =>
  stores.setSource(new URL('../../dist/stores_bg.wasm', import.meta.url), () =>
    findMovedFile('rethread/stores.wasm', import.meta.url),
  ),
);

export * from '../api.js';
