//! [`HistoryChoice`]: a run chooses once what its requests contain of history, and keeps it to its end (R71).
//!
//! The first request decides, for the time at which the run began and with the messages that were stored then. The decision is in the journal
//! with the next entry that is written; if the application was asked for it, it is written before the request is sent, so that nobody is
//! asked again after a kill. Until then a resumed run decides again, from the same messages and for the same time.

use super::journal::{JournalEntry, RunStart};
use crate::clock::Ms;
use crate::history::History;
use crate::replay::{HistoryScope, ReplayChoice, ReplaySelection};

/// What the requests of a run contain of history.
#[derive(Debug, Default)]
pub(super) struct HistoryChoice {
    /// When the run began, and the id of the last stored message then; `None` in a run of a build that did not store it.
    began: Option<(Ms, String)>,
    choice: Option<ReplayChoice>,
    /// The entry that the journal does not have yet.
    unjournaled: Option<JournalEntry>,
}

impl HistoryChoice {
    /// Returns the choice of a run, which has chosen this before.
    pub fn new(start: &RunStart, selection: Option<ReplaySelection>) -> Self {
        let began = start.base.clone().map(|base| (start.at, base));
        Self { began, choice: selection.map(ReplayChoice::resumed), unjournaled: None }
    }

    /// Returns the time for which freshness is decided.
    pub fn time(&self, now: Ms) -> Ms {
        self.began.as_ref().map_or(now, |(at, _)| *at)
    }

    /// Returns what of history the next request contains, after `handoffs` handoffs with a view of their own: a new one is chosen with it.
    pub fn scope(&self, handoffs: usize) -> HistoryScope<'_> {
        match (&self.choice, &self.began) {
            (Some(choice), _) if choice.selection.handoffs == handoffs as u64 => HistoryScope::Chosen(choice),
            (_, began) => HistoryScope::UpTo(began.as_ref().map(|(_, base)| base.as_str())),
        }
    }

    /// Keeps a choice. `is_storable` is false if it has content that the store must not get.
    pub fn keep(&mut self, choice: ReplayChoice, is_storable: bool) {
        self.unjournaled = is_storable.then(|| JournalEntry::Selected(choice.selection.clone()));
        self.choice = Some(choice);
    }

    /// Returns the entry that the journal does not have yet.
    pub fn unjournaled(&self) -> Option<&JournalEntry> {
        self.unjournaled.as_ref()
    }

    /// Takes the entry that the journal does not have yet.
    pub fn take_unjournaled(&mut self) -> Option<JournalEntry> {
        self.unjournaled.take()
    }

    /// Returns the indices of the stored messages that the requests contain; `None` if that is not chosen, or has a message that replaces
    /// others.
    pub fn stored_messages(&self, history: &History) -> Option<Vec<usize>> {
        self.choice.as_ref()?.selection.stored_messages(history)
    }
}
