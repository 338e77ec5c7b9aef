//! Limits how long something is waited for.

use crate::clock::Ms;
use crate::web::conversion::untrusted_value::member;
use crate::web::promise::deferred;
use js_sys::{Array, Function, Object, Promise};
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// Awaits a promise for at most `ms` milliseconds. Returns none if it has not settled by then; on a platform without
/// timers, it is waited for as long as it takes. The timer keeps a Node process alive: whoever waits gets an answer.
pub async fn settled_within(awaited: &Promise, ms: Ms) -> Option<Result<JsValue, JsValue>> {
    let (expired, expire) = deferred();
    let marker = JsValue::from(Object::new());
    let timer = expire.and_then(|expire| TimeLimit::start(&expire, ms, &marker));
    let settled = JsFuture::from(Promise::race(&Array::of2(awaited, &expired))).await;
    drop(timer);
    if settled.as_ref().is_ok_and(|value| Object::is(value, &marker)) { None } else { Some(settled) }
}

/// A timer that keeps a Node process alive until it is dropped.
pub struct TimeLimit {
    timer: JsValue,
    expire: Function,
}

impl TimeLimit {
    /// Waits for `ms` milliseconds. Returns false at once on a platform without timers.
    pub async fn over(ms: Ms) -> bool {
        let (expired, Some(expire)) = deferred() else { return false };
        let Some(_timer) = Self::start(&expire, ms, &JsValue::UNDEFINED) else { return false };
        JsFuture::from(expired).await.is_ok()
    }

    /// Calls `expire` with the value after `ms` milliseconds.
    fn start(expire: &Function, ms: Ms, value: &JsValue) -> Option<Self> {
        let set_timer = member(&js_sys::global(), "setTimeout").dyn_into::<Function>().ok()?;
        // A timer with a longer time fires at once.
        let ms = i32::try_from(ms).unwrap_or(i32::MAX);
        let timer = set_timer.call3(&JsValue::UNDEFINED, expire, &ms.into(), value).ok()?;
        Some(Self { timer, expire: expire.clone() })
    }
}

impl Drop for TimeLimit {
    fn drop(&mut self) {
        if let Ok(clear) = member(&js_sys::global(), "clearTimeout").dyn_into::<Function>() {
            // A timer that cannot be cleared resolves a promise that nobody awaits.
            let _ = clear.call1(&JsValue::UNDEFINED, &self.timer);
        }
        // What waits for the promise is kept until it is resolved. Resolving does not throw.
        let _ = self.expire.call0(&JsValue::UNDEFINED);
    }
}
