//! A key-value driver that is a JavaScript object.
//!
//! The object is the application's: whatever it throws or returns becomes a typed error. Its shape is `KvStore` in the
//! types.

use super::js_sql::limit;
use super::js_timer::JsTimer;
use super::store_timeout::{Access, StoreTimeout};
use crate::error::{Error, ErrorCode, Result};
use crate::store::StoreFuture;
use crate::store::kv::{HostTimer, KvCheck, KvDriver, KvEntry, KvLimits, KvPage, KvWrite};
use crate::web::conversion::convert::set;
use crate::web::conversion::untrusted_value::{bytes, get, items, member, reason_of, string};
use crate::web::trap_cleanup::TrapCleanup;
use bytes::Bytes;
use js_sys::{Array, Function, Object, Uint8Array};
use wasm_bindgen::prelude::*;

/// The names that `status()` shows of drivers. Any other driver is a "key-value" store.
const NAMES: [&str; 6] = ["redis", "localstorage", "workers-kv", "unstorage", "deno-kv", "key-value"];

/// A driver, and what it says of itself.
pub struct JsKvDriver {
    driver: JsValue,
    name: &'static str,
    limits: KvLimits,
    get: Function,
    list: Function,
    put: Function,
    delete: Function,
    get_many: Option<Function>,
    commit: Option<Function>,
    close: Option<Function>,
    has_change_feed: bool,
    store_timeout: StoreTimeout,
    _cleanup: Option<TrapCleanup>,
}

/// Reads `limits`.
fn read_limits(limits: &JsValue) -> Result<KvLimits> {
    let usual = KvLimits::default();
    let read_your_writes = get(limits, "readYourWrites").map_err(|error| Error::config(error.into_message()))?;
    Ok(KvLimits {
        max_value_bytes: limit(limits, "maxValueBytes")?.unwrap_or(usual.max_value_bytes),
        min_rewrite_ms: limit(limits, "minRewriteMs")?.map_or(usual.min_rewrite_ms, |ms| ms as u64),
        read_your_writes: read_your_writes.as_bool().unwrap_or(usual.read_your_writes),
    })
}

impl JsKvDriver {
    /// Reads the members of a driver.
    ///
    /// # Errors
    /// `config_invalid` when one is missing or of another type.
    pub fn new(driver: &JsValue, store_timeout: StoreTimeout) -> Result<Self> {
        let member = |key: &str| get(driver, key).map_err(|error| Error::config(error.into_message()));
        if member("getWithMetadata")?.is_function() {
            return Err(Error::config(
                "`store` is a namespace of Workers KV; pass `workersKv(namespace)` of rethread/cloudflare",
            ));
        }
        let wrong = |key: &str| Error::config(format!("`store`: a key-value driver's `{key}` must be a function"));
        let method = |key: &str| -> Result<Option<Function>> {
            let value = member(key)?;
            if value.is_undefined() || value.is_null() {
                return Ok(None);
            }
            value.dyn_into().map(Some).map_err(|_| wrong(key))
        };
        let required = |key: &str| method(key)?.ok_or_else(|| wrong(key));
        let name = member("name")?.as_string().unwrap_or_default();
        Ok(Self {
            name: NAMES.into_iter().find(|known| *known == name).unwrap_or("key-value"),
            limits: read_limits(&member("limits")?)?,
            get: required("get")?,
            list: required("list")?,
            put: required("put")?,
            delete: required("delete")?,
            get_many: method("getMany")?,
            commit: method("commit")?,
            close: method("close")?,
            has_change_feed: member("changes")?.is_object(),
            driver: driver.clone(),
            store_timeout,
            _cleanup: TrapCleanup::closing(driver),
        })
    }

    /// The name that `status()` shows.
    pub fn store_name(&self) -> &'static str {
        self.name
    }

    /// Calls a method; returns what it returned or the promise of it, not awaited.
    fn start(&self, method: &Function, args: &[JsValue]) -> std::result::Result<JsValue, JsValue> {
        method.apply(&self.driver, &args.iter().collect())
    }

    /// Awaits what a method returned.
    async fn settle(&self, access: Access, started: std::result::Result<JsValue, JsValue>) -> Result<JsValue> {
        let settled = self.store_timeout.settled(&format!("the {} store", self.name), access, started).await?;
        settled.map_err(|thrown| self.failure(&thrown))
    }

    /// The error for what a driver threw.
    fn failure(&self, thrown: &JsValue) -> Error {
        let reason = reason_of(thrown);
        let error = Error::new(code_of(thrown, &reason), format!("the {} store: {reason}", self.name));
        let wait = member(&member(thrown, "details"), "retryAfterMs").as_f64().filter(|wait| *wait >= 0.0);
        let Some(wait) = wait.filter(|_| error.code == ErrorCode::RateLimited) else { return error };
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        error.with(|details| {
            details.number("retryAfterMs", wait as u64);
        })
    }

    fn unexpected(&self, what: &str) -> Error {
        Error::new(ErrorCode::StoreError, format!("the driver of the {} store returned {what}", self.name))
    }

    fn read_bytes(&self, value: &JsValue) -> Result<Bytes> {
        let bytes = bytes("a value", value).map_err(|error| self.unexpected(&error.into_message()))?;
        bytes.map(Bytes::from).ok_or_else(|| self.unexpected("a value that is no Uint8Array"))
    }

    fn read_entry(&self, entry: &JsValue) -> Result<Option<KvEntry>> {
        if entry.is_null() || entry.is_undefined() {
            return Ok(None);
        }
        let value = get(entry, "value").map_err(|error| self.unexpected(&error.into_message()))?;
        let version = string("the version", &member(entry, "version"))?;
        if self.commit.is_some() && version.is_none() {
            return Err(self.unexpected("an entry without a `version`, which `commit` checks"));
        }
        Ok(Some(KvEntry { value: self.read_bytes(&value)?, version }))
    }

    fn read_items(&self, what: &str, value: &JsValue) -> Result<Vec<JsValue>> {
        let list = items(what, value, u32::MAX).map_err(|error| self.unexpected(&error.into_message()))?;
        list.ok_or_else(|| self.unexpected(&format!("no array of {what}")))
    }

    fn read_page(&self, page: &JsValue) -> Result<KvPage> {
        let mut keys = Vec::new();
        for key in self.read_items("keys", &member(page, "keys"))? {
            keys.push(key.as_string().ok_or_else(|| self.unexpected("a key that is no string"))?);
        }
        Ok(KvPage { keys, cursor: string("the cursor", &member(page, "cursor"))? })
    }
}

/// What kind of failure a driver threw: an error code of ours, the name that browsers give a full storage, or a
/// sentence of the clients of Redis.
fn code_of(thrown: &JsValue, reason: &str) -> ErrorCode {
    let code = member(thrown, "code").as_string().unwrap_or_default();
    let kept = [
        ErrorCode::Busy,
        ErrorCode::QuotaExceeded,
        ErrorCode::Closed,
        ErrorCode::TooLarge,
        ErrorCode::Unavailable,
        ErrorCode::RateLimited,
    ];
    if let Some(code) = kept.into_iter().find(|kept| kept.as_str() == code) {
        return code;
    }
    let has = |texts: &[&str]| texts.iter().any(|text| reason.contains(text));
    match member(thrown, "name").as_string().as_deref() {
        Some("QuotaExceededError") => ErrorCode::QuotaExceeded,
        _ if has(&["OOM command not allowed"]) => ErrorCode::QuotaExceeded,
        // "Socket closed unexpectedly" is a lost connection: the client makes another one.
        _ if has(&["Connection is closed", "client is closed", "Disconnects client"]) => ErrorCode::Closed,
        _ if has(&["ECONNREFUSED", "ECONNRESET", "LOADING ", "Socket closed unexpectedly"]) => ErrorCode::Unavailable,
        _ => ErrorCode::StoreError,
    }
}

fn text(text: &str) -> JsValue {
    JsValue::from_str(text)
}

fn text_or_null(value: Option<&str>) -> JsValue {
    value.map_or(JsValue::NULL, text)
}

fn bytes_to_js(value: &Bytes) -> JsValue {
    Uint8Array::from(value.as_ref()).into()
}

fn check_to_js(check: &KvCheck) -> JsValue {
    let object = Object::new();
    set(&object, "key", &text(&check.key));
    set(&object, "version", &text_or_null(check.version.as_deref()));
    object.into()
}

fn write_to_js(write: &KvWrite) -> JsValue {
    let object = Object::new();
    set(&object, "key", &text(&write.key));
    set(&object, "value", &write.value.as_ref().map_or(JsValue::NULL, bytes_to_js));
    object.into()
}

impl KvDriver for JsKvDriver {
    fn name(&self) -> &str {
        self.name
    }

    fn limits(&self) -> KvLimits {
        self.limits
    }

    fn has_commit(&self) -> bool {
        self.commit.is_some()
    }

    fn timer(&self) -> Option<&dyn HostTimer> {
        Some(&JsTimer)
    }

    fn get(&self, key: String) -> StoreFuture<'_, Option<KvEntry>> {
        Box::pin(
            async move { self.read_entry(&self.settle(Access::Reads, self.start(&self.get, &[text(&key)])).await?) },
        )
    }

    fn get_many(&self, keys: Vec<String>) -> StoreFuture<'_, Vec<Option<Bytes>>> {
        Box::pin(async move {
            let mut values = Vec::new();
            let Some(get_many) = &self.get_many else {
                // All are started before the first is awaited.
                let started: Vec<_> = keys.iter().map(|key| self.start(&self.get, &[text(key)])).collect();
                for entry in started {
                    values.push(self.read_entry(&self.settle(Access::Reads, entry).await?)?.map(|entry| entry.value));
                }
                return Ok(values);
            };
            let list: Array = keys.iter().map(|key| text(key)).collect();
            let returned = self.settle(Access::Reads, self.start(get_many, &[list.into()])).await?;
            for value in self.read_items("values", &returned)? {
                let is_absent = value.is_null() || value.is_undefined();
                values.push(if is_absent { None } else { Some(self.read_bytes(&value)?) });
            }
            if values.len() != keys.len() {
                return Err(self.unexpected(&format!("{} values for {} keys", values.len(), keys.len())));
            }
            Ok(values)
        })
    }

    fn list<'a>(&'a self, prefix: &'a str, cursor: Option<&'a str>, limit: usize) -> StoreFuture<'a, KvPage> {
        Box::pin(async move {
            let limit = JsValue::from(u32::try_from(limit).unwrap_or(u32::MAX));
            let args = [text(prefix), text_or_null(cursor), limit];
            self.read_page(&self.settle(Access::Reads, self.start(&self.list, &args)).await?)
        })
    }

    fn put(&self, key: String, value: Bytes) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.settle(Access::MayWrite, self.start(&self.put, &[text(&key), bytes_to_js(&value)])).await.map(drop)
        })
    }

    fn delete(&self, key: String) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.settle(Access::MayWrite, self.start(&self.delete, &[text(&key)])).await.map(drop) })
    }

    fn has_change_feed(&self) -> bool {
        self.has_change_feed
    }

    fn commit(&self, checks: Vec<KvCheck>, writes: Vec<KvWrite>, notice: Option<String>) -> StoreFuture<'_, bool> {
        Box::pin(async move {
            let commit = self.commit.as_ref().ok_or_else(|| self.unexpected("no `commit`"))?;
            let checks: Array = checks.iter().map(check_to_js).collect();
            let writes: Array = writes.iter().map(write_to_js).collect();
            let notice = notice.map_or(JsValue::UNDEFINED, JsValue::from);
            let applied =
                self.settle(Access::MayWrite, self.start(commit, &[checks.into(), writes.into(), notice])).await?;
            applied.as_bool().ok_or_else(|| self.unexpected("neither true nor false from `commit`"))
        })
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let Some(close) = &self.close else { return Ok(()) };
            self.settle(Access::MayWrite, self.start(close, &[])).await.map(drop)
        })
    }
}
