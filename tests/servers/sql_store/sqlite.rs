//! A driver over SQLite itself, which can fail at any statement.

use rethread::error::{Error, ErrorCode, Result};
use rethread::store::StoreFuture;
use rethread::store::sql::{SqlDialect, SqlDriver, SqlLimits, SqlRow, SqlStatement, SqlValue};
use rusqlite::types::{Value, ValueRef};
use rusqlite::{Connection, ErrorCode as SqliteCode, OpenFlags, params_from_iter};
use std::cell::{Cell, RefCell};
use std::future::Future;
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
    }
}

/// A folder that is removed with its content.
pub struct TestFolder(PathBuf);

impl TestFolder {
    pub fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("rethread-sql-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for TestFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

pub struct SqliteDriver {
    connection: RefCell<Option<Connection>>,
    limits: SqlLimits,
    /// The statement of the next transaction that fails, counted from 0.
    pub fail_at: Cell<Option<usize>>,
    /// The statements of the last transaction.
    pub last: RefCell<Vec<SqlStatement>>,
}

impl SqliteDriver {
    pub fn open(path: &Path) -> Rc<Self> {
        Self::over(Connection::open(path).unwrap(), SqlLimits::default())
    }

    pub fn read_only(path: &Path) -> Rc<Self> {
        Self::over(Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap(), SqlLimits::default())
    }

    pub fn in_memory(limits: SqlLimits) -> Rc<Self> {
        Self::over(Connection::open_in_memory().unwrap(), limits)
    }

    pub fn over(connection: Connection, limits: SqlLimits) -> Rc<Self> {
        connection.busy_timeout(Duration::from_secs(5)).unwrap();
        Rc::new(Self {
            connection: RefCell::new(Some(connection)),
            limits,
            fail_at: Cell::default(),
            last: RefCell::default(),
        })
    }

    /// Runs SQL past the store.
    pub fn execute(&self, sql: &str) {
        self.connection.borrow().as_ref().unwrap().execute_batch(sql).unwrap();
    }

    /// Every row of every table, in order.
    pub fn dump(&self) -> Vec<String> {
        let connection = self.connection.borrow();
        let connection = connection.as_ref().unwrap();
        let mut names =
            connection.prepare("SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY name").unwrap();
        let names: Vec<String> = names.query_map([], |row| row.get(0)).unwrap().map(|name| name.unwrap()).collect();
        let mut lines = Vec::new();
        for name in names {
            let mut select = connection.prepare(&format!("SELECT * FROM {name}")).unwrap();
            let width = select.column_count();
            let rows = select.query_map([], |row| {
                (0..width).map(|at| row.get::<_, Value>(at)).collect::<std::result::Result<Vec<_>, _>>()
            });
            let mut found: Vec<_> = rows.unwrap().map(|row| format!("{name}: {:?}", row.unwrap())).collect();
            found.sort();
            lines.append(&mut found);
        }
        lines
    }

    /// How SQLite answers the last statement.
    pub fn plan(&self) -> String {
        let last = self.last.borrow();
        let statement = last.last().unwrap();
        let connection = self.connection.borrow();
        let mut explain =
            connection.as_ref().unwrap().prepare(&format!("EXPLAIN QUERY PLAN {}", statement.sql)).unwrap();
        let params = statement.params.iter().map(param);
        let lines = explain.query_map(params_from_iter(params), |row| row.get::<_, String>(3)).unwrap();
        lines.map(|line| line.unwrap()).collect::<Vec<_>>().join("\n")
    }

    fn run(&self, statements: &[SqlStatement]) -> Result<Vec<Vec<SqlRow>>> {
        let connection = self.connection.borrow();
        let Some(connection) = connection.as_ref() else {
            return Err(Error::new(ErrorCode::Closed, "the SQLite database is closed"));
        };
        let reads = statements.iter().all(|statement| statement.sql.starts_with(['S', 'W']));
        connection.execute_batch(if reads { "BEGIN" } else { "BEGIN IMMEDIATE" }).map_err(failure)?;
        let fail_at = self.fail_at.take();
        let run = |(at, statement): (usize, &SqlStatement)| {
            if fail_at == Some(at) {
                return Err(Error::new(ErrorCode::StoreError, "an injected failure"));
            }
            assert!(statement.params.len() <= self.limits.max_params, "{} parameters", statement.params.len());
            rows(connection, statement).map_err(failure)
        };
        let results = statements.iter().enumerate().map(run).collect::<Result<Vec<_>>>();
        connection.execute_batch(if results.is_ok() { "COMMIT" } else { "ROLLBACK" }).map_err(failure)?;
        results
    }
}

fn param(value: &SqlValue) -> Value {
    match value {
        SqlValue::Null => Value::Null,
        SqlValue::Integer(number) => Value::Integer(*number),
        SqlValue::Text(text) => Value::Text(text.clone()),
        SqlValue::Bytes(bytes) => Value::Blob(bytes.clone()),
    }
}

fn rows(connection: &Connection, statement: &SqlStatement) -> rusqlite::Result<Vec<SqlRow>> {
    let mut prepared = connection.prepare(&statement.sql)?;
    assert!(prepared.column_names().eq(statement.columns.iter().copied()), "{}", statement.sql);
    let width = prepared.column_count();
    let mut found = prepared.query(params_from_iter(statement.params.iter().map(param)))?;
    let mut rows = Vec::new();
    while let Some(row) = found.next()? {
        let value = |at| {
            Ok(match row.get_ref(at)? {
                ValueRef::Null => SqlValue::Null,
                ValueRef::Integer(number) => SqlValue::Integer(number),
                ValueRef::Real(number) => SqlValue::Text(number.to_string()),
                ValueRef::Text(text) => SqlValue::Text(String::from_utf8_lossy(text).into_owned()),
                ValueRef::Blob(bytes) => SqlValue::Bytes(bytes.to_vec()),
            })
        };
        rows.push((0..width).map(value).collect::<rusqlite::Result<SqlRow>>()?);
    }
    Ok(rows)
}

fn failure(error: rusqlite::Error) -> Error {
    let code = match error.sqlite_error_code() {
        Some(SqliteCode::DatabaseBusy | SqliteCode::DatabaseLocked) => ErrorCode::Busy,
        Some(SqliteCode::DiskFull) => ErrorCode::QuotaExceeded,
        _ => ErrorCode::StoreError,
    };
    Error::new(code, format!("SQLite: {error}"))
}

impl SqlDriver for SqliteDriver {
    fn dialect(&self) -> SqlDialect {
        SqlDialect::Sqlite
    }

    fn limits(&self) -> SqlLimits {
        self.limits
    }

    fn transaction<'a>(&'a self, statements: Vec<SqlStatement>) -> StoreFuture<'a, Vec<Vec<SqlRow>>> {
        Box::pin(async move {
            let results = self.run(&statements);
            self.last.replace(statements);
            results
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        self.connection.take();
        Box::pin(async { Ok(()) })
    }
}
