// "rethread/postgres": a `Pool` or `Client` of pg, or anything with `query(text, params)` on one connection.

import { RethreadError } from '../error.js';

/** PostgreSQL aborted the transaction for another one: serialization failure, deadlock. */
const REPEATED = new Set(['40001', '40P01']);
const ATTEMPTS = 10;

/** @type {typeof import('./postgres.js').postgres} */
export function postgres(client, { schema } = {}) {
  /** @type {any} */
  const pool = client;
  if (typeof pool?.query !== 'function') throw new RethreadError('config_invalid', '`postgres` takes a Pool or a connected Client of pg, or an object with `query(text, params)`');
  if (schema !== undefined && (typeof schema !== 'string' || !schema)) throw new RethreadError('config_invalid', '`schema` is the name of a schema that exists');
  let begin = schema === undefined ? 'BEGIN' : `BEGIN; SET LOCAL search_path TO "${schema.replaceAll('"', '""')}"`;
  const isPool = typeof pool.connect === 'function' && 'totalCount' in pool;
  let last = Promise.resolve();
  return {
    dialect: 'postgres',
    async setDurability(durability) {
      if (durability !== 'strict') return;
      const { rows } = await pool.query('SHOW fsync');
      if (rows[0]?.fsync !== 'on') throw new RethreadError('config_invalid', '`durability`: the server runs with `fsync = off`, so "strict" cannot be promised');
      begin += '; SET LOCAL synchronous_commit TO on';
    },
    transaction(statements) {
      if (isPool) return repeated(() => onPool(pool, begin, statements));
      // On one connection, one after the other.
      const done = last.then(() => repeated(() => onConnection(pool, begin, statements)));
      last = done.then(() => {}, () => {});
      return done;
    },
  };
}

async function repeated(transaction) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt >= ATTEMPTS || !(REPEATED.has(error?.code) || (attempt === 1 && wasLostBeforeCommit(error)))) throw error;
    }
  }
}

/** The connection was lost, perhaps while it lay in a pool, and took everything back. PostgreSQL's own errors have a severity. */
const wasLostBeforeCommit = (error) => error?.details?.outcome === 'none' && (!error.severity || /^(08|57P)/.test(error.code));

async function onPool(pool, begin, statements) {
  const client = await pool.connect();
  let failure;
  // A connection that breaks while it is in use says so by an event, too. Without a listener that would end the process.
  const noteLoss = (error) => { failure ??= error; };
  client.on('error', noteLoss);
  try {
    return await onConnection(client, begin, statements);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    client.off('error', noteLoss);
    // With a connection that failed for another reason than a statement the pool does not go on.
    client.release(failure && !failure.code ? failure : undefined);
  }
}

async function onConnection(client, begin, statements) {
  let isCommitting = false;
  try {
    await client.query(begin);
    const results = [];
    for (const { sql, params } of statements) results.push((await client.query(sql, params)).rows);
    isCommitting = true;
    await client.query('COMMIT');
    return results;
  } catch (error) {
    // A connection that is lost before the commit takes everything back.
    if (!isCommitting && error instanceof Error) Object.assign(error, { details: { outcome: 'none' } });
    await client.query('ROLLBACK').catch(() => {}); // the first error says why
    throw error;
  }
}
