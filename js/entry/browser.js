// Browsers, and bundlers for them: fetched on first use. The literal `new URL` is what a bundler looks for.

import { program } from '../rethread-program.js';

program.setSource(new URL('../../dist/rethread_bg.wasm', import.meta.url));

export * from '../api.js';
