//! Work that one caller does while others wait for its end.

use super::signal::Signal;
use std::cell::RefCell;

/// Whether the work is under way, and who waits for its end.
#[derive(Default)]
pub struct SharedTask {
    /// Given when the work that is under way has ended; none if none is.
    end: RefCell<Option<Signal>>,
}

impl SharedTask {
    /// Returns true if the caller is to do the work now, and then to call [`end`](Self::end).
    pub fn try_begin(&self) -> bool {
        let mut end = self.end.borrow_mut();
        let is_free = end.is_none();
        end.get_or_insert_default();
        is_free
    }

    /// Returns true if the caller is to do the work now. Otherwise waits for the end of the work that is under way, and
    /// returns false.
    pub async fn begin(&self) -> bool {
        if self.try_begin() {
            return true;
        }
        self.ended().await;
        false
    }

    /// Waits for the end of the work that is under way, if any.
    pub async fn ended(&self) {
        let end = self.end.borrow().clone();
        if let Some(end) = end {
            end.given().await;
        }
    }

    /// Ends the work, and wakes who waits for it.
    pub fn end(&self) {
        if let Some(end) = self.end.take() {
            end.give();
        }
    }
}
