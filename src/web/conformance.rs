//! The conformance suite for stores of JavaScript: a build of its own, for tests.

use super::convert::set;
use super::foreign::error_from_thrown;
use super::promise::{await_settled, promise};
use super::store::JsSqlDriver;
use crate::error::{ErrorCode, Result};
use crate::store::conformance::{CHECKS, check_one, nothing_lost, write_with_retry};
use crate::store::sql::SqlStore;
use crate::store::{LogStore, StoreFuture};
use js_sys::{Array, Function, Object, Promise};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

async fn open(driver: &JsValue) -> Result<Rc<dyn LogStore>> {
    let driver = JsSqlDriver::new(driver)?;
    Ok(Rc::new(SqlStore::open(Rc::new(driver)).await?))
}

/// Runs every check. `open_driver` returns a driver or a promise of one: another connection to the same data at each call. `run` names the sessions.
/// Resolves to `{ name, error }` of each, where `error` is null if it passed.
#[wasm_bindgen(js_name = checkSqlStore, skip_typescript)]
pub fn check_sql_store(open_driver: Function, run: String) -> Promise {
    promise(async move {
        let open_store = move || -> StoreFuture<'static, Rc<dyn LogStore>> {
            let returned = open_driver.call0(&JsValue::NULL);
            Box::pin(async move {
                let failed = |error: JsValue| error_from_thrown(ErrorCode::StoreError, "opening a driver", &error);
                let driver = await_settled(returned.map_err(failed)?).await.map_err(failed)?;
                open(&driver).await
            })
        };
        let results = Array::new();
        for (name, check) in CHECKS {
            let error = check_one(&run, name, *check, &open_store).await.err();
            let result = Object::new();
            set(&result, "name", &JsValue::from_str(name));
            let error = error.map_or(JsValue::NULL, |error| JsValue::from_str(&error.to_string()));
            set(&result, "error", &error);
            results.push(&result);
        }
        Ok(results.into())
    })
}

/// Appends `count` records of writer 0 or 1, again after each conflict. Resolves to the number of conflicts.
#[wasm_bindgen(js_name = writeWithRetry, skip_typescript)]
pub fn write_with_retries(driver: JsValue, session: String, writer: u8, count: u8) -> Promise {
    promise(async move {
        let store = open(&driver).await?;
        let conflicts = write_with_retry(&*store, &session, writer, count).await?;
        Ok(JsValue::from(u32::try_from(conflicts).unwrap_or(u32::MAX)))
    })
}

/// Rejects unless both writers' records are there, in order.
#[wasm_bindgen(js_name = nothingLost, skip_typescript)]
pub fn check_nothing_lost(driver: JsValue, session: String, count: u8) -> Promise {
    promise(async move {
        nothing_lost(&*open(&driver).await?, &session, count).await?;
        Ok(JsValue::UNDEFINED)
    })
}
