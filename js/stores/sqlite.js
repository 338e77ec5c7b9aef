// "rethread/sqlite": a file through node:sqlite, or an open database of node:sqlite, better-sqlite3 or @libsql/client.

import { RethreadError } from '../error.js';

/** How long another connection's lock is waited for. */
const WAIT_MS = 5000;

const isRead = ({ sql }) => /^(SELECT|WITH)\b/.test(sql);

/** @type {typeof import('./sqlite.js').sqlite} */
export function sqlite(database) {
  const path = typeof database === 'string' ? database : null;
  /** @type {any} */
  let open = path === null ? database : null;
  let isStrict = false;
  /** Does the work with a client of libSQL for a file. */
  const inTurn = oneAfterAnother();
  /** What is done before the first write. @type {Promise<void> | null} */
  let prepared = null;
  if (path === null && typeof open?.prepare !== 'function' && typeof open?.batch !== 'function') {
    throw new RethreadError(
      'config_invalid',
      '`sqlite` takes the path of a file, or an open database of node:sqlite, better-sqlite3 or @libsql/client',
    );
  }
  return {
    dialect: 'sqlite',
    transaction(statements) {
      open ??= openFile(path);
      if (typeof open.batch === 'function') {
        // Over the network each transaction is its own: one that is not answered holds no other.
        if (open.protocol !== 'file') return batch(open, statements);
        if (statements.every(isRead)) return fileBatch(open, inTurn, statements);
        prepared ??= inTurn(() => writeBackLog(open));
        return prepared.then(() => fileBatch(open, inTurn, statements));
      }
      // Not before the first write, so that a rejected file is unchanged.
      if (!prepared && !statements.every(isRead)) {
        if (path !== null) prepareFile(open, isStrict);
        // Freed space is overwritten with zeros: an erased message is in no free page.
        open.exec('PRAGMA secure_delete = ON');
        writeBackLogNow(open);
        prepared = Promise.resolve();
      }
      return transaction(open, statements);
    },
    async eraseOverwritten() {
      // The log has earlier versions of pages until it is written anew. While somebody reads, it stays.
      if (open && !(await checkpoint(open, inTurn)))
        throw new RethreadError('busy', 'another connection reads the log of the database');
    },
    async setDurability(durability) {
      isStrict = durability === 'strict';
      if (isStrict && path === null) await syncEachCommit(open);
    },
    close() {
      if (path === null) return;
      open?.close();
      open = null;
      prepared = null;
    },
  };
}

function openFile(path) {
  /** @type {any} */
  const module = globalThis.process?.getBuiltinModule?.('node:sqlite');
  if (!module)
    throw new RethreadError(
      'config_invalid',
      'a path needs node:sqlite, which Node has since version 22.13; on Node 20 pass an open database: `sqlite(new Database("chats.sqlite"))` of better-sqlite3@12, or `sqlite(createClient({ url: "file:chats.sqlite", timeout: 5000 }))` of @libsql/client',
    );
  const database = new module.DatabaseSync(path);
  database.exec(`PRAGMA busy_timeout = ${WAIT_MS}`);
  return database;
}

const CHECKPOINT = 'PRAGMA wal_checkpoint(TRUNCATE)';

/** Writes the log back to the database, and empties it. Resolves to false if another connection reads it. */
async function checkpoint(database, inTurn) {
  if (typeof database.batch !== 'function') return !database.prepare(CHECKPOINT).get()?.busy;
  if (database.protocol !== 'file') return true;
  const attempt = async () => {
    await database.executeMultiple(`PRAGMA busy_timeout = ${ATTEMPT_MS}`);
    return (await database.execute(CHECKPOINT)).rows[0]?.busy ? undefined : true;
  };
  return (await untilUnlocked(database, inTurn, attempt)) ?? false;
}

/** Empties the log of a process that was killed, perhaps between an erasure and its checkpoint. Others that use the
 *  database are not waited for: the log stays then, until the next checkpoint. */
function writeBackLogNow(database) {
  const [wait] = Object.values(database.prepare('PRAGMA busy_timeout').get());
  database.exec('PRAGMA busy_timeout = 0');
  try {
    database.prepare(CHECKPOINT).all();
  } catch {
    // A log in use stays. A database that cannot be written is reported by what follows.
  } finally {
    database.exec(`PRAGMA busy_timeout = ${wait}`);
  }
}

/** The same for libSQL. */
async function writeBackLog(client) {
  await waitOf(client);
  await client.executeMultiple(`PRAGMA busy_timeout = 0; ${CHECKPOINT}`).catch(() => {});
}

/** Sets the journal mode of a file before its first write. In WAL mode a commit survives the process without waiting
 *  for the disk. */
function prepareFile(database, isStrict) {
  let mode;
  try {
    mode = database.prepare('PRAGMA journal_mode = WAL').get().journal_mode;
  } catch {
    // A file that is read-only or in use keeps its mode.
  }
  if (mode === 'wal' && !isStrict) database.exec('PRAGMA synchronous = NORMAL');
}

/** Makes SQLite wait for the disk at each commit. */
async function syncEachCommit(database) {
  if (typeof database.batch !== 'function') {
    database.exec('PRAGMA synchronous = FULL');
    return;
  }
  // libSQL may open another connection at any time, so a setting would not last; its default must be sufficient.
  const level = database.protocol === 'file' ? Number((await database.execute('PRAGMA synchronous')).rows[0]?.[0]) : 0;
  if (!(level >= 2))
    throw new RethreadError(
      'config_invalid',
      '`durability`: libSQL does not report that it waits for the disk, so "strict" cannot be guaranteed; use "relaxed", or a database of node:sqlite or better-sqlite3',
    );
}

/** node:sqlite and better-sqlite3, which are synchronous: no other work of this process runs in between. */
function transaction(database, statements) {
  // IMMEDIATE takes the write lock at once. A transaction that reads before it writes fails if another connection wrote
  // in between.
  database.exec(statements.every(isRead) ? 'BEGIN' : 'BEGIN IMMEDIATE');
  try {
    const results = statements.map(({ sql, params }) => {
      const statement = database.prepare(sql);
      if (isRead({ sql })) return statement.all(...params);
      statement.run(...params);
      return [];
    });
    database.exec('COMMIT');
    return results;
  } catch (error) {
    try {
      database.exec('ROLLBACK');
    } catch {
      // SQLite has rolled back already; the first error is thrown
    }
    throw error;
  }
}

/** Returns what lets each work with a client for a file begin when the one before it has ended. So they have one
 *  connection of its pool, unless others use the client, and `isUnlocked` and what follows it are of the same. */
function oneAfterAnother() {
  /** @type {Promise<unknown>} */
  let last = Promise.resolve();
  /** @template T @param {() => Promise<T>} work @returns {Promise<T>} */
  return (work) => {
    const next = last.then(work);
    last = next.catch(() => {});
    return next;
  };
}

/** The wait of each client of libSQL: its `timeout`, or `WAIT_MS` if it has none, or 0. @type {WeakMap<object, number>} */
const waits = new WeakMap();

/** @returns {Promise<number>} */
async function waitOf(client) {
  const known = waits.get(client);
  if (known !== undefined) return known;
  // What does not know the setting has no locks to wait for, or reports them itself.
  const { rows } = await client.execute('PRAGMA busy_timeout').catch(() => ({ rows: [] }));
  const wait = Number(rows[0]?.[0]) || WAIT_MS;
  waits.set(client, wait);
  return wait;
}

/** How long one attempt to get a lock keeps the event loop, and the pause after it. */
const ATTEMPT_MS = 10;
const PAUSE_MS = 15;

/** Repeats an attempt until it resolves to a value, or the client's wait is over: then to undefined. In between the
 *  event loop goes on, since who has the lock may be of this process, and other work of the client has its turn.
 *  @template T @param {() => Promise<T | undefined>} attempt @returns {Promise<T | undefined>} */
async function untilUnlocked(client, inTurn, attempt) {
  const wait = await waitOf(client);
  let end = Number.NaN;
  for (;;) {
    const value = await inTurn(attempt);
    if (value !== undefined) return value;
    const now = performance.now();
    if (Number.isNaN(end)) end = now + wait;
    if (now >= end) return undefined;
    await new Promise((resolve) => setTimeout(resolve, Math.min(PAUSE_MS, end - now)));
  }
}

/** True if the locks of other connections to a file allow the transaction. libSQL keeps a statement that was busy
 *  until it is collected, and the locks of its connection with it; so no statement of `batch` may be busy.
 *  `executeMultiple` keeps none. */
async function isUnlocked(client, isWrite) {
  // EXCLUSIVE waits for readers as well, as the COMMIT does.
  const locks = isWrite ? 'BEGIN EXCLUSIVE; ROLLBACK' : 'SELECT 1 FROM sqlite_master LIMIT 1';
  // The transaction, which follows, has the whole wait.
  const after = `PRAGMA busy_timeout = ${await waitOf(client)}`;
  try {
    await client.executeMultiple(`PRAGMA busy_timeout = ${ATTEMPT_MS}; ${locks}; ${after}`);
  } catch (error) {
    await client.executeMultiple(after).catch(() => {});
    // Anything else is reported by the transaction.
    return !/^SQLITE_BUSY/.test(error?.code);
  }
  return true;
}

/** @libsql/client, for a file. */
async function fileBatch(client, inTurn, statements) {
  const isWrite = !statements.every(isRead);
  const attempt = async () => ((await isUnlocked(client, isWrite)) ? await batch(client, statements) : undefined);
  const results = await untilUnlocked(client, inTurn, attempt);
  if (results) return results;
  const wait = await waitOf(client);
  throw new RethreadError(
    'busy',
    `another connection has locked the database for ${wait} ms, and nothing was written; end its transaction, or wait longer: \`createClient({ url, timeout: ${2 * wait} })\``,
  );
}

/** @libsql/client. */
async function batch(client, statements) {
  const mode = statements.every(isRead) ? 'read' : 'write';
  // libSQL may open another connection at any time, which has its own setting.
  const first = mode === 'write' && client.protocol === 'file' ? [{ sql: 'PRAGMA secure_delete = ON', args: [] }] : [];
  const results = await client.batch([...first, ...statements.map(({ sql, params }) => ({ sql, args: params }))], mode);
  return results.slice(first.length).map(({ rows }) => rows);
}
