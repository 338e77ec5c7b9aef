//! What the view of a session keeps between snapshots.

use crate::web::conversion::view_message::ViewMessage;
use wasm_bindgen::JsValue;

/// Number of messages that are shown at first, and at least so many more after each `older`.
pub const WINDOW: usize = 100;

/// The last snapshot and its messages.
pub struct ViewState {
    pub snapshot: Option<JsValue>,
    pub messages: Vec<ViewMessage>,
    /// The questions that wait.
    pub queued: Vec<ViewMessage>,
    pub window: usize,
    /// The store was closed: the snapshot stays as it is.
    pub released: bool,
}

impl Default for ViewState {
    fn default() -> Self {
        Self { snapshot: None, messages: Vec::new(), queued: Vec::new(), window: WINDOW, released: false }
    }
}

impl ViewState {
    /// Drops the snapshot, because something changed.
    pub fn invalidate(&mut self) {
        if !self.released {
            self.snapshot = None;
        }
    }

    /// Drops the snapshot and its messages, because the history was replaced.
    pub fn clear(&mut self) {
        *self = Self { window: self.window, ..Self::default() };
    }
}
