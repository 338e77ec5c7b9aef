//! The runs of a tab that wait for the run before them.

use super::signal::Signal;
use super::write_queue::WriteQueue;
use crate::clock::Ms;
use crate::history::History;
use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

/// Longest time between two looks at a run that only a lease shows, in milliseconds: it may end before its lease does.
pub(super) const LONGEST_PAUSE: Ms = 500;

/// Looks at the head, a pause after each, until it is unknown what became of a write.
pub(super) const MAX_LOOKS: u32 = 20;

/// After this time no other look begins, in milliseconds: a store may answer each of them late.
pub(super) const LONGEST_DOUBT: Ms = 10_000;

/// The place of a send among those that wait: the number under which its question is stored, the highest if it is not,
/// and then the order in which they were sent.
pub(super) type QueueRank = (u64, u64);

/// A stored question of this tab that waits.
#[derive(Clone)]
pub(super) struct HeldQuestion {
    /// The id of its run.
    pub id: String,
    /// The epoch of its holder, which is this tab.
    pub epoch: u32,
    /// False if it has a lease.
    pub has_lock: bool,
    /// Given when it was discarded.
    pub discarded: Signal,
    /// Given when its lease is not renewed any more.
    pub over: Signal,
}

/// The sends of this tab that wait for the run before them.
#[derive(Default)]
pub struct RunQueue {
    /// Those that wait for something to change.
    waiting: RefCell<Vec<Signal>>,
    /// Their places.
    ranks: RefCell<BTreeSet<QueueRank>>,
    /// The questions that a view shows.
    questions: RefCell<BTreeMap<QueueRank, Rc<History>>>,
    /// The questions that are stored, by their numbers.
    held: RefCell<BTreeMap<u64, HeldQuestion>>,
    /// Orders the sends until each is stored, or has begun.
    pub(super) sends: WriteQueue,
    /// The number of sends so far.
    sent: Cell<u64>,
    /// Given when the store is closed.
    pub closed: Signal,
}

impl RunQueue {
    /// Waits until a run has ended or another send waits no more, or the store is closed.
    pub(super) async fn wait(&self) {
        let woken = Signal::default();
        self.waiting.borrow_mut().push(woken.clone());
        self.closed.unless_given(woken.given()).await;
    }

    /// Lets each send look whether it is the next one.
    pub(super) fn wake_all(&self) {
        self.waiting.take().iter().for_each(Signal::give);
    }

    /// Returns true if a send waits.
    pub(super) fn has_waiting(&self) -> bool {
        !self.ranks.borrow().is_empty()
    }

    /// Returns true if no other send waits before this place.
    pub(super) fn is_first(&self, rank: QueueRank) -> bool {
        self.ranks.borrow().first().is_none_or(|first| *first >= rank)
    }

    /// Returns the questions that wait, with their places.
    pub(super) fn questions(&self) -> Vec<(QueueRank, Rc<History>)> {
        self.questions.borrow().iter().map(|(rank, question)| (*rank, question.clone())).collect()
    }

    /// Returns the place of a send whose question is not stored.
    pub(super) fn next_rank(&self) -> QueueRank {
        self.sent.set(self.sent.get() + 1);
        (u64::MAX, self.sent.get())
    }

    /// Adds a place, with the question if there is one.
    pub(super) fn add(&self, rank: QueueRank, question: Option<Rc<History>>) {
        self.ranks.borrow_mut().insert(rank);
        if let Some(question) = question {
            self.questions.borrow_mut().insert(rank, question);
        }
    }

    /// Removes a question whose place stays.
    pub(super) fn remove_question(&self, rank: QueueRank) {
        self.questions.borrow_mut().remove(&rank);
    }

    pub(super) fn remove(&self, rank: QueueRank) {
        self.ranks.borrow_mut().remove(&rank);
        self.questions.borrow_mut().remove(&rank);
    }

    /// Adds a question that is stored.
    pub(super) fn hold(&self, number: u64, question: HeldQuestion) {
        self.held.borrow_mut().insert(number, question);
    }

    pub(super) fn let_go(&self, number: u64) {
        self.held.borrow_mut().remove(&number);
    }

    /// Returns the stored questions that wait here.
    pub(super) fn all_held(&self) -> Vec<HeldQuestion> {
        self.held.borrow().values().cloned().collect()
    }

    /// Returns the stored question that waits here as the run of this id.
    pub(super) fn held(&self, run: &str) -> Option<HeldQuestion> {
        self.held.borrow().values().find(|question| question.id == run).cloned()
    }

    /// Ends all waits, because the store is closed.
    pub fn close(&self) {
        self.waiting.take();
        self.questions.take();
        self.closed.give();
    }
}
