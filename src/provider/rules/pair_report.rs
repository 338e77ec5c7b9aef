//! The report about pairs of calls and results, which all dialects share.

use super::call_result_pairs::{Pairing, Pairs, WireCall, WireResult};
use super::{Plan, Violation};
use crate::finding::{Action, FindingCode};

/// The provider's sentences about pairs; `{}` stands for the id.
pub(crate) struct ErrorTemplates {
    /// A call has no result where the provider expects it.
    pub dangling: &'static str,
    /// A result has no call before it.
    pub orphan: &'static str,
    /// A call has a second result.
    pub duplicate: &'static str,
}

/// Reports calls without a result, results without a call, second results, and misplaced results.
pub(crate) fn report_pairs<'a>(plan: &mut Plan<'a, '_>, pairs: &Pairs<'a>, templates: &ErrorTemplates) {
    for members in pairs.calls.chunk_by(|one, next| one.group == next.group) {
        let has_results = members.iter().any(|call| call.result.is_some());
        for call in members.iter().filter(|call| call.lacks_result()) {
            let code = if has_results { FindingCode::MissingParallelResult } else { FindingCode::DanglingCall };
            let action = if call.omitted { Action::Dropped } else { Action::Synthesized };
            plan.report(
                Violation::error(code, templates.dangling)
                    .at(call.location)
                    .of_call(call.id.as_ref().unwrap_or(&call.new_id))
                    .with_action(action),
            );
        }
    }
    if plan.is_over_budget() {
        return;
    }
    plan.report_mentions(pairs);
    for answer in &pairs.results {
        let (code, action, sentence) = match answer.pairing {
            Pairing::HeldByServer => continue,
            Pairing::Orphan => (FindingCode::OrphanResult, Action::Dropped, templates.orphan),
            Pairing::Duplicate => (FindingCode::DuplicateResult, Action::Dropped, templates.duplicate),
            Pairing::Paired(_) => {
                let Some(call) = pairs.call_of(answer).filter(|call| !is_in_place(answer, call)) else { continue };
                if answer.order < call.order {
                    (FindingCode::ResultBeforeCall, Action::Moved, templates.orphan)
                } else {
                    (FindingCode::InterposedMessage, Action::Moved, templates.dangling)
                }
            }
        };
        plan.report(
            Violation::error(code, sentence)
                .at(answer.location)
                .of_call(answer.id.as_deref().unwrap_or(""))
                .with_action(action),
        );
    }
}

/// Returns true if a result is in the reply to the group of its call.
pub(crate) fn is_in_place(answer: &WireResult<'_>, call: &WireCall<'_>) -> bool {
    answer.reply_to == Some(call.group)
}
