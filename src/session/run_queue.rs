//! The runs of a tab that wait for the run before them.

use super::signal::Signal;
use crate::history::History;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;

/// The sends of this tab that wait for the run before them.
#[derive(Default)]
pub struct RunQueue {
    waiting: RefCell<VecDeque<Signal>>,
    /// The questions of sends that wait, in the order in which they were sent.
    questions: RefCell<BTreeMap<u64, Rc<History>>>,
    /// The number of sends so far.
    sent: Cell<u64>,
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

    /// Returns the questions that wait, the first one first.
    pub fn questions(&self) -> Vec<Rc<History>> {
        self.questions.borrow().values().cloned().collect()
    }

    /// Returns the number of a send.
    pub(super) fn next_number(&self) -> u64 {
        self.sent.set(self.sent.get() + 1);
        self.sent.get()
    }

    /// Adds the question of a send.
    pub(super) fn add_question(&self, number: u64, question: Rc<History>) {
        self.questions.borrow_mut().insert(number, question);
    }

    pub(super) fn remove_question(&self, number: u64) {
        self.questions.borrow_mut().remove(&number);
    }

    /// Ends all waits, because the store is closed.
    pub fn close(&self) {
        self.waiting.take();
        self.questions.take();
        self.closed.give();
    }
}
