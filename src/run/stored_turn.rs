//! What was stored of a run's turn, in the modes that write history before the run ends (R16, R17).

use crate::history::{History, HistoryEntry, ResultEntry};
use crate::message::Message;
use crate::tool::{InvocationStatus, ToolInvocation};
use std::collections::BTreeSet;

/// What was stored of a turn, or handed to a save.
#[derive(Default)]
pub(super) struct StoredTurn {
    /// The number of messages.
    messages: usize,
    /// The ids of their calls that were stored without a result, in order.
    open_calls: Vec<String>,
    /// Those of `open_calls` whose results were stored since.
    answered: BTreeSet<String>,
    /// The ids of calls whose results another writer has stored. The turn is stored without them.
    elsewhere: BTreeSet<String>,
    /// The run's own results of calls that another writer answered first. The store sets them aside.
    second: Vec<ResultEntry>,
}

impl StoredTurn {
    /// Returns what history has of the live turn of an interrupted run.
    pub fn from_history(live: &History, history: &History) -> Self {
        let mut stored = Self::default();
        // A message of another run can have the same id, if ids repeat after a reload.
        let is_stored =
            |message: &&Message| history.message(&message.id).is_some_and(|one| one.run_id == message.run_id);
        // What providers added to the request stands before the input, and is never stored.
        let provided = live.messages().iter().take_while(|message| message.source.is_of_provider()).count();
        stored.messages = provided;
        for message in live.messages().iter().skip(provided).take_while(is_stored) {
            stored.messages += 1;
            let is_open = |call: &&ToolInvocation| {
                // A call whose interruption was noted has no result yet.
                history.invocation(&call.id).is_some_and(|stored| {
                    let has_result = stored.result.is_some() || stored.has_withheld_result();
                    // Another writer may have answered a call before the word that its result comes later.
                    !stored.is_deferred && (call.is_deferred || !has_result)
                })
            };
            stored.open_calls.extend(live.calls_of(message).filter(is_open).map(|call| call.id.clone()));
        }
        stored
    }

    /// Takes the entries of the turn that were not stored: results of stored calls, then messages with their calls.
    /// `run_continues`: the tools of calls without a result may run after they are stored.
    pub fn take_unstored(&mut self, live: &History, run_continues: bool) -> Vec<HistoryEntry> {
        let mut entries: Vec<HistoryEntry> = self.second.drain(..).map(HistoryEntry::Result).collect();
        let mut open_calls = Vec::new();
        for id in std::mem::take(&mut self.open_calls) {
            match live.invocation(&id) {
                Some(call) if has_outcome(call) => {
                    // History has the result of a call that was answered before its tool returned.
                    let is_answered = self.answered.contains(&id) || self.elsewhere.contains(&id) && !call.is_deferred;
                    if !is_answered {
                        entries.push(HistoryEntry::Result(self.outcome_of(call)));
                    }
                }
                _ => open_calls.push(id),
            }
        }
        self.answered.clear();
        let new = live.messages().get(self.messages..).unwrap_or(&[]);
        for message in new.iter().filter(|message| !message.source.is_of_provider()) {
            entries.push(HistoryEntry::Message(message.clone()));
            for call in live.calls_of(message) {
                let mut call = call.clone();
                if self.elsewhere.contains(&call.id) {
                    (call.status, call.finished_at, call.result) = (InvocationStatus::Pending, None, None);
                }
                if !has_outcome(&call) {
                    call.stored_during_run = run_continues;
                    open_calls.push(call.id.clone());
                }
                entries.push(HistoryEntry::Invocation(call));
            }
        }
        self.messages = live.messages().len();
        self.open_calls = open_calls;
        entries
    }

    /// Takes new results of the last answer's calls.
    pub fn take_results(&mut self, live: &History, results: Vec<ResultEntry>) -> Vec<HistoryEntry> {
        // A run that was resumed in another mode may have answers that are not stored.
        if self.messages < live.messages().len() {
            return self.take_unstored(live, true);
        }
        let mut entries = Vec::with_capacity(results.len());
        for result in results {
            self.answered.insert(result.invocation.clone());
            entries.push(HistoryEntry::Result(result));
        }
        entries
    }

    /// Returns the entry of what became of a stored call.
    fn outcome_of(&self, call: &ToolInvocation) -> ResultEntry {
        let outcome = result_of(call);
        if !self.elsewhere.contains(&call.id) {
            return outcome;
        }
        let status = InvocationStatus::Pending;
        ResultEntry { status, finished_at: None, result: None, is_deferral: true, ..outcome }
    }

    /// Notes that history has the result of an open call.
    pub fn note_answered_elsewhere(&mut self, invocation: String) {
        self.elsewhere.insert(invocation);
    }

    /// Notes that history has another result of a call than this one, which the run got from its tool.
    pub fn note_second_result(&mut self, own: ResultEntry) {
        self.elsewhere.insert(own.invocation.clone());
        self.second.push(own);
    }

    /// Returns the results that other writers stored. The journal has the tool's own result of a call that is not
    /// deferred.
    pub fn results_elsewhere(&self, live: &History) -> Vec<ResultEntry> {
        let result = |call: &ToolInvocation| ResultEntry { is_replacement: !call.is_deferred, ..result_of(call) };
        self.elsewhere.iter().filter_map(|id| live.invocation(id)).map(result).collect()
    }

    /// Forgets calls whose save was dropped.
    pub fn forget_calls(&mut self, calls: &BTreeSet<String>) {
        self.open_calls.retain(|id| !calls.contains(id));
    }

    /// Returns entries that give this status to stored calls that were started and have no result.
    pub fn mark_started_calls(&self, live: &History, status: InvocationStatus) -> Vec<HistoryEntry> {
        let calls = self.open_calls.iter().filter_map(|id| live.invocation(id));
        let started = calls.filter(|call| !has_outcome(call) && call.started_at.is_some());
        started.map(|call| HistoryEntry::Result(ResultEntry { status, ..result_of(call) })).collect()
    }
}

/// Returns true if the run does not wait for the call any more: it was answered, or its result comes later. The result
/// of an answered call may be withheld from the store (R12).
fn has_outcome(call: &ToolInvocation) -> bool {
    call.result.is_some() || call.status != InvocationStatus::Pending || call.is_deferred
}

/// Returns true if a call of the answer waits for its tool: the next request, which contains its result, was not sent.
pub(super) fn has_unanswered_call(live: &History, answer: &Message) -> bool {
    live.calls_of(answer).any(|call| !has_outcome(call))
}

/// Returns the entry of what became of a call.
pub(super) fn result_of(call: &ToolInvocation) -> ResultEntry {
    ResultEntry {
        invocation: call.id.clone(),
        status: call.status,
        started_at: call.started_at,
        finished_at: call.finished_at,
        freshness: None,
        result: call.result.clone(),
        is_deferral: call.awaits_result(),
        is_redacted: call.has_redacted_result,
        ..ResultEntry::default()
    }
}
