// `rethread/fetch`, with the wasm as text in a module.

import './formats-base64.js';

export * from '../fetch.js';
