//! The conformance suite for stores of JavaScript: `rethread/testing`, a program of its own.

use crate::error::{Error, ErrorCode, Result};
use crate::store::conformance::{CHECKS, check_one, nothing_lost, write_with_retry};
use crate::store::{LogStore, StoreFuture};
use crate::web::conversion::untrusted_value::error_from_thrown;
use crate::web::promise::{await_settled, promise};
use crate::web::store::{DriverKind, JsLogStore, StoreTimeout, open_driver};
use js_sys::{Array, Function, Promise};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// Returns the names of all checks.
#[wasm_bindgen(js_name = checkNames, skip_typescript)]
#[must_use]
pub fn check_names() -> Array {
    CHECKS.iter().map(|(name, _)| JsValue::from_str(name)).collect()
}

/// Runs one check. `openStore` returns a store or a promise of one: another handle on the same data at each call. `run`
/// names the sessions. Rejects with the reason if the check fails.
#[wasm_bindgen(js_name = runCheck, skip_typescript)]
pub fn run_check(name: String, run: String, open: Function) -> Promise {
    promise(async move {
        let check = CHECKS.iter().find(|(known, _)| *known == name);
        let (name, check) = check.ok_or_else(|| Error::invalid(format!("there is no check \"{name}\"")))?;
        let open_store = move || -> StoreFuture<'static, Rc<dyn LogStore>> {
            let returned = open.call0(&JsValue::NULL);
            Box::pin(async move {
                let failed = |thrown: JsValue| error_from_thrown(ErrorCode::StoreError, "opening the store", &thrown);
                let store = await_settled(returned.map_err(failed)?).await.map_err(failed)?;
                open_store(&store).await
            })
        };
        check_one(&run, name, *check, &open_store).await?;
        Ok(JsValue::UNDEFINED)
    })
}

/// Appends `count` records of writer 0 or 1, again after each conflict. Resolves to the number of conflicts.
#[wasm_bindgen(js_name = writeWithRetry, skip_typescript)]
pub fn write_with_retries(store: JsValue, session: String, writer: u8, count: u8) -> Promise {
    promise(async move {
        let store = open_store(&store).await?;
        let conflicts = write_with_retry(&*store, &session, writer, count).await?;
        Ok(JsValue::from(u32::try_from(conflicts).unwrap_or(u32::MAX)))
    })
}

/// Rejects unless both writers' records are there, in order.
#[wasm_bindgen(js_name = nothingLost, skip_typescript)]
pub fn check_nothing_lost(store: JsValue, session: String, count: u8) -> Promise {
    promise(async move {
        nothing_lost(&*open_store(&store).await?, &session, count).await?;
        Ok(JsValue::UNDEFINED)
    })
}

async fn open_store(store: &JsValue) -> Result<Rc<dyn LogStore>> {
    let limit = StoreTimeout::default();
    match DriverKind::of(store) {
        Some(kind) => Ok(open_driver(store, kind, (false, limit)).await?.0),
        None => Ok(Rc::new(JsLogStore::open(store, false, limit)?)),
    }
}
