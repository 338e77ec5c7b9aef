//! A SQL driver that is a JavaScript object.
//!
//! The object is the application's: whatever it throws or returns becomes a typed error. Its shape is `SqlDriver` in
//! the types.

use super::store_timeout::{Access, StoreTimeout};
use crate::error::{Error, ErrorCode, Result};
use crate::store::StoreFuture;
use crate::store::sql::{SqlDialect, SqlDriver, SqlLimits, SqlRow, SqlStatement, SqlValue};
use crate::web::conversion::convert::set;
use crate::web::conversion::untrusted_value::{bytes, get, items, member, reason_of, string};
use crate::web::trap_cleanup::TrapCleanup;
use js_sys::{Array, ArrayBuffer, Function, Object, Reflect, Uint8Array};
use wasm_bindgen::prelude::*;

/// A driver, and what it says of itself.
pub struct JsSqlDriver {
    driver: JsValue,
    transaction: Function,
    close: Option<Function>,
    dialect: SqlDialect,
    limits: SqlLimits,
    has_change_feed: bool,
    store_timeout: StoreTimeout,
    _cleanup: Option<TrapCleanup>,
}

impl JsSqlDriver {
    /// Reads the members of a driver.
    ///
    /// # Errors
    /// `config_invalid` when one is missing, of another type or unknown.
    pub fn new(driver: &JsValue, store_timeout: StoreTimeout) -> Result<Self> {
        let member = |key: &str| get(driver, key).map_err(|error| Error::config(error.into_message()));
        let wrong = |what: &str| Error::config(format!("`store`: a SQL driver's {what}"));
        let dialect = string("the driver's `dialect`", &member("dialect")?)?;
        let dialect = dialect.ok_or_else(|| wrong("`dialect` is \"sqlite\" or \"postgres\""))?;
        let dialect = SqlDialect::from_name(&dialect)?;
        let transaction = member("transaction")?;
        let transaction: Function = transaction.dyn_into().map_err(|_| wrong("`transaction` must be a function"))?;
        let close = member("close")?;
        let close = if close.is_undefined() || close.is_null() {
            None
        } else {
            Some(close.dyn_into::<Function>().map_err(|_| wrong("`close` must be a function"))?)
        };
        let limits = member("limits")?;
        let usual = SqlLimits::default();
        let limits = SqlLimits {
            max_value_bytes: limit(&limits, "maxValueBytes")?.unwrap_or(usual.max_value_bytes),
            max_params: limit(&limits, "maxParams")?.unwrap_or(usual.max_params),
        };
        let cleanup = TrapCleanup::closing(driver);
        let has_change_feed = member("changes")?.is_object();
        let driver = driver.clone();
        Ok(Self { driver, transaction, close, dialect, limits, has_change_feed, store_timeout, _cleanup: cleanup })
    }

    /// Tells the driver whether a commit waits for the disk.
    ///
    /// # Errors
    /// `config_invalid` if that is asked for and the driver cannot, and the driver's own.
    pub async fn set_durability(&self, strict: bool) -> Result<()> {
        let set_durability = get(&self.driver, "setDurability").map_err(|error| Error::config(error.into_message()))?;
        let Ok(set_durability) = set_durability.dyn_into::<Function>() else {
            let name = self.dialect.as_str();
            return if strict {
                Err(Error::config(format!(
                    "`durability`: the {name} store's driver cannot promise \"strict\", since it has no `setDurability`; open it with \"relaxed\""
                )))
            } else {
                Ok(())
            };
        };
        let level = JsValue::from_str(if strict { "strict" } else { "relaxed" });
        self.settle(Access::MayWrite, set_durability.call1(&self.driver, &level)).await.map(drop)
    }

    /// Calls the driver, and waits for what it returns.
    async fn call(&self, statements: &[SqlStatement]) -> Result<JsValue> {
        let list: Array = statements.iter().map(statement_to_js).collect();
        // A statement without columns writes.
        let reads = statements.iter().all(|statement| !statement.columns.is_empty());
        self.settle(if reads { Access::Reads } else { Access::MayWrite }, self.transaction.call1(&self.driver, &list))
            .await
    }

    /// Awaits what a method returned.
    async fn settle(&self, access: Access, called: std::result::Result<JsValue, JsValue>) -> Result<JsValue> {
        let settled =
            self.store_timeout.settled(&format!("the {} store", self.dialect.as_str()), access, called).await?;
        settled.map_err(|thrown| self.failure(&thrown))
    }

    fn odd(&self, what: &str) -> Error {
        Error::new(ErrorCode::StoreError, format!("the driver of the {} store returned {what}", self.dialect.as_str()))
    }

    /// Reads the rows of every statement.
    fn read_results(&self, results: &JsValue, statements: &[SqlStatement]) -> Result<Vec<Vec<SqlRow>>> {
        let unreadable = |error: Error| self.odd(&format!("results that cannot be read: {}", error.message));
        let list = items("the results", results, u32::MAX).map_err(unreadable)?;
        let list = list.ok_or_else(|| self.odd("no array of results"))?;
        if list.len() != statements.len() {
            return Err(self.odd(&format!("{} results for {} statements", list.len(), statements.len())));
        }
        let read = |(rows, statement): (&JsValue, &SqlStatement)| {
            if statement.columns.is_empty() {
                return Ok(Vec::new());
            }
            let rows = items("the rows", rows, u32::MAX).map_err(unreadable)?;
            let rows = rows.ok_or_else(|| self.odd("a result that is no array of rows"))?;
            let names: Vec<JsValue> = statement.columns.iter().map(|name| JsValue::from_str(name)).collect();
            rows.iter().map(|row| self.read_row(row, &names)).collect()
        };
        list.iter().zip(statements).map(read).collect()
    }

    fn read_row(&self, row: &JsValue, names: &[JsValue]) -> Result<SqlRow> {
        if !row.is_object() {
            return Err(self.odd("a row that is no object"));
        }
        let value = |name: &JsValue| {
            let value = Reflect::get(row, name).map_err(|_| self.odd("a row that cannot be read"))?;
            self.read_value(&value, name)
        };
        names.iter().map(value).collect()
    }

    fn read_value(&self, value: &JsValue, name: &JsValue) -> Result<SqlValue> {
        if value.is_null() {
            return Ok(SqlValue::Null);
        }
        if let Some(number) = value.as_f64() {
            if number.fract() != 0.0 || number.abs() > MAX_SAFE {
                return Err(self.odd("a number that is no exact integer"));
            }
            #[allow(clippy::cast_possible_truncation)]
            return Ok(SqlValue::Integer(number as i64));
        }
        if value.is_bigint() {
            // A large integer is read from its digits, as PostgreSQL's clients return it.
            return Ok(SqlValue::Text(
                js_sys::BigInt::from(value.clone()).to_string(10).map(String::from).unwrap_or_default(),
            ));
        }
        if let Some(text) = string("a column", value)? {
            return Ok(SqlValue::Text(text));
        }
        if let Some(bytes) = bytes("a column", &as_bytes(value))? {
            return Ok(SqlValue::Bytes(bytes));
        }
        let name = name.as_string().unwrap_or_default();
        Err(self.odd(&format!("a row whose column `{name}` is missing or of no type that a database has")))
    }

    /// The error for what a driver threw.
    fn failure(&self, thrown: &JsValue) -> Error {
        let thrown = ThrownError::new(thrown);
        let message = format!("the {} store: {}", self.dialect.as_str(), thrown.reason);
        match thrown.code() {
            ErrorCode::Unavailable => Error::unavailable(message, thrown.may_have_written()),
            code => Error::new(code, message),
        }
    }
}

/// The largest integer that a JavaScript number has exactly.
const MAX_SAFE: f64 = 9_007_199_254_740_991.0;

/// Durable Objects and libSQL return an `ArrayBuffer`.
fn as_bytes(value: &JsValue) -> JsValue {
    if !value.is_instance_of::<ArrayBuffer>() {
        return value.clone();
    }
    // A detached buffer makes the constructor throw.
    let class = Reflect::get(&js_sys::global(), &JsValue::from_str("Uint8Array")).unwrap_or_default();
    let Ok(class) = class.dyn_into::<Function>() else { return JsValue::UNDEFINED };
    Reflect::construct(&class, &Array::of1(value)).unwrap_or_default()
}

pub(super) fn limit(limits: &JsValue, key: &str) -> Result<Option<usize>> {
    let value = get(limits, key).map_err(|error| Error::config(error.into_message()))?;
    if value.is_undefined() || value.is_null() {
        return Ok(None);
    }
    match value.as_f64() {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        Some(number) if number >= 1.0 && number.fract() == 0.0 && number <= MAX_SAFE => Ok(Some(number as usize)),
        _ => Err(Error::config(format!("a driver's `limits.{key}` must be a whole number, 1 or more"))),
    }
}

fn statement_to_js(statement: &SqlStatement) -> JsValue {
    let params: Array = statement.params.iter().map(value_to_js).collect();
    let object = Object::new();
    set(&object, "sql", &JsValue::from_str(&statement.sql));
    set(&object, "params", &params);
    object.into()
}

fn value_to_js(value: &SqlValue) -> JsValue {
    match value {
        SqlValue::Null => JsValue::NULL,
        #[allow(clippy::cast_precision_loss)]
        SqlValue::Integer(number) => JsValue::from_f64(*number as f64),
        SqlValue::Text(text) => JsValue::from_str(text),
        SqlValue::Bytes(bytes) => Uint8Array::from(bytes.as_slice()).into(),
    }
}

/// What the clients of databases put on their errors: `code` of better-sqlite3, libSQL and pg (a SQLSTATE) and of
/// Node's sockets, `errcode` of node:sqlite, a sentence of the others.
struct ThrownError<'a> {
    thrown: &'a JsValue,
    code: String,
    reason: String,
}

impl<'a> ThrownError<'a> {
    fn new(thrown: &'a JsValue) -> Self {
        Self { thrown, code: text_of(thrown, "code"), reason: reason_of(thrown) }
    }

    /// Returns true if the code or the message contains one of the texts.
    fn has(&self, texts: &[&str]) -> bool {
        texts.iter().any(|text| self.reason.contains(text) || self.code.contains(text))
    }

    fn code(&self) -> ErrorCode {
        let number = member(self.thrown, "errcode").as_f64().unwrap_or(0.0);
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let primary = number as u32 & 0xff;
        match (self.code.as_str(), primary) {
            ("config_invalid", _) => ErrorCode::ConfigInvalid,
            // 40001 and 40P01: PostgreSQL aborted the transaction for another one. 55P03: a lock was not available.
            ("busy" | "40001" | "40P01" | "55P03", _) | (_, 5 | 6) => ErrorCode::Busy,
            ("quota_exceeded" | "53100", _) | (_, 13) => ErrorCode::QuotaExceeded,
            ("closed" | "CLIENT_CLOSED", _) => ErrorCode::Closed,
            ("too_large", _) | (_, 18) => ErrorCode::TooLarge,
            _ if self.has(&["SQLITE_BUSY", "SQLITE_LOCKED"]) => ErrorCode::Busy,
            _ if self.has(&["SQLITE_FULL"]) => ErrorCode::QuotaExceeded,
            _ if self.has(&["SQLITE_TOOBIG"]) => ErrorCode::TooLarge,
            // node:sqlite and better-sqlite3; a Client and a Pool of pg.
            _ if self.has(&[
                "database is not open",
                "connection is not open",
                "Client was closed",
                "after calling end",
            ]) =>
            {
                ErrorCode::Closed
            }
            _ if self.is_unavailable() => ErrorCode::Unavailable,
            _ => ErrorCode::StoreError,
        }
    }

    /// Returns true if the database could not be reached.
    fn is_unavailable(&self) -> bool {
        const SOCKET_CODES: &[&str] = &[
            "unavailable",
            "ECONNREFUSED",
            "ECONNRESET",
            "ECONNABORTED",
            "EPIPE",
            "ETIMEDOUT",
            "ENOTFOUND",
            "EAI_AGAIN",
            "EHOSTUNREACH",
            "ENETUNREACH",
        ];
        const SENTENCES: &[&str] = &[
            // A Client and a Pool of pg.
            "Connection terminated",
            "not queryable",
            "timeout exceeded when trying to connect",
            // libSQL over HTTP, and Workers.
            "fetch failed",
            "Network connection lost",
        ];
        // PostgreSQL: 08 is a connection exception, 57P01 to 57P05 a server that stops or starts, 53300 too many
        // connections.
        let is_sqlstate = self.code.len() == 5
            && (self.code.starts_with("08") || self.code.starts_with("57P0") || self.code == "53300");
        is_sqlstate || self.is_connect_error() || SOCKET_CODES.contains(&self.code.as_str()) || self.has(SENTENCES)
    }

    /// Returns true if there was no connection yet.
    fn is_connect_error(&self) -> bool {
        matches!(text_of(self.thrown, "syscall").as_str(), "connect" | "getaddrinfo")
    }

    /// Returns false if the statements have not reached the database, or were rolled back. A driver says so in
    /// `details.outcome`.
    fn may_have_written(&self) -> bool {
        let outcome = text_of(&member(self.thrown, "details"), "outcome");
        let was_refused =
            matches!(self.code.as_str(), "57P03" | "53300") || self.has(&["not queryable", "trying to connect"]);
        outcome != "none" && !was_refused && !self.is_connect_error()
    }
}

/// Returns a member that is a string; empty if there is none.
fn text_of(object: &JsValue, key: &str) -> String {
    member(object, key).as_string().unwrap_or_default()
}

impl SqlDriver for JsSqlDriver {
    fn dialect(&self) -> SqlDialect {
        self.dialect
    }

    fn limits(&self) -> SqlLimits {
        self.limits
    }

    fn has_change_feed(&self) -> bool {
        self.has_change_feed
    }

    fn transaction<'a>(&'a self, statements: Vec<SqlStatement>) -> StoreFuture<'a, Vec<Vec<SqlRow>>> {
        Box::pin(async move {
            let results = self.call(&statements).await?;
            self.read_results(&results, &statements)
        })
    }

    fn erase_overwritten(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let Ok(erase) = get(&self.driver, "eraseOverwritten")?.dyn_into::<Function>() else {
                return Ok(());
            };
            self.settle(Access::MayWrite, erase.call0(&self.driver)).await.map(drop)
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let Some(close) = &self.close else { return Ok(()) };
            self.settle(Access::MayWrite, close.call0(&self.driver)).await.map(drop)
        })
    }
}
