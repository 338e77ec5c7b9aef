// "rethread/postgres": a `Pool` or `Client` of pg, or anything with `query(text, params)` on one connection.

import { RethreadError } from '../error.js';
import { ChangeListener } from './postgres-changes.js';

/** SQLSTATE codes of transactions that PostgreSQL aborted because of another one: serialization failure, deadlock. */
const RETRYABLE = new Set(['40001', '40P01']);
const ATTEMPTS = 10;

/** A statement that waits longer for a lock fails with 55P03, reported as `busy`. An existing `lock_timeout` is
 *  kept. */
const LIMIT_LOCKS = "SELECT set_config('lock_timeout', '5s', true) WHERE current_setting('lock_timeout') = '0'";

/** @type {typeof import('./postgres.js').postgres} */
export function postgres(client, { schema, listen = true } = {}) {
  /** @type {any} */
  const pool = client;
  if (typeof pool?.query !== 'function')
    throw new RethreadError(
      'config_invalid',
      '`postgres` takes a Pool or a connected Client of pg, or an object with `query(text, params)`',
    );
  if (schema !== undefined && (typeof schema !== 'string' || !schema))
    throw new RethreadError('config_invalid', '`schema` must be the name of an existing schema');
  if (typeof listen !== 'boolean') throw new RethreadError('config_invalid', '`listen` must be true or false');
  const isPool = typeof pool.connect === 'function' && 'totalCount' in pool;
  const beginStatements = ['BEGIN', LIMIT_LOCKS];
  if (schema !== undefined) beginStatements.push(`SET LOCAL search_path TO "${schema.replaceAll('"', '""')}"`);
  // pg takes several statements in one message; other clients may not.
  const begin = () => (typeof pool.on === 'function' ? [beginStatements.join('; ')] : beginStatements);
  let last = Promise.resolve();
  /** Transactions on one connection, one after the other. */
  const inTurn = (work) => {
    const done = last.then(work);
    last = done.then(
      () => {},
      () => {},
    );
    return done;
  };
  const run = (connection, statements) => onConnection(connection, begin(), statements);
  const connections = isPool
    ? { connect: () => pool.connect(), release: (connection, error) => connection.release(error), transaction: run }
    : {
        connect: async () => pool,
        release() {},
        transaction: (connection, statements) => inTurn(() => run(connection, statements)),
      };
  const canListen =
    listen && (isPool ? pool.options?.max !== 1 : typeof pool.on === 'function' && typeof pool.off === 'function');
  const transaction = (statements) =>
    isPool
      ? withRetries(() => onPool(pool, begin(), statements))
      : inTurn(() => withRetries(() => run(pool, statements)));
  return {
    dialect: 'postgres',
    transaction,
    changes: canListen ? changesOf(connections, transaction) : undefined,
    async setDurability(durability) {
      if (durability !== 'strict') return;
      const { rows } = await pool.query('SHOW fsync');
      if (rows[0]?.fsync !== 'on')
        throw new RethreadError(
          'config_invalid',
          '`durability`: the server runs with `fsync = off`, so "strict" cannot be guaranteed; turn it on, or use "relaxed"',
        );
      beginStatements.push('SET LOCAL synchronous_commit TO on');
    },
  };
}

/** Changes of other processes, by LISTEN and NOTIFY. */
const changesOf = (connections, transaction) => ({
  async subscribe(listener) {
    const changes = new ChangeListener(connections, listener);
    await changes.start();
    return () => {
      changes.end();
    };
  },
  /** Sends the notices that no append sends. */
  publish: (notice) =>
    transaction([{ sql: "SELECT pg_notify('rethread_' || md5(current_schema()), $1)", params: [notice] }]),
});

async function withRetries(transaction) {
  for (let attempt = 1; ; attempt += 1) {
    try {
      return await transaction();
    } catch (error) {
      if (attempt >= ATTEMPTS || !(RETRYABLE.has(error?.code) || (attempt === 1 && wasLostBeforeCommit(error))))
        throw error;
    }
  }
}

/** True if the connection was lost (perhaps while idle in the pool) before the commit, so nothing was written.
 *  PostgreSQL's own errors have a severity. */
const wasLostBeforeCommit = (error) =>
  error?.details?.outcome === 'none' && (!error.severity || /^(08|57P)/.test(error.code));

async function onPool(pool, begin, statements) {
  const client = await pool.connect();
  let failure;
  // A connection that breaks while it is in use also emits an event, which without a listener would end the process.
  const noteLoss = (error) => {
    failure ??= error;
  };
  client.on('error', noteLoss);
  try {
    return await onConnection(client, begin, statements);
  } catch (error) {
    failure = error;
    throw error;
  } finally {
    client.off('error', noteLoss);
    // The pool must not reuse a connection that failed for another reason than a statement.
    client.release(failure && !failure.code ? failure : undefined);
  }
}

async function onConnection(client, begin, statements) {
  let isCommitting = false;
  try {
    for (const sql of begin) await client.query(sql);
    const results = [];
    for (const { sql, params } of statements) results.push((await client.query(sql, params)).rows);
    isCommitting = true;
    await client.query('COMMIT');
    return results;
  } catch (error) {
    // The server rolls back if the connection is lost before the commit.
    if (!isCommitting && error instanceof Error) Object.assign(error, { details: { outcome: 'none' } });
    await client.query('ROLLBACK').catch(() => {}); // the first error is thrown
    throw error;
  }
}
