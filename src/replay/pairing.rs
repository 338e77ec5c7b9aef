//! Pairing: the last pass. After it every call has a result, and no message is empty (R4, R5).

use super::draft::{Draft, DraftMessage, DraftResult};
use super::policy::{DanglingCalls, Policy};
use crate::finding::{Action, Finding, Report};
use crate::message::{Dialect, Role, Slot};

/// Closes a call of which nobody knows whether it ran.
pub const INTERRUPTED: &str = "Interrupted: this call has no recorded result. It may or may not have run; check before relying on it or repeating it.";

/// Closes a call that was never started, beside others that were answered.
pub const NOT_RUN: &str = "Not run: this call was cancelled before it started.";

pub(super) fn pairing(draft: &mut Draft<'_>, policy: &Policy, report: &mut Report) {
    for item in &mut draft.messages {
        // A round of which nothing was started is left out. One that came in by `append` may have run: nobody knows.
        let ours = item.message.run_id.is_some();
        let untouched =
            ours && item.calls.iter().all(|call| call.result.is_none() && call.invocation.started_at.is_none());
        item.calls.retain_mut(|call| {
            let id = &call.invocation.call_id;
            if call.result.is_none() {
                let finding = Finding::info("dangling_call", "a call without a result").of_message(&item.message.id).of_call(id);
                if untouched || policy.dangling_calls() == DanglingCalls::Omit {
                    report.push(finding.did(Action::Dropped));
                    return false;
                }
                let text = if ours && call.invocation.started_at.is_none() { NOT_RUN } else { INTERRUPTED };
                call.result = Some(DraftResult::Closing(text));
                report.push(finding.did(Action::Synthesized));
            }
            // In Gemini a call without an id is as good as any.
            if call.invocation.replay_id.is_some()
                && !(id.is_empty() && item.message.dialect == Some(Dialect::Gemini))
            {
                let code = if id.is_empty() { "invalid_call_id" } else { "duplicate_call_id" };
                report.push(
                    Finding::info(code, "the call's id is missing or was used by an earlier call; call and result go out under one of their own")
                        .of_message(&item.message.id)
                        .of_call(id)
                        .did(Action::Renamed),
                );
            }
            true
        });
    }
    draft.messages.retain(|item| item.message.role != Role::Assistant || item.has_words() || !item.calls.is_empty());
    join_results(draft);
}

/// Results that came in one wire message with what follows them go out so again.
fn join_results(draft: &mut Draft<'_>) {
    for at in 1..draft.messages.len() {
        let joins = draft.messages.get(at).is_some_and(|item| {
            item.message.role == Role::User
                && item
                    .message
                    .shape
                    .as_ref()
                    .is_some_and(|shape| shape.0.iter().any(|(_, slot)| *slot == Slot::ResultsThenParts))
        });
        // Answers in a row whose results came in one wire message. The first of them may be of any.
        let joined = at >= 2 && draft.messages.get(at - 2).is_some_and(|item| item.results_go_on);
        let joins = joins
            || match draft.messages.get(at - 1..=at) {
                Some([before, item]) => !item.calls.is_empty() && (goes_on(item) || !joined && goes_on(before)),
                _ => false,
            };
        if let Some(before) = draft.messages.get_mut(at - 1).filter(|before| joins && !before.calls.is_empty()) {
            before.results_go_on = true;
        }
    }
}

/// Whether all results of an answer's calls stood behind those of another answer.
fn goes_on(item: &DraftMessage<'_>) -> bool {
    !item.calls.is_empty()
        && item.calls.iter().all(|call| {
            matches!(call.result, Some(DraftResult::Stored(result))
                if result.shape.as_ref().is_some_and(|shape| matches!(shape.0.first(), Some((key, Slot::Part(_))) if key.is_empty())))
        })
}
