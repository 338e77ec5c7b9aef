// `rethread/fetch`, with the formats as this platform has them.

import './formats-workerd.js';

export * from '../fetch.js';
