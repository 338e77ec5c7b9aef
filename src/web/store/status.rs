//! The storage status of the browser.

use crate::error::{Error, ErrorCode, Result};
use js_sys::Reflect;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{StorageEstimate, StorageManager};

/// The storage status of an origin. A field is none if the browser does not report it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageStatus {
    /// The browser promised not to evict the data.
    pub persisted: Option<bool>,
    /// Bytes in use by this origin.
    pub usage: Option<f64>,
    /// Bytes that this origin may use. Browsers round and pad both: show them to people, do not decide by them.
    pub quota: Option<f64>,
}

/// Returns the storage status. Never fails.
pub async fn storage_status() -> StorageStatus {
    let Some(storage) = manager() else { return StorageStatus::default() };
    let persisted = match storage.persisted() {
        Ok(promise) => JsFuture::from(promise).await.ok().and_then(|answer| answer.as_bool()),
        Err(_) => None,
    };
    let estimate: Option<StorageEstimate> = match storage.estimate() {
        Ok(promise) => JsFuture::from(promise).await.ok().map(JsCast::unchecked_into),
        Err(_) => None,
    };
    let bytes = |key: &str| {
        estimate.as_ref().and_then(|estimate| Reflect::get(estimate, &key.into()).ok()).and_then(|bytes| bytes.as_f64())
    };
    StorageStatus { persisted, usage: bytes("usage"), quota: bytes("quota") }
}

/// Asks the browser not to evict this origin's data. Some browsers ask the user. Returns true if the browser promised
/// it.
///
/// # Errors
/// `store_error` where the browser cannot be asked: in a worker, outside of a secure context, or on an old browser.
pub async fn persist() -> Result<bool> {
    let cannot = |why: &str| {
        Error::new(ErrorCode::StoreError, format!("the browser cannot be asked to keep its storage: {why}"))
    };
    let storage = manager()
        .ok_or_else(|| cannot("there is no navigator.storage here; it needs a page with https or localhost"))?;
    let promise = storage
        .persist()
        .map_err(|_| cannot("navigator.storage.persist is missing; call it from a page, not from a worker"))?;
    let answer = JsFuture::from(promise).await.map_err(|_| cannot("navigator.storage.persist failed"))?;
    Ok(answer.as_bool().unwrap_or(false))
}

fn manager() -> Option<StorageManager> {
    let navigator = Reflect::get(&js_sys::global(), &JsValue::from_str("navigator")).ok()?;
    let storage = Reflect::get(&navigator, &JsValue::from_str("storage")).ok()?;
    storage.is_object().then(|| storage.unchecked_into())
}
