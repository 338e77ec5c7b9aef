// Browsers, and bundlers for them: fetched on first use. The literal `new URL` is what a bundler looks for. The formats alone.

import { program } from '../formats-program.js';

program.setSource(new URL('../../dist/formats_bg.wasm', import.meta.url));

export * from '../formats-api.js';
