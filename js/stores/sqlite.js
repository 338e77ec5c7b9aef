// "rethread/sqlite": a file through node:sqlite, or an open database of node:sqlite or @libsql/client.

import { RethreadError } from '../error.js';

const isRead = ({ sql }) => /^(SELECT|WITH)\b/.test(sql);

/** @type {typeof import('./sqlite.js').sqlite} */
export function sqlite(database) {
  const path = typeof database === 'string' ? database : null;
  /** @type {any} */
  let open = path === null ? database : null;
  if (path === null && typeof open?.prepare !== 'function' && typeof open?.batch !== 'function') {
    throw new RethreadError('config_invalid', '`sqlite` takes the path of a file, or an open database of node:sqlite or @libsql/client');
  }
  return {
    dialect: 'sqlite',
    transaction(statements) {
      open ??= openFile(path);
      return typeof open.batch === 'function' ? batch(open, statements) : transaction(open, statements);
    },
    close() {
      if (path === null) return;
      open?.close();
      open = null;
    },
  };
}

function openFile(path) {
  /** @type {any} */
  const module = globalThis.process?.getBuiltinModule?.('node:sqlite');
  if (!module) throw new RethreadError('config_invalid', 'a path needs node:sqlite, which Node has from 22.13 on: pass an open database of @libsql/client');
  const database = new module.DatabaseSync(path);
  database.exec('PRAGMA busy_timeout = 5000');
  try {
    database.exec('PRAGMA journal_mode = WAL');
  } catch {
    // A file that is read-only keeps its mode.
  }
  return database;
}

/** node:sqlite: synchronous, so nothing comes in between. */
function transaction(database, statements) {
  // A transaction that reads first and then writes fails if another connection wrote in between: it takes the lock at once.
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
      // SQLite has rolled back already: the first error says why.
    }
    throw error;
  }
}

/** @libsql/client. */
async function batch(client, statements) {
  const mode = statements.every(isRead) ? 'read' : 'write';
  const results = await client.batch(statements.map(({ sql, params }) => ({ sql, args: params })), mode);
  return results.map(({ rows }) => rows);
}
