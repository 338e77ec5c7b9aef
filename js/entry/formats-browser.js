// Browsers, and bundlers for them: fetched on first use. Bundlers look for the literal `new URL`. Wire formats only.

import { findMovedFile } from '../moved-file.js';
import { program } from '../formats-program.js';

program.setSource(new URL('../../dist/formats_bg.wasm', import.meta.url), () =>
  findMovedFile('rethread/formats.wasm', import.meta.url),
);

export * from '../formats-api.js';
