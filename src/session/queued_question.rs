//! Questions that wait for the run before them (`whenBusy: "queue"`), as the view shows them. They are in memory: a
//! question is stored when its run begins.

use super::open_session::OpenSession;
use crate::history::{HeldConversation, History, HistoryEntry, Incoming, JoinBase, Origin, join};
use crate::owner::StateOwner;
use std::cell::Cell;
use std::rc::Rc;

/// What a new run does while another one of its session is under way.
#[derive(Clone, Debug, Default)]
pub enum WhenBusy {
    /// It is rejected.
    #[default]
    Throw,
    /// It waits. The view shows the question, if there is one.
    Queue(Option<Rc<History>>),
}

impl From<bool> for WhenBusy {
    fn from(waits: bool) -> Self {
        if waits { Self::Queue(None) } else { Self::Throw }
    }
}

impl WhenBusy {
    /// Returns true if the run waits.
    #[must_use]
    pub fn waits(&self) -> bool {
        matches!(self, Self::Queue(_))
    }
}

/// The place of a question among those that wait. It is left when this is dropped.
pub(super) struct QueuedQuestion<'s> {
    session: &'s OpenSession,
    question: Option<Rc<History>>,
    /// Its place among all that were sent.
    number: u64,
    is_shown: Cell<bool>,
}

impl<'s> QueuedQuestion<'s> {
    /// Takes a place, which is shown at once if a run is under way in this tab.
    pub(super) fn new(session: &'s OpenSession, when_busy: &WhenBusy) -> Self {
        let question = match when_busy {
            WhenBusy::Queue(question) => question.clone(),
            WhenBusy::Throw => None,
        };
        let number = session.run_queue.next_number();
        let place = Self { session, question, number, is_shown: Cell::new(false) };
        if session.is_run_active() {
            place.show();
        }
        place
    }

    /// Shows the question: it has to wait.
    pub(super) fn show(&self) {
        if let Some(question) = self.question.as_ref().filter(|_| !self.is_shown.replace(true)) {
            self.session.run_queue.add_question(self.number, question.clone());
            self.session.notify();
        }
    }
}

impl Drop for QueuedQuestion<'_> {
    fn drop(&mut self) {
        if self.is_shown.get() {
            self.session.run_queue.remove_question(self.number);
            self.session.notify();
        }
    }
}

impl OpenSession {
    /// Returns the messages of an input as the view shows them while they wait. `id` is that of the first one; without
    /// one it is drawn, and the input gets it.
    pub fn question(&self, input: &[Incoming], id: &mut Option<String>) -> Rc<History> {
        let is_held = matches!(self.owner(), Ok(StateOwner::Caller));
        let mut items = input.to_vec();
        if is_held {
            // The conversation before the question is not what waits.
            items = HeldConversation::split(items).input;
        }
        self.context.host.draw_ids();
        let ids = self.context.ids();
        if id.is_none() && !is_held {
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
