//! [`HistoryChoice`]: a run chooses once what its requests contain of history, and keeps it to its end (R71).
//!
//! The first request decides, for the time at which the run began and with the messages that were stored then. The
//! decision is in the journal with the next entry that is written; if the application was asked for it, it is written
//! before the request is sent, so that nobody is asked again after a kill. Until then a resumed run decides again, from
//! the same messages and for the same time.

use super::effect::{Save, SaveKind};
use super::journal::{JournalEntry, RunStart};
use crate::clock::Ms;
use crate::history::History;
use crate::render::LastRequest;
use crate::replay::{HistoryScope, ReplayChoice, ReplaySelection, SentRequest};
use std::rc::Rc;

/// What the requests of a run contain of history.
#[derive(Debug, Default)]
pub(super) struct HistoryChoice {
    /// When the run began, and the id of the last stored message then; `None` in a run of a build that did not store
    /// it.
    began: Option<(Ms, String)>,
    choice: Option<ReplayChoice>,
    /// The entry that the journal does not have yet.
    unjournaled: Option<JournalEntry>,
    /// The newest request, as far as the session's next one repeats it.
    last_request: Option<LastRequest>,
    /// The newest save that stores a request.
    storing: Option<(u64, LastRequest)>,
}

impl HistoryChoice {
    /// Returns the choice of a run, which has chosen this before.
    pub fn new(start: &RunStart, selection: Option<ReplaySelection>) -> Self {
        let began = start.base.clone().map(|base| (start.at, base));
        Self { began, choice: selection.map(ReplayChoice::resumed), ..Self::default() }
    }

    /// Returns the time for which freshness is decided.
    pub fn time(&self, now: Ms) -> Ms {
        self.began.as_ref().map_or(now, |(at, _)| *at)
    }

    /// Returns what of history the next request contains, after `handoffs` handoffs with a view of their own: a new one
    /// is chosen with it.
    pub fn scope(&self, handoffs: usize) -> HistoryScope<'_> {
        let base = self.began.as_ref().map(|(_, base)| base.as_str());
        match &self.choice {
            Some(choice) if choice.selection.handoffs == handoffs as u64 => HistoryScope::Chosen { choice, base },
            _ => HistoryScope::UpTo(base),
        }
    }

    /// Keeps a choice. `has_redactable_calls`: a message that replaces or repeats a part of the live turn may have what
    /// `persist` keeps from the store; then only this process has the choice.
    pub fn keep(&mut self, choice: ReplayChoice, has_redactable_calls: bool) {
        let is_storable = !(has_redactable_calls && choice.selection.has_own_messages());
        self.unjournaled = is_storable.then(|| JournalEntry::Selected(choice.selection.clone()));
        self.choice = Some(choice);
    }

    /// Keeps what was sent at `at`, for the session's next request. `was_known`: the session has an earlier one, which
    /// is repeated no more.
    pub fn keep_last_request(&mut self, at: Ms, sent: Option<Rc<SentRequest>>, was_known: bool) {
        let sent = sent.map(|sent| {
            let mut sent = Rc::unwrap_or_clone(sent);
            sent.record.at = at;
            Rc::new(sent)
        });
        self.last_request = (sent.is_some() || was_known).then_some(LastRequest { sent });
    }

    /// Returns the newest request for a save that stores its messages in history.
    pub fn last_request_in(&mut self, save: &Save) -> Option<LastRequest> {
        let request = match save.kind {
            SaveKind::Store { .. } | SaveKind::Append(_) => self.last_request.clone()?,
            SaveKind::Begin(_) | SaveKind::Write(_) | SaveKind::Fail(_) => return None,
        };
        self.storing = Some((save.id, request.clone()));
        Some(request)
    }

    /// Takes the request that a save has stored.
    pub fn take_stored_request(&mut self, save: u64) -> Option<LastRequest> {
        self.storing.take_if(|(storing, _)| *storing == save).map(|(_, request)| request)
    }

    /// Returns the entry that the journal does not have yet.
    pub fn unjournaled(&self) -> Option<&JournalEntry> {
        self.unjournaled.as_ref()
    }

    /// Takes the entry that the journal does not have yet.
    pub fn take_unjournaled(&mut self) -> Option<JournalEntry> {
        self.unjournaled.take()
    }

    /// Returns true if the requests contain what a provider returned as a compaction.
    pub fn has_provider_compaction(&self) -> bool {
        self.choice.as_ref().is_some_and(|choice| choice.selection.has_provider_compaction())
    }

    /// Returns the hash of the results of history that the requests know; 0 if that is not chosen.
    pub fn known_results(&self) -> u64 {
        self.choice.as_ref().map_or(0, |choice| choice.selection.known_results)
    }

    /// Returns the indices of the stored messages that the requests contain; `None` if that is not chosen, or has a
    /// message that replaces others.
    pub fn stored_messages(&self, history: &History) -> Option<Vec<usize>> {
        self.choice.as_ref()?.selection.stored_messages(history)
    }
}
