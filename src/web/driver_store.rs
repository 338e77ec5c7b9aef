//! The program of stores: SQL and key-value stores over drivers of JavaScript. The complete program calls them through
//! `store/program_link.rs`.

use crate::error::{Error, ErrorCode, Result};
use crate::store::LogStore;
use crate::store::remote::{SelectorLink, answer, store_facts};
use crate::web::conversion::untrusted_value::bytes;
use crate::web::promise::{done, promise};
use crate::web::store::{DriverKind, StoreTimeout, open_driver};
use js_sys::{Function, Promise, Uint8Array};
use std::rc::Rc;
use wasm_bindgen::prelude::*;

/// An open store.
#[wasm_bindgen(js_name = DriverStore, skip_typescript)]
pub struct JsDriverStore {
    store: Rc<dyn LogStore>,
    kind: &'static str,
}

/// Opens the store of a driver. `timeout_ms` limits each call of the driver.
#[wasm_bindgen(js_name = openDriverStore, skip_typescript)]
pub fn open_driver_store(driver: JsValue, strict: bool, timeout_ms: f64) -> Promise {
    promise(async move {
        let kind = DriverKind::of(&driver).ok_or_else(|| Error::config("`store` is no driver any more"))?;
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
        let limit = StoreTimeout(timeout_ms as u64);
        let (store, kind) = open_driver(&driver, kind, (strict, limit)).await?;
        Ok(JsDriverStore { store, kind }.into())
    })
}

#[wasm_bindgen(js_class = DriverStore)]
impl JsDriverStore {
    /// What the store says of itself.
    pub fn facts(&self) -> Uint8Array {
        Uint8Array::from(store_facts(&*self.store, self.kind).as_slice())
    }

    /// Answers a call. `responder` answers questions about it.
    pub fn call(&self, call: Vec<u8>, responder: Option<Function>) -> Promise {
        let store = self.store.clone();
        promise(async move {
            let reply = answer(&*store, call.into(), responder.map(selector_link)).await?;
            Ok(Uint8Array::from(reply.as_slice()).into())
        })
    }

    /// Closes the store, and what the driver opened.
    pub fn close(&self) -> Promise {
        let store = self.store.clone();
        done(async move { store.close().await })
    }
}

fn selector_link(responder: Function) -> SelectorLink {
    Box::new(move |question| -> Result<bytes::Bytes> {
        let stopped = || Error::new(ErrorCode::Internal, "the program that reads has stopped");
        let question = Uint8Array::from(question.as_slice());
        let answered = responder.call1(&JsValue::NULL, &question).map_err(|_| stopped())?;
        bytes("the selection", &answered)?.map(Into::into).ok_or_else(stopped)
    })
}
