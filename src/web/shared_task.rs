//! Work that one caller does while others wait for its end.

use super::promise::deferred;
use js_sys::Function;
use std::cell::{Cell, RefCell};
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

/// Whether the work is under way, and who waits for its end.
#[derive(Default)]
pub struct SharedTask {
    is_running: Cell<bool>,
    /// Resolve functions of the promises of those who wait.
    waiting: RefCell<Vec<Function>>,
}

impl SharedTask {
    /// Returns true if the caller is to do the work now, and then to call [`end`](Self::end).
    pub fn try_begin(&self) -> bool {
        !self.is_running.replace(true)
    }

    /// Returns true if the caller is to do the work now. Otherwise waits for the end of the work that is under way, and returns false.
    pub async fn begin(&self) -> bool {
        if self.try_begin() {
            return true;
        }
        self.ended().await;
        false
    }

    /// Waits for the end of the work that is under way, if any.
    pub async fn ended(&self) {
        if self.is_running.get() {
            let (ended, resolve) = deferred();
            self.waiting.borrow_mut().extend(resolve);
            // A resolved promise does not fail.
            let _ = JsFuture::from(ended).await;
        }
    }

    /// Ends the work, and wakes who waits for it.
    pub fn end(&self) {
        self.is_running.set(false);
        for resolve in self.waiting.take() {
            // Resolving a promise does not throw.
            let _ = resolve.call0(&JsValue::NULL);
        }
    }
}
