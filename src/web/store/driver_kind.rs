//! What kind of driver an object of the application is, told by its methods.

use crate::web::conversion::untrusted_value::get;
use wasm_bindgen::JsValue;

/// The names that `status()` shows of stores over drivers. A key-value driver of any other name is a "key-value" store.
#[cfg(feature = "web")]
pub(super) const STORE_NAMES: [&str; 8] =
    ["sqlite", "postgres", "redis", "localstorage", "workers-kv", "unstorage", "deno-kv", "key-value"];

/// The kinds of drivers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriverKind {
    /// A SQL database.
    Sql,
    /// A key-value service.
    KeyValue,
}

impl DriverKind {
    /// Returns the kind of a driver, and none for any other value.
    #[must_use]
    pub fn of(value: &JsValue) -> Option<Self> {
        let has = |key: &&str| get(value, key).is_ok_and(|method| method.is_function());
        if !value.is_object() {
            return None;
        }
        if has(&"transaction") {
            return Some(Self::Sql);
        }
        ["get", "list", "put"].iter().all(has).then_some(Self::KeyValue)
    }
}
