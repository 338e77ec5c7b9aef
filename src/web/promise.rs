//! Promises of exported methods, and promises to await.

use crate::error::Result;
use crate::session::StoreContext;
use js_sys::{Function, Promise};
use std::pin::Pin;
use std::rc::Rc;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{JsFuture, future_to_promise, spawn_local};

/// The work of an exported method. Boxed, so that what makes a promise of it is in the wasm once and not once for each
/// method.
pub type PromisedWork = Pin<Box<dyn Future<Output = Result<JsValue>>>>;

/// Runs a future; the promise resolves to its value or rejects with its error.
pub fn promise(work: impl Future<Output = Result<JsValue>> + 'static) -> Promise {
    boxed_promise(Box::pin(work))
}

fn boxed_promise(work: PromisedWork) -> Promise {
    future_to_promise(async { Ok(work.await?) })
}

/// As [`promise`], of work without a value.
pub fn done(work: impl Future<Output = Result<()>> + 'static) -> Promise {
    promise(async { work.await.map(|()| JsValue::UNDEFINED) })
}

impl StoreContext {
    /// Runs a future of an exported method; the promise rejects with `closed` if the store is closed.
    pub fn promise(self: &Rc<Self>, work: impl Future<Output = Result<JsValue>> + 'static) -> Promise {
        self.boxed_promise(Box::pin(work))
    }

    fn boxed_promise(self: &Rc<Self>, work: PromisedWork) -> Promise {
        let context = self.clone();
        promise(async move {
            context.check_open()?;
            work.await
        })
    }
}

/// Returns a pending promise and the function that resolves it.
pub fn deferred() -> (Promise, Option<Function>) {
    let mut resolve = None;
    let promise = Promise::new(&mut |given, _| resolve = Some(given));
    (promise, resolve)
}

/// Returns a promise that adopts the return value of a callback, since a getter for `then` may throw.
pub fn adopted(returned: &JsValue) -> Promise {
    let (promise, resolve) = deferred();
    if let Some(resolve) = resolve {
        // Resolving a promise does not throw.
        let _ = resolve.call1(&JsValue::NULL, returned);
    }
    promise
}

/// Awaits the return value of a function, a store's driver or the platform. Functions of the application may never
/// answer, so `PendingCallbacks` ends the wait for them.
pub async fn await_settled(returned: JsValue) -> std::result::Result<JsValue, JsValue> {
    JsFuture::from(adopted(&returned)).await
}

/// Runs a future that nobody awaits.
pub fn in_background(work: impl Future<Output = ()> + 'static) {
    let work: Pin<Box<dyn Future<Output = ()>>> = Box::pin(work);
    spawn_local(work);
}
