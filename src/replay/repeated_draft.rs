//! The draft that repeats what the last request of the session contained of the history, and adds what is new since
//! (R72).
//!
//! Freshness and citations apply to what is new when it is first sent, and to the rest at a [`Cut`]; reducers apply at
//! a cut only.

use super::chosen_draft::draft_message;
use super::citations::TrimmedResults;
use super::cut::Cut;
use super::freshness;
use super::input::ReplayInput;
use super::policy::Citations;
use super::reduce::{PendingQuestion, fit_budgets};
use super::request_draft::{DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use super::select::LateSelection;
use super::sent_draft::compaction_hash;
use super::sent_request::{SentRequest, SentRequestRecord};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::LateResult;
use crate::message::Message;
use std::collections::BTreeSet;

/// Returns the draft that repeats the last request, or why it is not repeated.
///
/// # Errors
/// The question that the application must answer first.
pub(super) fn repeated_draft<'h>(
    sent: &'h SentRequest,
    input: &ReplayInput<'h, '_>,
    report: &mut Report,
) -> Result<Result<RequestDraft<'h>, Cut>, Box<PendingQuestion<'h>>> {
    if sent.record.has_other_compaction(compaction_hash(input)) {
        return Ok(Err(Cut::Compaction));
    }
    let repeated = RepeatedMessages { sent, input, late: LateSelection { history: input.history, live: input.live } };
    let mut repeated_report = repeated.report();
    let Some(mut draft) = repeated.draft(&mut repeated_report) else { return Ok(Err(Cut::History)) };
    let before = repeated_report.len();
    fit_budgets(&mut draft, input, &mut repeated_report)?;
    let is_change = |finding: &Finding| finding.action != Some(Action::Kept);
    if repeated_report.iter().skip(before).any(is_change) {
        return Ok(Err(Cut::Budget));
    }
    report.append(&mut repeated_report);
    Ok(Ok(draft))
}

/// What the last request contained, and the history that it is found in.
struct RepeatedMessages<'h, 'i, 'p> {
    sent: &'h SentRequest,
    input: &'i ReplayInput<'h, 'p>,
    late: LateSelection<'h>,
}

impl<'h> RepeatedMessages<'h, '_, '_> {
    /// Returns the findings about what the last request did not contain.
    fn report(&self) -> Report {
        if self.sent.report.is_empty() && self.sent.record.is_reduced {
            let text = "what the last request left out of history is left out until what is sent may change";
            return vec![Finding::info(FindingCode::Reduced, text).with_action(Action::Dropped)];
        }
        self.sent.report.clone()
    }

    fn draft(&self, report: &mut Report) -> Option<RequestDraft<'h>> {
        let mut messages = self.repeated()?;
        let record = &self.sent.record;
        if self.has_new_result_of_compacted() {
            return None;
        }
        if record.hidden_open_calls(self.input.history, &messages) as u64 != record.hidden_open_calls {
            return None;
        }
        self.insert_new(&mut messages, report)?;
        if let Some(live) = self.input.live {
            for (index, message) in live.messages().iter().enumerate() {
                messages.extend(self.late.before(message).filter(|item| !self.repeats(item)));
                messages.extend(draft_message(live, DraftOrigin::Live(index), self.input));
            }
        }
        messages.extend(self.late.unplaced().filter(|item| !self.repeats(item)));
        let known_results = self.input.history.late_results_hash();
        let compacted_before = self.input.compacted_before;
        Some(RequestDraft { messages, is_repeated: false, cut: None, known_results, compacted_before })
    }

    /// Returns true if a result came since of a call that the compaction of an answer stands for: it has no place in
    /// the last request.
    fn has_new_result_of_compacted(&self) -> bool {
        let ReplayInput { history, compacted_before, .. } = *self.input;
        compacted_before > 0 && !history.results_unknown_to(compacted_before, self.sent.record.known_results).is_empty()
    }

    /// Returns the messages of the last request. Returns `None` if one of them is not there any more.
    fn repeated(&self) -> Option<Vec<DraftMessage<'h>>> {
        let input = self.input;
        let compaction = input.compaction;
        let mut messages = Vec::new();
        for range in &self.sent.record.ranges {
            match &range.message {
                Some(message) => messages.push(range.own_message(message, input)),
                None if range.is_replacement => {
                    messages.push(DraftMessage::created(&compaction?.stored.message, DraftOrigin::Replacement));
                }
                None if LateResult::invocation_of_id(&range.first).is_some() => {
                    messages.extend(range.late_result(&self.late));
                }
                None => range.restore(&mut messages, input)?,
            }
        }
        // A result that came since takes the place of the text that stood for it.
        for call in messages.iter_mut().flat_map(|item| &mut item.calls) {
            if let (Some(DraftResult::Closing(_)), Some(result)) = (call.result, &call.invocation.result)
                && !call.invocation.is_deferred
            {
                call.result = Some(DraftResult::Stored(result));
            }
        }
        Some(messages)
    }

    /// Inserts the stored messages that the last request did not know, in their order. What they have is judged now:
    /// nobody has seen it. Returns `None` if that cannot be known.
    fn insert_new(&self, messages: &mut Vec<DraftMessage<'h>>, report: &mut Report) -> Option<()> {
        let history = self.input.history;
        let known = self.known()?;
        let is_live = self.input.in_live_turn();
        let repeated: BTreeSet<usize> = messages.iter().filter_map(index_of).collect();
        let mut new = RequestDraft::default();
        let end = self.input.scope.end_of(history).min(history.messages().len());
        for (index, message) in history.messages().iter().enumerate().take(end).skip(known.base_end) {
            if repeated.contains(&index) || known.is_of_run(index, message) || is_live(message) {
                continue;
            }
            new.messages.extend(self.late.before(message).filter(|item| !self.repeats(item)));
            new.messages.extend(draft_message(history, DraftOrigin::Stored(index), self.input));
        }
        freshness::drop_stale_results(&mut new, self.input, report);
        let drops_sources = self.input.policy.citations() != Citations::Off;
        if let Some(trimmed) = self.input.trimmed.filter(|_| drops_sources) {
            TrimmedResults::apply(trimmed, &mut new, history, report);
        }
        // Usually they are the newest ones.
        let newest = repeated.last().copied();
        let mut late = Vec::new();
        for item in new.messages {
            let Some(index) = index_of(&item) else {
                late.push(item);
                continue;
            };
            let is_later = |other: &DraftMessage<'_>| index_of(other).is_some_and(|other| other > index);
            let position = match newest {
                Some(newest) if newest > index => messages.iter().position(is_later),
                _ => None,
            };
            let at = position.unwrap_or(messages.len());
            messages.splice(at..at, late.drain(..).chain([item]));
        }
        messages.append(&mut late);
        Some(())
    }

    fn known(&self) -> Option<KnownMessages<'h>> {
        let SentRequestRecord { run, live_end, .. } = &self.sent.record;
        let base_end = self.sent.record.base_end(self.input.history)?;
        let run = match (run, live_end) {
            (Some(run), Some(last)) => Some((run.as_str(), self.input.history.message_index(last)?)),
            _ => None,
        };
        Some(KnownMessages { base_end, run })
    }

    /// Returns true if the last request has a late result, whose place it keeps.
    fn repeats(&self, item: &DraftMessage<'_>) -> bool {
        self.sent.record.ranges.iter().any(|range| range.message.is_none() && range.first == item.message.id)
    }
}

/// The messages of which the last request decided what becomes of them.
struct KnownMessages<'h> {
    /// The index after the last one that was stored before the run that sent it.
    base_end: usize,
    /// That run, and the index of its last message in the request.
    run: Option<(&'h str, usize)>,
}

impl KnownMessages<'_> {
    fn is_of_run(&self, index: usize, message: &Message) -> bool {
        self.run.is_some_and(|(run, last)| index <= last && message.run_id.as_deref() == Some(run))
    }
}

fn index_of(item: &DraftMessage<'_>) -> Option<usize> {
    match item.origin {
        DraftOrigin::Stored(index) => Some(index),
        _ => None,
    }
}
