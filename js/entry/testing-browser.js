// The conformance suite for browsers, and bundlers for them: fetched by `init`. Bundlers look for the literal `new
// URL`.

import { program } from '../testing-program.js';

program.setSource(new URL('../../dist/testing_bg.wasm', import.meta.url));

export * from '../testing.js';
