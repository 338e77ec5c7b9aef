//! Stores over a driver that the application passes as an object.

use super::js_kv::JsKvDriver;
use super::js_sql::JsSqlDriver;
use super::{DriverKind, StoreTimeout};
use crate::error::{Error, ErrorCode, Result};
use crate::store::LogStore;
use crate::store::kv::{KvDriver, KvStore, WriteOnceStore};
use crate::store::sql::SqlStore;
use crate::web::conversion::untrusted_value::member;
use js_sys::{Function, Uint8Array};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Opens the store of a driver, and returns it with the name that `status()` shows. With `strict` it must promise that
/// what it has acknowledged is on the disk. `limit` holds for each call of one of the driver's methods.
///
/// # Errors
/// `config_invalid` for a driver that is incomplete or cannot keep the promise, and the store's own.
pub async fn open_driver(
    driver: &JsValue,
    kind: DriverKind,
    (strict, limit): (bool, StoreTimeout),
) -> Result<(Rc<dyn LogStore>, &'static str)> {
    match kind {
        DriverKind::Sql => {
            let driver = JsSqlDriver::new(driver, limit)?;
            driver.set_durability(strict).await?;
            let store = SqlStore::open(Rc::new(driver)).await?;
            let name = store.dialect().as_str();
            Ok((Rc::new(store), name))
        }
        DriverKind::KeyValue => open_kv(Rc::new(JsKvDriver::new(driver, limit)?), strict).await,
    }
}

/// No key-value service promises that what is acknowledged is on the disk.
async fn open_kv(driver: Rc<JsKvDriver>, strict: bool) -> Result<(Rc<dyn LogStore>, &'static str)> {
    let name = driver.store_name();
    if strict {
        return Err(Error::config(format!(
            "`durability`: the {name} store cannot promise \"strict\"; open it with \"relaxed\", or take a SQL store"
        )));
    }
    if driver.has_commit() {
        return Ok((Rc::new(KvStore::open(driver).await?), name));
    }
    Ok((Rc::new(WriteOnceStore::open(driver, writer_name()?).await?), name))
}

/// Returns a name that no other writer has. The programs with stores have no other source of randomness.
fn writer_name() -> Result<String> {
    let bytes = Uint8Array::new_with_length(16);
    let crypto = member(&js_sys::global(), "crypto");
    let missing =
        || Error::new(ErrorCode::StoreError, "there is no `crypto.getRandomValues` here, which names the writer");
    let fill: Function = member(&crypto, "getRandomValues").dyn_into().map_err(|_| missing())?;
    fill.call1(&crypto, &bytes).map_err(|_| missing())?;
    Ok(bytes.to_vec().iter().map(|byte| format!("{byte:02x}")).collect())
}
