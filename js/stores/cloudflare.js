// "rethread/cloudflare": a Durable Object's SQLite storage, and D1.

export { d1 } from './d1.js';
export { durableObject } from './durable-object.js';
