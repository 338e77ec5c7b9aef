//! A log store that is a JavaScript object.
//!
//! The object is the application's: whatever it throws or returns becomes a typed error that names the method. Its
//! shape is `LogStore` in the types.

use super::js_record::{number_to_js, query_to_js, record_from_js, record_to_js, whole_number};
use super::store_timeout::{Access, StoreTimeout};
use crate::error::{Error, ErrorCode, Result};
use crate::store::{
    Appended, AuditQuery, Batch, Capabilities, LogStore, MAX_KEY, MIN_VALUE_BYTES, PAGE, Page, Query, Record,
    SessionRow, StoreFuture, StoredHead, Table, check_page, check_records,
};
use crate::web::conversion::convert::set;
use crate::web::conversion::untrusted_value::{bytes, get, items, member, reason_of, string};
use crate::web::trap_cleanup::TrapCleanup;
use bytes::Bytes;
use js_sys::{Array, Function, Object};
use std::cell::Cell;
use wasm_bindgen::prelude::*;

/// The methods of a log store in the types that every store has.
const METHODS: [&str; 7] = ["capabilities", "head", "append", "read", "sessions", "invocations", "deleteSession"];

/// Codes that an error of the store keeps.
const KEPT_CODES: &[ErrorCode] = &[
    ErrorCode::Busy,
    ErrorCode::QuotaExceeded,
    ErrorCode::Closed,
    ErrorCode::TooLarge,
    ErrorCode::Unavailable,
    ErrorCode::Evicted,
    ErrorCode::CorruptRecord,
    ErrorCode::UnsupportedVersion,
    ErrorCode::InvalidInput,
];

/// A store of the application.
pub struct JsLogStore {
    store: JsValue,
    close: Option<Function>,
    capabilities: Capabilities,
    closed: Cell<bool>,
    store_timeout: StoreTimeout,
    _cleanup: Option<TrapCleanup>,
}

impl JsLogStore {
    /// Opens the store of an object that is no driver. With `strict` it must promise that what it has acknowledged is on
    /// the disk. `store_timeout` holds for each call of one of its methods.
    ///
    /// # Errors
    /// `config_invalid` for an object that is no store or cannot keep the promise.
    pub fn open(store: &JsValue, strict: bool, store_timeout: StoreTimeout) -> Result<Self> {
        if !METHODS.iter().any(|name| member(store, name).is_function()) {
            return Err(Error::config(
                "`store` must be an object with the methods of a `SqlDriver` (`transaction`), of a `KvStore` (`get`, `put`, …) or of a `LogStore` (`append`, `read`, …)",
            ));
        }
        let opened = Self::new(store, store_timeout)?;
        if strict {
            Self::require_strict(store)?;
        }
        Ok(opened)
    }

    /// Reads the methods and capabilities of a store.
    ///
    /// # Errors
    /// `config_invalid` when a method is missing or a capability is not enough.
    fn new(store: &JsValue, store_timeout: StoreTimeout) -> Result<Self> {
        for name in METHODS {
            if !config_member(store, name)?.is_function() {
                return Err(Error::config(format!("`store`: the custom store has no method `{name}`")));
            }
        }
        let close = config_member(store, "close")?;
        let close = match close.dyn_into::<Function>() {
            Ok(close) => Some(close),
            Err(close) if close.is_undefined() || close.is_null() => None,
            Err(_) => return Err(Error::config("`store`: the custom store's `close` must be a function")),
        };
        let capabilities: Function = config_member(store, "capabilities")?.unchecked_into();
        let capabilities = capabilities.call0(store).map_err(|thrown| {
            Error::config(format!("the custom store: `capabilities` threw: {}", reason_of(&thrown)))
        })?;
        let capabilities = read_capabilities(&capabilities)?;
        let cleanup = TrapCleanup::closing(store);
        Ok(Self {
            store: store.clone(),
            close,
            capabilities,
            closed: Cell::new(false),
            store_timeout,
            _cleanup: cleanup,
        })
    }

    /// Checks that the store keeps what `durability: "strict"` promises.
    ///
    /// # Errors
    /// `config_invalid` unless its capabilities say so.
    fn require_strict(store: &JsValue) -> Result<()> {
        let capabilities = config_member(store, "capabilities")?.dyn_into::<Function>().ok();
        let capabilities = capabilities.and_then(|capabilities| capabilities.call0(store).ok()).unwrap_or_default();
        if member(&capabilities, "strict").is_truthy() {
            return Ok(());
        }
        Err(Error::config(
            "`durability`: the custom store does not promise \"strict\" (`capabilities().strict`); open it with \"relaxed\"",
        ))
    }

    /// Calls a method, and waits for what it returns.
    async fn call(&self, name: &'static str, arguments: &[JsValue]) -> Result<StoreReply> {
        if self.closed.get() {
            return Err(Error::new(ErrorCode::Closed, "the custom store was closed; `open` again"));
        }
        let arguments: Array = arguments.iter().collect();
        let returned =
            member(&self.store, name).dyn_into::<Function>().and_then(|method| method.apply(&self.store, &arguments));
        let access = if matches!(name, "append" | "deleteSession") { Access::MayWrite } else { Access::Reads };
        let settled = self.store_timeout.settled(&named(name), access, returned).await?;
        settled.map(|value| StoreReply { method: name, value }).map_err(|thrown| failure(name, &thrown))
    }
}

/// Names a method, for messages.
fn named(method: &str) -> String {
    format!("the custom store: `{method}`")
}

fn config_member(object: &JsValue, name: &str) -> Result<JsValue> {
    get(object, name).map_err(|error| Error::config(error.into_message()))
}

/// Reads what a store says of itself.
fn read_capabilities(value: &JsValue) -> Result<Capabilities> {
    let flag = |name: &str| -> Result<bool> {
        let flag = config_member(value, name)?;
        flag.as_bool()
            .ok_or_else(|| Error::config(format!("the custom store: `capabilities().{name}` is not true or false")))
    };
    let needed = [
        ("compareAndAppend", "two writers would overwrite each other; a key-value service plugs in as a `KvStore`"),
        ("atomicBatch", "a crash would leave half an append; a key-value service plugs in as a `KvStore`"),
        ("readYourWrites", "a session would not find what it has written"),
    ];
    for (name, reason) in needed {
        if !flag(name)? {
            return Err(Error::config(format!("the custom store cannot be used: its `{name}` is false, so {reason}")));
        }
    }
    let durable = config_member(value, "durable")?;
    let durable = if durable.is_undefined() { true } else { flag("durable")? };
    let largest = config_member(value, "maxValueBytes")?;
    let largest = if largest.as_f64() == Some(f64::INFINITY) { Some(MAX_KEY) } else { whole_number(&largest) };
    match largest {
        Some(max_value_bytes) if max_value_bytes >= MIN_VALUE_BYTES => Ok(Capabilities {
            compare_and_append: true,
            atomic_batch: true,
            read_your_writes: true,
            max_value_bytes,
            durable,
        }),
        _ => Err(Error::config(format!(
            "the custom store: `capabilities().maxValueBytes` must be a whole number, {MIN_VALUE_BYTES} or more"
        ))),
    }
}

/// The error for what a method threw.
fn failure(method: &str, thrown: &JsValue) -> Error {
    let code = member(thrown, "code").as_string().unwrap_or_default();
    let code = KEPT_CODES.iter().copied().find(|kept| kept.as_str() == code).unwrap_or(ErrorCode::StoreError);
    let message = format!("{} failed: {}", named(method), reason_of(thrown));
    if code == ErrorCode::Unavailable {
        let outcome = member(&member(thrown, "details"), "outcome");
        return Error::unavailable(message, outcome != "none");
    }
    Error::new(code, message)
}

/// What a method returned, to be checked.
struct StoreReply {
    method: &'static str,
    value: JsValue,
}

impl StoreReply {
    fn wrong(&self, what: &str) -> Error {
        Error::new(ErrorCode::StoreError, format!("the custom store: `{}` returned {what}", self.method))
    }

    /// A member of what was returned or of a part of it.
    fn member(&self, object: &JsValue, name: &str) -> Result<JsValue> {
        if !object.is_object() {
            return Err(self.wrong("a value that is no object"));
        }
        get(object, name).map_err(|error| self.wrong(&format!("an object that cannot be read: {}", error.message)))
    }

    fn number(&self, object: &JsValue, name: &str) -> Result<u64> {
        let number = whole_number(&self.member(object, name)?).filter(|number| *number <= MAX_KEY);
        number.ok_or_else(|| self.wrong(&format!("a `{name}` that is no whole number from 0 to 2^53 - 1")))
    }

    fn text(&self, object: &JsValue, name: &str) -> Result<String> {
        let text = string(name, &self.member(object, name)?)?;
        text.ok_or_else(|| self.wrong(&format!("a `{name}` that is no string")))
    }

    fn bytes(&self, object: &JsValue, name: &str) -> Result<Bytes> {
        let value = self.member(object, name)?;
        let read = bytes(name, &value)?.map(Bytes::from);
        read.ok_or_else(|| self.wrong(&format!("a `{name}` that is no Uint8Array")))
    }

    fn list(&self, value: &JsValue) -> Result<Vec<JsValue>> {
        let read = items("the list", value, u32::MAX);
        let read = read.map_err(|error| self.wrong(&format!("a list that cannot be read: {}", error.message)))?;
        read.ok_or_else(|| self.wrong("no array"))
    }

    fn head(&self) -> Result<Option<StoredHead>> {
        if self.value.is_null() || self.value.is_undefined() {
            return Ok(None);
        }
        let revision = self.number(&self.value, "revision")?;
        Ok(Some(StoredHead { revision, value: self.bytes(&self.value, "value")? }))
    }

    fn appended(&self, expected: u64) -> Result<Appended> {
        if self.member(&self.value, "occupied")?.is_truthy() {
            return Ok(Appended::Occupied);
        }
        if !self.member(&self.value, "conflict")?.is_undefined() {
            return match self.number(&self.value, "conflict")? {
                actual if actual == expected => Err(self.wrong("a conflict with the revision that was expected")),
                actual => Ok(Appended::Conflict(actual)),
            };
        }
        match self.number(&self.value, "revision")? {
            0 => Err(self.wrong("the revision 0, which is an absent session's")),
            revision => Ok(Appended::Revision(revision)),
        }
    }

    fn record(&self, value: &JsValue) -> Result<Record> {
        record_from_js(value).map_err(|error| match error.code {
            ErrorCode::TooLarge => error,
            _ => self.wrong(&format!("a record that is wrong: {}", error.message)),
        })
    }

    /// The records of a range, in its order.
    fn records(&self, query: &Query) -> Result<Vec<Record>> {
        let records: Vec<Record> =
            self.list(&self.value)?.iter().map(|value| self.record(value)).collect::<Result<_>>()?;
        check_records(&records, query).map_err(|what| self.wrong(what))?;
        Ok(records)
    }

    /// The page of a list. `cursor` and `limit` are those that were asked for.
    fn page<T>(&self, cursor: Option<&str>, limit: usize, read: &dyn Fn(&JsValue) -> Result<T>) -> Result<Page<T>> {
        let list = self.list(&self.member(&self.value, "items")?)?;
        let next = self.member(&self.value, "cursor")?;
        let next = if next.is_null() || next.is_undefined() { None } else { Some(self.text(&self.value, "cursor")?) };
        check_page(list.len(), limit, cursor, next.as_deref()).map_err(|what| self.wrong(&what))?;
        Ok(Page { items: list.iter().map(read).collect::<Result<_>>()?, cursor: next })
    }
}

/// The batch as an object. Records that replace others come after new ones, and say so.
fn batch_to_js(batch: &Batch) -> JsValue {
    let object = Object::new();
    let put: Array = batch.put.iter().map(|record| record_to_js(record, false)).collect();
    for record in &batch.replace {
        put.push(&record_to_js(record, true));
    }
    let removed = |(table, key): &(Table, u64)| -> JsValue {
        let object = Object::new();
        set(&object, "table", &JsValue::from_str(table.as_str()));
        set(&object, "key", &number_to_js(*key));
        object.into()
    };
    let remove: Array = batch.remove.iter().map(removed).collect();
    set(&object, "head", &js_sys::Uint8Array::from(&*batch.head));
    set(&object, "channel", &batch.channel.as_deref().map_or(JsValue::NULL, JsValue::from_str));
    set(&object, "atLeast", &number_to_js(batch.at_least));
    set(&object, "put", &put);
    set(&object, "remove", &remove);
    object.into()
}

/// The query of the audit table as an object, without what it does not restrict.
fn audit_query_to_js(query: &AuditQuery, limit: usize) -> JsValue {
    let object = Object::new();
    let texts = [
        ("session", &query.session),
        ("tool", &query.tool),
        ("status", &query.status),
        ("channel", &query.channel),
        ("cursor", &query.cursor),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            set(&object, name, &JsValue::from_str(text));
        }
    }
    for (name, time) in [("since", query.since), ("until", query.until)] {
        if let Some(time) = time {
            set(&object, name, &number_to_js(time));
        }
    }
    set(&object, "limit", &number_to_js(limit as u64));
    object.into()
}

fn page_limit(limit: usize) -> usize {
    if limit == 0 { PAGE } else { limit }
}

impl LogStore for JsLogStore {
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let Some(close) = self.close.as_ref().filter(|_| !self.closed.replace(true)) else {
                self.closed.set(true);
                return Ok(());
            };
            let closed =
                self.store_timeout.settled(&named("close"), Access::MayWrite, close.call0(&self.store)).await?;
            closed.map(drop).map_err(|thrown| failure("close", &thrown))
        })
    }

    fn head<'a>(&'a self, session: &'a str) -> StoreFuture<'a, Option<StoredHead>> {
        Box::pin(async move { self.call("head", &[session.into()]).await?.head() })
    }

    fn append<'a>(
        &'a self,
        session: &'a str,
        expected: u64,
        batch: Batch,
        operation: &'a str,
    ) -> StoreFuture<'a, Appended> {
        Box::pin(async move {
            batch.check(operation, self.capabilities.max_value_bytes)?;
            let arguments = [session.into(), number_to_js(expected), batch_to_js(&batch), operation.into()];
            let reply = match self.call("append", &arguments).await {
                // The reply was lost. The operation is remembered, so a second attempt writes nothing if the first one
                // did.
                Err(error) if error.may_have_written() => self.call("append", &arguments).await.map_err(|_| error)?,
                ended => ended?,
            };
            reply.appended(expected)
        })
    }

    fn read<'a>(&'a self, session: &'a str, query: Query) -> StoreFuture<'a, Vec<Record>> {
        Box::pin(async move {
            if query.from > query.to || query.from > MAX_KEY {
                return Ok(Vec::new());
            }
            self.call("read", &[session.into(), query_to_js(&query)]).await?.records(&query)
        })
    }

    fn sessions<'a>(
        &'a self,
        cursor: Option<&'a str>,
        limit: usize,
        channel: Option<&'a str>,
    ) -> StoreFuture<'a, Page<SessionRow>> {
        Box::pin(async move {
            let limit = page_limit(limit);
            let query = Object::new();
            set(&query, "cursor", &cursor.map_or(JsValue::NULL, JsValue::from_str));
            set(&query, "limit", &number_to_js(limit as u64));
            if let Some(channel) = channel {
                set(&query, "channel", &JsValue::from_str(channel));
            }
            let reply = self.call("sessions", &[query.into()]).await?;
            reply.page(cursor, limit, &|row| {
                let head = StoredHead { revision: reply.number(row, "revision")?, value: reply.bytes(row, "head")? };
                Ok(SessionRow { id: reply.text(row, "id")?, head })
            })
        })
    }

    fn invocations<'a>(&'a self, query: &'a AuditQuery) -> StoreFuture<'a, Page<(String, Record)>> {
        Box::pin(async move {
            let limit = page_limit(query.limit);
            let reply = self.call("invocations", &[audit_query_to_js(query, limit)]).await?;
            reply.page(query.cursor.as_deref(), limit, &|row| {
                let (session, record) = (reply.text(row, "session")?, reply.record(row)?);
                let is_selected = record.table == Table::ToolInvocations
                    && record.index.as_ref().is_some_and(|index| query.matches(&session, index));
                if is_selected { Ok((session, record)) } else { Err(reply.wrong("a row that was not asked for")) }
            })
        })
    }

    fn delete_session<'a>(&'a self, session: &'a str) -> StoreFuture<'a, ()> {
        Box::pin(async move { self.call("deleteSession", &[session.into()]).await.map(drop) })
    }
}
