//! The runs of a tab that wait for the run before them.

use super::signal::Signal;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The sends of this tab that wait for the run before them.
#[derive(Default)]
pub struct RunQueue {
    waiting: RefCell<VecDeque<Signal>>,
    /// Given when the store is closed.
    pub closed: Signal,
}

impl RunQueue {
    /// Waits until the run before it is over, or the store is closed.
    pub async fn wait(&self) {
        let admitted = Signal::default();
        self.waiting.borrow_mut().push_back(admitted.clone());
        self.closed.unless_given(admitted.given()).await;
    }

    /// Lets the next one begin.
    pub fn admit_next(&self) {
        let next = self.waiting.borrow_mut().pop_front();
        if let Some(next) = next {
            next.give();
        }
    }

    /// Ends all waits, because the store is closed.
    pub fn close(&self) {
        self.waiting.take();
        self.closed.give();
    }
}
