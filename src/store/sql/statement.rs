//! Writes statements: text and parameters together, in the dialect of the database.

use super::driver::{SqlDialect, SqlStatement, SqlValue};
use crate::store::MAX_KEY;

/// Ids of sessions up to this many bytes are their own key. PostgreSQL indexes no value above 2,704 bytes, so the key
/// of a longer one is its beginning and its SHA-256. Such a key is longer than any other, so the two never meet.
const MAX_PLAIN_ID: usize = 1024;

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnType {
    Integer,
    Bytes,
}

/// An integer as a parameter. No key or revision is larger than [`MAX_KEY`]; a time that is becomes that.
pub(super) fn integer(value: u64) -> SqlValue {
    SqlValue::Integer(i64::try_from(value.min(MAX_KEY)).unwrap_or(i64::MAX))
}

/// A statement that is being written.
pub(super) struct SqlWriter {
    dialect: SqlDialect,
    sql: String,
    params: Vec<SqlValue>,
}

impl SqlWriter {
    pub(super) fn new(dialect: SqlDialect) -> Self {
        Self { dialect, sql: String::new(), params: Vec::new() }
    }

    /// Appends text.
    pub(super) fn sql(&mut self, text: &str) -> &mut Self {
        self.sql.push_str(text);
        self
    }

    /// Appends an integer parameter.
    pub(super) fn integer(&mut self, value: u64) -> &mut Self {
        self.param(integer(value), ColumnType::Integer)
    }

    /// Appends a parameter of bytes.
    pub(super) fn bytes(&mut self, value: &[u8]) -> &mut Self {
        self.param(SqlValue::Bytes(value.to_vec()), ColumnType::Bytes)
    }

    /// Appends a parameter of bytes or `NULL`. Text is bytes too: PostgreSQL stores no NUL in text, and orders it by
    /// language.
    pub(super) fn bytes_or_null(&mut self, value: Option<&[u8]>) -> &mut Self {
        match value {
            Some(value) => self.bytes(value),
            None => self.param(SqlValue::Null, ColumnType::Bytes),
        }
    }

    /// Appends the key of a session.
    pub(super) fn session(&mut self, id: &str) -> &mut Self {
        if self.has_plain_key(id) {
            return self.bytes(id.as_bytes());
        }
        self.sql("(substr(").bytes(id.as_bytes());
        let number = self.params.len();
        self.sql(&format!(", 1, {}) || sha256(CAST(${number} AS BYTEA)))", MAX_PLAIN_ID - 31))
    }

    /// Appends the id of a session whose key is not its id, else `NULL`.
    pub(super) fn long_id(&mut self, id: &str) -> &mut Self {
        let id = Some(id.as_bytes()).filter(|_| !self.has_plain_key(id));
        self.bytes_or_null(id)
    }

    fn has_plain_key(&self, id: &str) -> bool {
        self.dialect == SqlDialect::Sqlite || id.len() <= MAX_PLAIN_ID
    }

    /// Appends a parameter for a column of this type.
    pub(super) fn param(&mut self, value: SqlValue, column: ColumnType) -> &mut Self {
        self.params.push(value);
        match self.dialect {
            SqlDialect::Sqlite => self.sql.push('?'),
            // Without a type PostgreSQL takes a parameter in a SELECT list for text.
            SqlDialect::Postgres => {
                let name = match column {
                    ColumnType::Integer => "BIGINT",
                    ColumnType::Bytes => "BYTEA",
                };
                self.sql.push_str(&format!("CAST(${} AS {name})", self.params.len()));
            }
        }
        self
    }

    /// A statement whose rows nobody reads.
    pub(super) fn end(self) -> SqlStatement {
        self.query(&[])
    }

    /// A statement with these columns.
    pub(super) fn query(self, columns: &'static [&'static str]) -> SqlStatement {
        SqlStatement { sql: self.sql, params: self.params, columns }
    }
}
