// For bundlers that copy an imported file and return its address, when they are told to.

import { init } from 'rethread';
import { init as initFormats } from 'rethread/formats';
import formats from 'rethread/formats.wasm';
import wasm from 'rethread/rethread.wasm';
import stores from 'rethread/stores.wasm';

await Promise.all([init(wasm, { stores }), initFormats(formats)]);
await import('./main.js');
