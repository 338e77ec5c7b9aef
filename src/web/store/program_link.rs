//! The link to a store in the program of stores: `DriverStore` of js/driver-store.js.

use super::driver_kind::STORE_NAMES;
use super::store_timeout::StoreTimeout;
use crate::error::{Error, ErrorCode, Result};
use crate::json::Json;
use crate::store::remote::{RemoteStore, Responder, StoreLink};
use crate::store::{LogStore, StoreFuture};
use crate::web::conversion::untrusted_value::{member, reason_of};
use crate::web::promise::{await_settled, in_background};
use crate::web::trap_cleanup::TrapCleanup;
use bytes::Bytes;
use js_sys::{Array, Function, JSON, Promise, Uint8Array};
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// What a function of JavaScript returned or threw.
type Called<T> = std::result::Result<T, JsValue>;

#[wasm_bindgen]
extern "C" {
    /// A store in an instance of the program of stores.
    type DriverStore;

    #[wasm_bindgen(method, catch)]
    fn facts(this: &DriverStore) -> Called<Uint8Array>;

    /// `call` is a view of this program's memory: it is copied into that of the other one before anything else runs.
    #[wasm_bindgen(method, catch)]
    fn call(this: &DriverStore, call: &[u8], responder: Option<&Function>) -> Called<Promise>;

    #[wasm_bindgen(method, catch)]
    fn close(this: &DriverStore) -> Called<Promise>;
}

/// Opens the store of a driver in the program of stores, which `open_driver_store` loads. Returns it with the name that
/// `status()` shows.
///
/// # Errors
/// The store's own, and `not_initialized` if the program cannot be loaded.
pub async fn open_in_program(
    driver: &JsValue,
    (strict, limit): (bool, StoreTimeout),
    open_driver_store: &Function,
) -> Result<(Rc<dyn LogStore>, &'static str)> {
    #[allow(clippy::cast_precision_loss)]
    let arguments = Array::of3(driver, &strict.into(), &JsValue::from_f64(limit.0 as f64));
    let opening = open_driver_store.apply(&JsValue::NULL, &arguments).map_err(|thrown| error_of_package(&thrown))?;
    let store: DriverStore = await_settled(opening).await.map_err(|thrown| error_of_package(&thrown))?.unchecked_into();
    let facts = store.facts().map_err(|thrown| error_of_package(&thrown))?;
    let store = RemoteStore::new(ProgramLink::new(store), facts.to_vec().into())?;
    let name = STORE_NAMES.into_iter().find(|name| *name == store.kind()).unwrap_or("key-value");
    Ok((Rc::new(store), name))
}

/// Returns the error that the other program or its loader threw, with its code and details; `internal` for any other
/// value.
fn error_of_package(thrown: &JsValue) -> Error {
    let code = member(thrown, "code").as_string();
    let code = ErrorCode::ALL.iter().copied().find(|known| Some(known.as_str()) == code.as_deref());
    let mut error = Error::new(code.unwrap_or(ErrorCode::Internal), reason_of(thrown));
    let details = JSON::stringify(&member(thrown, "details")).ok().and_then(|text| text.as_string());
    error.details = details.filter(|text| text != "{}").and_then(|text| Json::parse(&text).ok());
    error
}

struct ProgramLink {
    store: DriverStore,
    /// The store is closed if this instance stops.
    _cleanup: Option<TrapCleanup>,
}

impl ProgramLink {
    fn new(store: DriverStore) -> Self {
        let cleanup = TrapCleanup::calling(store.as_ref(), "release");
        Self { store, _cleanup: cleanup }
    }

    async fn settled(started: Called<Promise>) -> Result<JsValue> {
        let settled = match started {
            Ok(promise) => JsFuture::from(promise).await,
            Err(thrown) => Err(thrown),
        };
        settled.map_err(|thrown| error_of_package(&thrown))
    }
}

impl StoreLink for ProgramLink {
    fn call(&self, call: Vec<u8>, responder: Option<Responder>) -> StoreFuture<'_, Bytes> {
        Box::pin(async move {
            // Kept until the reply is there.
            let responder = responder.map(|respond| {
                Closure::<dyn Fn(Uint8Array) -> Uint8Array>::new(move |question: Uint8Array| {
                    Uint8Array::from(respond(question.to_vec().into()).as_slice())
                })
            });
            let function: Option<&Function> = responder.as_ref().map(|responder| responder.as_ref().unchecked_ref());
            let reply: Uint8Array = Self::settled(self.store.call(&call, function)).await?.unchecked_into();
            Ok(reply.to_vec().into())
        })
    }

    fn send(&self, call: Vec<u8>) {
        let started = self.store.call(&call, None);
        in_background(async move { Self::settled(started).await.map_or((), drop) });
    }

    fn close(&self) -> StoreFuture<'_, ()> {
        Box::pin(async move { Self::settled(self.store.close()).await.map(drop) })
    }
}
