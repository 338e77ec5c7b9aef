//! The host's clock, timers and randomness, for stores that wait before they try again.

use crate::clock::Ms;
use crate::store::kv::HostTimer;
use crate::web::conversion::untrusted_value::member;
use crate::web::promise::deferred;
use js_sys::Function;
use std::future::Future;
use std::pin::Pin;
use wasm_bindgen::prelude::*;
use wasm_bindgen_futures::JsFuture;

/// The timers of the platform. A Node process stays for them, unlike for those of background work.
pub struct JsTimer;

impl HostTimer for JsTimer {
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn now(&self) -> Ms {
        js_sys::Date::now() as Ms // proof: only the host adapter may read the clock
    }

    fn sleep(&self, ms: Ms) -> Pin<Box<dyn Future<Output = bool> + '_>> {
        Box::pin(async move {
            let timer = member(&js_sys::global(), "setTimeout").dyn_into::<Function>();
            let (Ok(timer), (over, Some(resolve))) = (timer, deferred()) else { return false };
            // A timer with a longer time fires at once.
            let ms = i32::try_from(ms).unwrap_or(i32::MAX);
            timer.call2(&JsValue::UNDEFINED, &resolve, &ms.into()).is_ok() && JsFuture::from(over).await.is_ok()
        })
    }

    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    fn random(&self) -> u32 {
        (js_sys::Math::random() * f64::from(u32::MAX)) as u32 // proof: only the host adapter may read randomness
    }
}
