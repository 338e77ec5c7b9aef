//! Orders the writes of a session: each one is joined to the history after the one before.

use super::signal::Signal;
use std::cell::RefCell;

/// Lets the writes of a session through one at a time, in the order in which they entered.
#[derive(Default)]
pub struct WriteQueue {
    /// Given when the last write that entered has ended.
    last: RefCell<Option<Signal>>,
}

impl WriteQueue {
    /// Takes the next place in the queue.
    pub fn enter(&self) -> WriteTurn {
        let end = Signal::default();
        WriteTurn { before: self.last.replace(Some(end.clone())), end }
    }
}

/// A place in the queue, until it is dropped.
pub struct WriteTurn {
    before: Option<Signal>,
    end: Signal,
}

impl WriteTurn {
    /// Waits for the writes before this one.
    pub async fn start(mut self) -> Self {
        if let Some(before) = self.before.take() {
            before.given().await;
        }
        self
    }
}

impl Drop for WriteTurn {
    fn drop(&mut self) {
        self.end.give();
    }
}
