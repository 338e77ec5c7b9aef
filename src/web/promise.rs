//! What an exported method gives: a promise, and every failure its rejection.

use crate::error::Result;
use js_sys::{Function, Promise};
use std::future::Future;
use std::pin::Pin;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::{future_to_promise, spawn_local};

/// Work in one shape, whatever it does: what drives it is compiled once.
pub type Work<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A promise of what the work gives.
pub fn promise(work: Work<'static, Result<JsValue>>) -> Promise {
    future_to_promise(async { Ok(work.await?) })
}

/// A promise, and the function that resolves it: a promise hands that out as it is made.
pub fn deferred() -> (Promise, Option<Function>) {
    let mut resolve = None;
    let promise = Promise::new(&mut |given, _| resolve = Some(given));
    (promise, resolve)
}

/// Does work that nobody waits for.
pub fn in_background(work: Work<'static, ()>) {
    spawn_local(work);
}
