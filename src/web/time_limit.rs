//! Limits how long something is waited for.

use super::foreign::member;
use super::promise::{deferred, in_background};
use crate::clock::Ms;
use js_sys::{Array, Function, Object, Promise};
use std::cell::RefCell;
use std::pin::Pin;
use std::rc::Rc;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Work that goes on when nobody waits for it any more.
pub type LimitedWork = Pin<Box<dyn Future<Output = crate::error::Result<()>>>>;

/// Awaits a promise for at most `ms` milliseconds. Returns none if it has not settled by then; on a platform without timers, it is waited for
/// as long as it takes. The timer keeps a Node process alive: whoever waits gets an answer.
pub async fn settled_within(awaited: &Promise, ms: Ms) -> Option<Result<JsValue, JsValue>> {
    let (expired, expire) = deferred();
    let marker = JsValue::from(Object::new());
    let timer = expire.and_then(|expire| {
        let set_timer = member(&js_sys::global(), "setTimeout").dyn_into::<Function>().ok()?;
        // A timer with a longer time fires at once.
        let ms = i32::try_from(ms).unwrap_or(i32::MAX);
        set_timer.call3(&JsValue::UNDEFINED, &expire, &ms.into(), &marker).ok()
    });
    let settled = JsFuture::from(Promise::race(&Array::of2(awaited, &expired))).await;
    if let (Some(timer), Ok(clear)) = (timer, member(&js_sys::global(), "clearTimeout").dyn_into::<Function>()) {
        // A timer that cannot be cleared resolves a promise that nobody awaits.
        let _ = clear.call1(&JsValue::UNDEFINED, &timer);
    }
    if settled.as_ref().is_ok_and(|value| Object::is(value, &marker)) { None } else { Some(settled) }
}

/// Does work and returns its outcome; none if it has not ended after `ms` milliseconds. It goes on then.
pub async fn outcome_within(work: LimitedWork, ms: Ms) -> Option<crate::error::Result<()>> {
    let outcome = Rc::new(RefCell::new(None));
    let (ended, end) = deferred();
    let kept = outcome.clone();
    in_background(async move {
        kept.replace(Some(work.await));
        if let Some(end) = end {
            // Resolving a promise does not throw.
            let _ = end.call0(&JsValue::NULL);
        }
    });
    settled_within(&ended, ms).await;
    outcome.take()
}
