//! What the model is shown: a draft of the history, changed by passes in a fixed order, one file per pass.
//!
//! A pass is a pure function of draft, policy and report. Stored history never changes.

mod chosen_draft;
mod citations;
mod cut;
mod freshness;
mod handoff_view;
mod input;
mod pairing;
mod policy;
mod reduce;
mod repeated_draft;
mod request_draft;
mod select;
mod selection;
mod sent_draft;
mod sent_request;

pub use chosen_draft::choice_of;
pub use citations::{CompletedTurns, TrimmedResults};
pub use cut::Cut;
pub use handoff_view::HandoffView;
pub use input::{HistoryScope, ReplayInput};
pub use policy::{
    Citations, DanglingCalls, FallbackReducers, OnStale, Policy, PolicyLayer, ReplayChanges, StaleUnit,
    UnboundReasoning,
};
pub use reduce::{
    Callback, PendingQuestion, QuestionKind, Reducer, ReducerCache, ReducerQuestion, ReducerReplies, ReducerReply,
    estimated_tokens, shortened,
};
pub use request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, ExtraContent, RequestDraft};
pub use selection::{CallOutcome, ReplayChoice, ReplaySelection, SelectedCall, SelectedRange};
pub use sent_request::{RequestIdentity, SentRequest, SentRequestRecord};

use crate::finding::{Action, Finding, FindingCode, Report};
use crate::message::{Part, PartBody};

/// Drafts what the model is shown: the history, then the live turn.
///
/// # Errors The question of a reducer that the application must answer first. Replay then runs again from the start,
/// with the reply.
pub fn replay<'h>(
    input: &ReplayInput<'h, '_>,
    report: &mut Report,
) -> Result<RequestDraft<'h>, Box<PendingQuestion<'h>>> {
    if let Some(mut draft) = chosen_draft::chosen_draft(input, report) {
        let before = report.len();
        reduce::fit_budgets(&mut draft, input, report)?;
        let is_change = |finding: &Finding| finding.action != Some(Action::Kept);
        draft.is_repeated = !report.iter().skip(before).any(is_change);
        draft.cut = (!draft.is_repeated).then_some(Cut::Budget);
        pairing::pair_results(&mut draft, input, report);
        return Ok(draft);
    }
    let mut cut = None;
    if let Some(sent) = input.sent {
        match repeated_draft::repeated_draft(sent, input, report)? {
            Ok(mut draft) => {
                report_orphan_reasoning(&draft, report);
                pairing::pair_results(&mut draft, input, report);
                return Ok(draft);
            }
            Err(reason) => cut = Some(reason),
        }
    }
    let mut draft = select::select(input, report);
    draft.cut = cut;
    freshness::drop_stale_results(&mut draft, input, report);
    if let Some(trimmed) = input.trimmed.filter(|_| input.policy.citations() != Citations::Off) {
        trimmed.apply(&mut draft, input.history, report);
    }
    // A service shortens what it keeps; what it has not acknowledged is sent in full.
    if input.delta.is_none() {
        reduce::reduce(&mut draft, input, report)?;
    }
    report_orphan_reasoning(&draft, report);
    pairing::pair_results(&mut draft, input, report);
    Ok(draft)
}

/// Reports the messages that consist of signed reasoning alone. The last pass drops them.
fn report_orphan_reasoning(draft: &RequestDraft<'_>, report: &mut Report) {
    let is_signed = |part: &Part| matches!(part.body, PartBody::Reasoning(_)) && part.template.is_some();
    for item in &draft.messages {
        let parts = &item.message.parts;
        if !parts.is_empty() && parts.iter().all(is_signed) && !item.is_sendable(true) {
            let finding = Finding::info(
                FindingCode::OrphanReasoning,
                "a message of reasoning alone says nothing; it is left out",
            );
            report.push(finding.of_message(&item.message.id).with_action(Action::Dropped));
        }
    }
}

#[cfg(test)]
mod tests;
