// `rethread/fetch`, with the wasm loaded as this platform requires.

import './formats-workerd.js';

export * from '../fetch.js';
