//! Questions that wait for the run before them (`whenBusy: "queue"`), as the view of their tab shows them.

use super::open_session::OpenSession;
use super::run_queue::QueueRank;
use crate::history::{HeldConversation, History, HistoryEntry, Incoming, JoinBase, Origin, join};
use crate::owner::StateOwner;
use crate::session_head::FIRST_QUEUED;
use std::cell::Cell;
use std::rc::Rc;

/// The place of a send among those that wait. It is left when this is dropped.
pub(super) struct QueuedQuestion<'s> {
    session: &'s OpenSession,
    question: Rc<History>,
    rank: Cell<QueueRank>,
    is_shown: Cell<bool>,
}

impl<'s> QueuedQuestion<'s> {
    /// Takes a place, which is shown at once if a run is under way in this tab.
    pub(super) fn new(session: &'s OpenSession, question: Rc<History>) -> Self {
        let rank = Cell::new(session.run_queue.next_rank());
        let place = Self { session, question, rank, is_shown: Cell::new(false) };
        if session.is_run_active() {
            place.show();
        }
        place
    }

    /// Returns the question.
    pub(super) fn question(&self) -> &History {
        &self.question
    }

    /// Returns true if no other send of this tab is before it.
    pub(super) fn is_first(&self) -> bool {
        self.session.run_queue.is_first(self.rank.get())
    }

    /// Shows the question: it has to wait.
    pub(super) fn show(&self) {
        if self.is_shown.replace(true) {
            return;
        }
        let question = Some(self.question.clone()).filter(|question| !question.messages().is_empty());
        self.session.run_queue.add(self.rank.get(), question);
        self.session.notify();
    }

    /// Moves it to the place of the number under which it is stored.
    pub(super) fn set_number(&self, number: u64) {
        let (_, sent) = self.rank.get();
        self.hide();
        self.rank.set((number, sent));
        self.show();
    }

    /// Moves it before those that may not begin yet: questions of other tabs and this one wait for it.
    pub(super) fn set_next(&self, number: u64) {
        let place = number.saturating_sub(FIRST_QUEUED);
        if self.rank.get().0 != place {
            self.set_number(place);
        }
    }

    /// Shows the question no more, since the run that begins shows it. Its place is kept.
    pub(super) fn hide_question(&self) {
        self.session.run_queue.remove_question(self.rank.get());
    }

    /// Shows the question again: its run has not begun.
    pub(super) fn show_question(&self) {
        if self.is_shown.replace(false) {
            self.show();
        }
    }

    fn hide(&self) {
        if self.is_shown.replace(false) {
            self.session.run_queue.remove(self.rank.get());
        }
    }
}

impl Drop for QueuedQuestion<'_> {
    fn drop(&mut self) {
        if self.is_shown.get() {
            self.hide();
            self.session.notify();
            self.session.run_queue.wake_all();
        }
    }
}

impl OpenSession {
    /// Returns the messages of an input as the view shows them while they wait. `id` is that of the first one; without
    /// one it is drawn, and the input gets it.
    pub(super) fn question(&self, input: &[Incoming], id: &mut Option<String>) -> Rc<History> {
        let is_held = matches!(self.owner(), Ok(StateOwner::Caller));
        let mut items = input.to_vec();
        if is_held {
            // The conversation before the question is not what waits.
            items = HeldConversation::split(items).input;
        }
        self.context.host.draw_ids();
        let ids = self.context.ids();
        if id.is_none() && !is_held && !items.is_empty() {
            *id = Some(ids.new_id());
        }
        let message_ids = if is_held { Vec::new() } else { id.iter().cloned().collect() };
        let origin = Origin { at: self.context.now(), channel: self.channel(), message_ids, ..Origin::default() };
        let log = self.log.borrow();
        let joined = join(JoinBase::history(&log.history), items, &origin, ids);
        let mut question = History::new(self.context.settings.seed);
        let is_message = |entry: &HistoryEntry| matches!(entry, HistoryEntry::Message(_));
        joined.entries.into_iter().filter(is_message).for_each(|entry| question.apply(entry));
        Rc::new(question)
    }
}
