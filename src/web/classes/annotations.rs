//! `Session.annotate`.

use super::session::JsSession;
use crate::error::{Error, Result};
use crate::history::Annotation;
use crate::json::Json;
use crate::session::annotate;
use crate::web::conversion::convert::to_json;
use js_sys::Promise;
use wasm_bindgen::prelude::*;

#[wasm_bindgen(js_class = Session)]
impl JsSession {
    /// Replaces the metadata of a stored message.
    pub fn annotate(&self, message: String, metadata: &JsValue) -> Promise {
        let inner = self.inner.clone();
        // Read at the call: the caller may change it while this waits.
        let annotation = metadata_json(metadata).map(|metadata| Annotation::new(&message, metadata));
        let turn = inner.writes.enter();
        self.inner.context.promise(async move {
            let _turn = turn.start().await;
            annotate(&inner, &annotation?).await?;
            Ok(JsValue::UNDEFINED)
        })
    }
}

/// Returns metadata as JSON; `null` if there is none.
fn metadata_json(metadata: &JsValue) -> Result<Json> {
    if metadata.is_function() || metadata.is_symbol() || metadata.is_instance_of::<Promise>() {
        return Err(Error::invalid("a message's metadata must be JSON, not a function, a symbol or a promise"));
    }
    if metadata.is_undefined() { Ok(Json::null()) } else { to_json(metadata) }
}
