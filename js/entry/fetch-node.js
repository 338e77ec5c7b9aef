// `rethread/fetch`, with the wasm loaded as this platform requires.

import './formats-node.js';

export * from '../fetch.js';
