//! Stores that the application passes as an object, told apart by their methods.

use super::js_kv::{JsKvDriver, open_kv_store};
use super::store_timeout::StoreTimeout;
use super::{JsLogStore, JsSqlDriver};
use crate::error::{Error, Result};
use crate::store::LogStore;
use crate::store::sql::SqlStore;
use std::rc::Rc;
use wasm_bindgen::JsValue;

/// Opens the store of an object, and returns it with the name that `status()` shows. With `strict` it must promise that
/// what it has acknowledged is on the disk. `limit` holds for each call of one of its methods.
///
/// # Errors
/// `config_invalid` for an object that is no store or cannot keep the promise, and the store's own.
pub async fn open_js_store(
    object: &JsValue,
    strict: bool,
    limit: StoreTimeout,
) -> Result<(Rc<dyn LogStore>, &'static str)> {
    if JsSqlDriver::is_driver(object) {
        let driver = JsSqlDriver::new(object, limit)?;
        driver.set_durability(strict).await?;
        let store = SqlStore::open(Rc::new(driver)).await?;
        let name = store.dialect().as_str();
        return Ok((Rc::new(store), name));
    }
    if JsKvDriver::is_driver(object) {
        return open_kv_store(object, strict, limit).await;
    }
    if JsLogStore::is_log_store(object) {
        let store = JsLogStore::new(object, limit)?;
        if strict {
            JsLogStore::require_strict(object)?;
        }
        return Ok((Rc::new(store), "custom"));
    }
    Err(Error::config(
        "`store` must be an object with the methods of a `SqlDriver` (`transaction`), of a `KvStore` (`get`, `put`, …) or of a `LogStore` (`append`, `read`, …)",
    ))
}
