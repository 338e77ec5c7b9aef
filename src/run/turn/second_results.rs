//! Results of calls that another writer has answered before their tools returned: the result that was stored first
//! counts (R75).

use super::RunData;
use crate::finding::{Action, Finding, FindingCode};
use crate::history::{History, HistoryEntry, ResultEntry, stored_result};
use crate::run::effect::{Save, SaveKind};
use crate::run::journal::JournalEntry;
use crate::run::stored_turn::result_of;
use crate::tool::{InvocationStatus, ToolInvocation};

impl RunData {
    /// Replaces the result of a call by the one that another writer stored first, if there is one. The call's own is
    /// set aside and reported.
    pub fn prefer_first_result(&mut self, invocation: &str, history: &History) {
        // A result that says that there is none takes no other one's place.
        let has_own = |call: &&ToolInvocation| {
            call.result.is_some() && !call.is_deferred && call.status != InvocationStatus::Interrupted
        };
        let Some(call) = self.live.invocation(invocation).filter(has_own) else { return };
        let Some(first) = stored_result(history, invocation) else { return };
        let own = result_of(call);
        if self.is_stored_as(&own, &first) {
            return;
        }
        let text = format!(
            "the call of the tool \"{}\" was answered from outside before its tool returned; that answer counts, and the tool's own result is \
             stored and never sent",
            call.name
        );
        let finding = Finding::warning(FindingCode::DuplicateResult, text)
            .of_message(&call.message_id)
            .of_call(call.wire_id())
            .with_action(Action::Kept);
        self.stored.note_second_result(own);
        self.live.apply(HistoryEntry::Result(ResultEntry { is_replacement: true, ..first }));
        self.warn(finding);
    }

    /// As [`prefer_first_result`](Self::prefer_first_result), of all calls of a resumed run: its journal has their own
    /// results only.
    pub fn prefer_first_results(&mut self, history: &History) {
        let is_answered = |call: &&ToolInvocation| call.result.is_some() && !self.is_provided(call);
        let calls = self.live.invocations().iter().filter(is_answered);
        for invocation in calls.map(|call| call.id.clone()).collect::<Vec<_>>() {
            self.prefer_first_result(&invocation, history);
        }
    }

    /// Returns true if a save has the result of an asynchronous tool. Other writers may answer such a call.
    pub(super) fn has_async_result(&self, save: &Save) -> bool {
        let is_async = |call: &ToolInvocation| call.is_async && !call.is_deferred;
        save.kind.journal().iter().any(|entry| {
            matches!(entry, JournalEntry::Finished(result) if self.live.invocation(&result.invocation).is_some_and(is_async))
        })
    }

    /// Removes from a save what must not be stored.
    pub(super) fn redact(&self, kind: &mut SaveKind) {
        self.redactions.redact(kind, &self.setup.persist, &self.live);
    }

    /// Returns true if the stored result is the run's own: it is equal, or what `persist` made of it.
    fn is_stored_as(&self, own: &ResultEntry, stored: &ResultEntry) -> bool {
        let is_stored = |own: &ResultEntry| match (&own.result, &stored.result) {
            (Some(own), Some(stored)) => own.content == stored.content && own.is_error == stored.is_error,
            (own, stored) => own.is_none() && stored.is_none(),
        };
        if is_stored(own) {
            return true;
        }
        let mut save = SaveKind::Append(vec![HistoryEntry::Result(own.clone())]);
        self.redact(&mut save);
        matches!(&save, SaveKind::Append(entries) if matches!(entries.as_slice(), [HistoryEntry::Result(own)] if is_stored(own)))
    }
}
