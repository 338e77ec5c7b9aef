//! Orders the writes of a session: each one is joined to the history after the one before.

use super::promise::deferred;
use js_sys::{Function, Promise};
use std::cell::RefCell;
use wasm_bindgen::JsValue;
use wasm_bindgen_futures::JsFuture;

/// Lets the writes of a session through one at a time, in the order in which they entered.
#[derive(Default)]
pub struct WriteQueue {
    /// Resolves when the last write that entered has ended.
    last: RefCell<Option<Promise>>,
}

impl WriteQueue {
    /// Takes the next place in the queue.
    pub fn enter(&self) -> WriteTurn {
        let (ended, end) = deferred();
        WriteTurn { before: self.last.replace(Some(ended)), end }
    }
}

/// A place in the queue, until it is dropped.
pub struct WriteTurn {
    before: Option<Promise>,
    end: Option<Function>,
}

impl WriteTurn {
    /// Waits for the writes before this one.
    pub async fn start(mut self) -> Self {
        if let Some(before) = self.before.take() {
            // A resolved promise does not fail.
            let _ = JsFuture::from(before).await;
        }
        self
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        if let Some(end) = &self.end {
            // Resolving a promise does not throw.
            let _ = end.call0(&JsValue::NULL);
        }
    }
}
