//! What the request of a draft contained of the history, for the session's next request (R72).

use super::chosen_draft::RangeBuilder;
use super::input::{HistoryScope, ReplayInput};
use super::request_draft::{DraftMessage, DraftOrigin, RequestDraft};
use super::sent_request::{SentRequest, SentRequestRecord, hash_of};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::{ActiveSummary, History};
use crate::id::hash_words;
use crate::tool::ToolInvocation;

impl SentRequest {
    /// Returns what the request of a draft contains. `report` has the findings of making it.
    #[must_use]
    pub fn of(draft: &RequestDraft<'_>, input: &ReplayInput<'_, '_>, report: &[Finding]) -> Self {
        let is_run = !matches!(input.scope, HistoryScope::Whole);
        let compaction = input.compaction;
        let mut builder = RangeBuilder::new(input);
        for item in &draft.messages {
            match item.origin {
                // The messages of a render are stored later, if at all, under other ids.
                DraftOrigin::Live(_) if !is_run => {}
                _ if input.is_provided(item) => {}
                DraftOrigin::Replacement if is_compaction(item, compaction) => builder.add_compaction(),
                _ => builder.add(item),
            }
        }
        let last_stored = || input.history.messages().last().map(|last| last.id.as_str());
        let base = input.scope.base().or_else(last_stored).unwrap_or_default();
        let own = |live: &'_ History| live.messages().last().filter(|last| !last.source.is_of_provider()).cloned();
        let last_live = input.live.filter(|_| is_run).and_then(own);
        // Each request reports the others itself.
        let is_kept = |finding: &&Finding| {
            let is_change = matches!(finding.action, Some(Action::Dropped | Action::Rewritten | Action::Synthesized));
            is_change && finding.code != FindingCode::OrphanReasoning
        };
        let report: Report = report.iter().filter(is_kept).cloned().collect();
        let mut record = SentRequestRecord {
            at: input.now,
            base: base.to_owned(),
            run: last_live.as_ref().and_then(|last| last.run_id.clone()),
            live_end: last_live.map(|last| last.id),
            compaction: compaction_hash(input),
            ranges: builder.into_ranges(),
            is_reduced: !report.is_empty(),
            known_results: draft.known_results,
            ..SentRequestRecord::default()
        };
        record.hidden_open_calls = record.hidden_open_calls(input.history, &draft.messages) as u64;
        Self { record, report }
    }
}

impl SentRequestRecord {
    /// Returns the number of calls without a result in decided messages that a draft does not contain.
    pub(super) fn hidden_open_calls(&self, history: &History, draft: &[DraftMessage<'_>]) -> usize {
        let end = self.base_end(history).unwrap_or_default();
        let is_open = |call: &ToolInvocation| call.result.is_none() && !call.is_deferred;
        let decided = history.messages().get(..end).unwrap_or_default().iter();
        let stored: usize = decided.map(|message| history.calls_of(message).filter(|call| is_open(call)).count()).sum();
        let is_decided = |item: &&DraftMessage<'_>| matches!(item.origin, DraftOrigin::Stored(index) if index < end);
        let sent = draft.iter().filter(is_decided).flat_map(|item| &item.calls);
        stored.saturating_sub(sent.filter(|call| is_open(call.invocation)).count())
    }
}

/// Returns a hash of what the compaction in a request covers; 0 without one.
pub(super) fn compaction_hash(input: &ReplayInput<'_, '_>) -> u64 {
    let answer = input.history.messages().get(input.compacted_before).filter(|_| input.compacted_before > 0);
    // 0 says that there is none.
    let of_answer = answer.map_or(0, |answer| hash_words(5, answer.id.as_bytes()) | 1);
    input.compaction.map_or(of_answer, hash_of)
}

fn is_compaction(item: &DraftMessage<'_>, compaction: Option<&ActiveSummary>) -> bool {
    compaction.is_some_and(|active| std::ptr::eq(item.message, &raw const active.stored.message))
}
