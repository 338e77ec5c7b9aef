//! The read of a session's older records: one at a time.

use super::promise::deferred;
use js_sys::Function;
use std::cell::{Cell, RefCell};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

/// The read of older records that is under way, if any.
#[derive(Default)]
pub struct OlderRead {
    is_reading: Cell<bool>,
    /// Resolve functions of the promises of those who wait for it.
    waiting: RefCell<Vec<Function>>,
}

impl OlderRead {
    /// Returns true if the caller is to read now. Otherwise waits for the read that is under way, and returns false.
    pub async fn begin(&self) -> bool {
        if !self.is_reading.replace(true) {
            return true;
        }
        let (ended, resolve) = deferred();
        self.waiting.borrow_mut().extend(resolve);
        // A resolved promise does not fail.
        let _ = JsFuture::from(ended).await;
        false
    }

    /// Ends the read, and wakes who waits for it.
    pub fn end(&self) {
        self.is_reading.set(false);
        for resolve in self.waiting.take() {
            // Resolving a promise does not throw.
            let _ = resolve.call0(&JsValue::NULL);
        }
    }
}
