// `rethread/fetch`, with the formats as this platform has them.

import './formats-browser.js';

export * from '../fetch.js';
