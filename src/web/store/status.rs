//! What the browser says of its storage.

use crate::error::{Code, Error, Result};
use js_sys::Reflect;
use wasm_bindgen::{JsCast, JsValue};
use wasm_bindgen_futures::JsFuture;
use web_sys::{StorageEstimate, StorageManager};

/// What the browser says of its storage. Absent where it does not say.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct StorageStatus {
    /// Whether the browser promised not to evict it.
    pub persisted: Option<bool>,
    /// Bytes in use by this origin.
    pub usage: Option<f64>,
    /// Bytes that this origin may use. Browsers round and pad both: show them to people, decide nothing by them.
    pub quota: Option<f64>,
}

/// Asks the browser. Never fails: what it refuses to say is absent.
pub async fn storage_status() -> StorageStatus {
    let Some(storage) = manager() else { return StorageStatus::default() };
    let persisted = match storage.persisted() {
        Ok(promise) => JsFuture::from(promise).await.ok().and_then(|answer| answer.as_bool()),
        Err(_) => None, // absent where the browser does not say
    };
    let estimate: Option<StorageEstimate> = match storage.estimate() {
        Ok(promise) => JsFuture::from(promise).await.ok().map(JsCast::unchecked_into),
        Err(_) => None, // likewise
    };
    let bytes = |key: &str| {
        estimate.as_ref().and_then(|estimate| Reflect::get(estimate, &key.into()).ok()).and_then(|bytes| bytes.as_f64())
    };
    StorageStatus { persisted, usage: bytes("usage"), quota: bytes("quota") }
}

/// Asks the browser to keep this origin's data when space runs short. Some ask the user; gives whether it promised.
///
/// # Errors
/// `store_error` where the browser cannot be asked: in a worker, outside of a secure context, or on an old browser.
pub async fn persist() -> Result<bool> {
    let cannot =
        |why: &str| Error::new(Code::StoreError, format!("the browser cannot be asked to keep its storage: {why}"));
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
