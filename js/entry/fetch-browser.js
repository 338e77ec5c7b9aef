// `rethread/fetch`, with the wasm loaded as this platform requires.

import './formats-browser.js';

export * from '../fetch.js';
