// D1: a batch is a transaction.

import { RethreadError } from '../error.js';

/** D1 returns bytes as an array of numbers. */
const fromD1 = (value) => (Array.isArray(value) ? Uint8Array.from(value) : value);
const row = (found) => Object.fromEntries(Object.entries(found).map(([name, value]) => [name, fromD1(value)]));

/** @type {typeof import('./cloudflare.js').d1} */
export function d1(binding) {
  /** @type {any} */
  const database = binding;
  if (typeof database?.batch !== 'function' || typeof database.prepare !== 'function') {
    throw new RethreadError('config_invalid', '`d1` takes a D1 database: a binding of `env`');
  }
  return {
    dialect: 'sqlite',
    setDurability() {}, // D1 acknowledges a batch when it is on disk
    async transaction(statements) {
      const results = await database.batch(statements.map(({ sql, params }) => database.prepare(sql).bind(...params)));
      return results.map(({ results: rows }) => rows.map(row));
    },
  };
}
