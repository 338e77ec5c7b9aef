//! What runs the statements: a database behind one function.

use crate::error::{Error, ErrorCode, Result};
use crate::store::StoreFuture;

/// The SQL that a database understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SqlDialect {
    /// SQLite 3.35 or newer: files, libSQL, Durable Objects, D1.
    Sqlite,
    /// PostgreSQL 11 or newer.
    Postgres,
}

impl SqlDialect {
    /// Reads `sqlite` or `postgres`.
    ///
    /// # Errors
    /// `config_invalid` for any other name.
    pub fn from_name(name: &str) -> Result<Self> {
        match name {
            "sqlite" => Ok(Self::Sqlite),
            "postgres" => Ok(Self::Postgres),
            _ => Err(Error::config(format!("a SQL driver's `dialect` is \"sqlite\" or \"postgres\", not \"{name}\""))),
        }
    }

    /// The name that `status()` shows.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }
}

/// What one statement may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqlLimits {
    /// The largest value, in bytes. Larger ones are split into rows.
    pub max_value_bytes: usize,
    /// The most parameters of a statement.
    pub max_params: usize,
}

/// Fewer parameters than this hold no row of the audit table.
const MIN_PARAMS: usize = 24;

impl SqlLimits {
    /// # Errors
    /// `config_invalid` for limits that hold no row.
    pub fn check(self) -> Result<()> {
        if self.max_params < MIN_PARAMS || self.max_value_bytes == 0 {
            return Err(Error::config(format!(
                "a SQL driver takes at least {MIN_PARAMS} parameters and values of at least 1 byte; its `limits` say {} and {}",
                self.max_params, self.max_value_bytes
            )));
        }
        Ok(())
    }
}

impl Default for SqlLimits {
    /// What D1 and Durable Objects take.
    fn default() -> Self {
        Self { max_value_bytes: 1024 * 1024, max_params: 100 }
    }
}

/// A parameter, or a column of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SqlValue {
    /// `NULL`.
    Null,
    /// At most 2^53 - 1 in size, so that it is exact in JavaScript too.
    Integer(i64),
    /// Text. The store writes none; a database may return a large integer as its digits.
    Text(String),
    /// `BLOB` or `BYTEA`.
    Bytes(Vec<u8>),
}

/// One statement with its parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SqlStatement {
    /// The text. Parameters are `?` in SQLite, `$1`, `$2`, … in PostgreSQL.
    pub sql: String,
    /// The parameters, in order.
    pub params: Vec<SqlValue>,
    /// The names of the result's columns. A row has their values in this order.
    pub columns: &'static [&'static str],
}

/// The values of one row, in the order of [`SqlStatement::columns`].
pub type SqlRow = Vec<SqlValue>;

/// Runs statements. Knows nothing of what they are for.
pub trait SqlDriver {
    /// The SQL it understands.
    fn dialect(&self) -> SqlDialect;

    /// What it can hold.
    fn limits(&self) -> SqlLimits {
        SqlLimits::default()
    }

    /// Returns true if other users of the database hear of the notices that the engine's statements send.
    fn has_change_feed(&self) -> bool {
        false
    }

    /// Runs the statements in order in one transaction, and returns the rows of each. A failure rolls back all of them.
    ///
    /// # Errors
    /// `busy`, `quota_exceeded`, `closed`, `unavailable` and `store_error`.
    fn transaction<'a>(&'a self, statements: Vec<SqlStatement>) -> StoreFuture<'a, Vec<Vec<SqlRow>>>;

    /// Removes what the database still has of overwritten values, as far as it can.
    ///
    /// # Errors
    /// The driver's own.
    fn erase_overwritten(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    /// Closes the connection, if the driver opened it.
    ///
    /// # Errors
    /// The driver's own.
    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async { Ok(()) })
    }
}

/// Reads the columns of a row.
pub(super) struct SqlColumns<'r> {
    store: &'static str,
    row: &'r [SqlValue],
}

impl<'r> SqlColumns<'r> {
    pub(super) fn new(dialect: SqlDialect, row: &'r [SqlValue]) -> Self {
        Self { store: dialect.as_str(), row }
    }

    /// An integer; none for `NULL`.
    ///
    /// # Errors
    /// `store_error` for a value that the store did not write.
    pub(super) fn integer(&self, column: usize) -> Result<Option<u64>> {
        let number = match self.row.get(column) {
            Some(SqlValue::Null) => return Ok(None),
            Some(SqlValue::Integer(number)) => u64::try_from(*number).ok(),
            Some(SqlValue::Text(digits)) => digits.parse().ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.unreadable(column, "an integer"))
    }

    /// Bytes; none for `NULL`.
    ///
    /// # Errors
    /// `store_error` for a value that the store did not write.
    pub(super) fn bytes(&self, column: usize) -> Result<Option<&'r [u8]>> {
        match self.row.get(column) {
            Some(SqlValue::Null) => Ok(None),
            Some(SqlValue::Bytes(bytes)) => Ok(Some(bytes)),
            _ => Err(self.unreadable(column, "bytes")),
        }
    }

    /// Text that is stored as bytes; none for `NULL`.
    ///
    /// # Errors
    /// `store_error` for a value that the store did not write.
    pub(super) fn text(&self, column: usize) -> Result<Option<String>> {
        let Some(bytes) = self.bytes(column)? else { return Ok(None) };
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(text.to_owned())),
            Err(_) => Err(self.unreadable(column, "UTF-8")),
        }
    }

    fn unreadable(&self, column: usize, wanted: &str) -> Error {
        let what = match self.row.get(column) {
            None => "missing",
            Some(SqlValue::Null) => "NULL",
            Some(SqlValue::Integer(_)) => "an integer",
            Some(SqlValue::Text(_)) => "text",
            Some(SqlValue::Bytes(_)) => "bytes",
        };
        Error::new(
            ErrorCode::StoreError,
            format!("the {} store: column {column} of a row is {what}, and should be {wanted}", self.store),
        )
    }
}
