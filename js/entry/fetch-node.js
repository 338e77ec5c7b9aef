// `rethread/fetch`, with the formats as this platform has them.

import './formats-node.js';

export * from '../fetch.js';
