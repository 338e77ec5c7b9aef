// "rethread/cloudflare": a Durable Object's SQLite storage, D1, and Workers KV.

export { d1 } from './d1.js';
export { durableObject } from './durable-object.js';
export { workersKv } from './workers-kv.js';
