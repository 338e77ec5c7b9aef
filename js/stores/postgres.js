// "rethread/postgres": a `Pool` or `Client` of pg, or anything with `query(text, params)` on one connection.

import { RethreadError } from '../error.js';
import { ChangeListener } from './postgres-changes.js';

/** PostgreSQL aborted the transaction for another one: serialization failure, deadlock. */
const REPEATED = new Set(['40001', '40P01']);
const ATTEMPTS = 10;

/** @type {typeof import('./postgres.js').postgres} */
export function postgres(client, { schema, listen = true } = {}) {
  /** @type {any} */
  const pool = client;
  if (typeof pool?.query !== 'function') throw new RethreadError('config_invalid', '`postgres` takes a Pool or a connected Client of pg, or an object with `query(text, params)`');
  if (schema !== undefined && (typeof schema !== 'string' || !schema)) throw new RethreadError('config_invalid', '`schema` is the name of a schema that exists');
  let begin = schema === undefined ? 'BEGIN' : `BEGIN; SET LOCAL search_path TO "${schema.replaceAll('"', '""')}"`;
  if (typeof listen !== 'boolean') throw new RethreadError('config_invalid', '`listen` is true or false');
  const isPool = typeof pool.connect === 'function' && 'totalCount' in pool;
  let last = Promise.resolve();
  /** On one connection, one after the other. */
  const inTurn = (work) => {
    const done = last.then(work);
    last = done.then(() => {}, () => {});
    return done;
  };
  const run = (connection, statements) => onConnection(connection, begin, statements);
  const connections = isPool
    ? { connect: () => pool.connect(), release: (connection, error) => connection.release(error), transaction: run }
    : { connect: async () => pool, release() {}, transaction: (connection, statements) => inTurn(() => run(connection, statements)) };
  const canListen = listen && (isPool ? pool.options?.max !== 1 : typeof pool.on === 'function' && typeof pool.off === 'function');
  const transaction = (statements) => (isPool ? repeated(() => onPool(pool, begin, statements)) : inTurn(() => repeated(() => run(pool, statements))));
  return {
    dialect: 'postgres',
    transaction,
    changes: canListen ? changesOf(connections, transaction) : undefined,
    async setDurability(durability) {
      if (durability !== 'strict') return;
      const { rows } = await pool.query('SHOW fsync');
      if (rows[0]?.fsync !== 'on') throw new RethreadError('config_invalid', '`durability`: the server runs with `fsync = off`, so "strict" cannot be promised');
      begin += '; SET LOCAL synchronous_commit TO on';
    },
  };
}

/** Changes of other processes, by LISTEN and NOTIFY. */
const changesOf = (connections, transaction) => ({
  async subscribe(listener) {
    const changes = new ChangeListener(connections, listener);
    await changes.start();
    return () => { changes.end(); };
  },
  /** What the engine's statements do not send with an append. */
  publish: (notice) => transaction([{ sql: "SELECT pg_notify('rethread_' || md5(current_schema()), $1)", params: [notice] }]),
});

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
