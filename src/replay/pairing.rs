//! Pairing, the last pass: every call gets a result or is dropped, and empty messages are dropped (R4, R5).

use super::input::ReplayInput;
use super::policy::DanglingCalls;
use super::request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::LateResult;
use crate::message::{CallMatching, Message, PartBody, ResultPlaces, Role, TemplateSlot, WireTemplate};
use crate::synthetic_result::{EXPIRED, INTERRUPTED, NOT_RUN, PENDING, WITHHELD};
use crate::tool::ToolInvocation;
use std::collections::BTreeSet;

/// Gives every call a result or drops it, and drops empty messages.
pub(super) fn pair_results<'h>(draft: &mut RequestDraft<'h>, input: &ReplayInput<'h, '_>, report: &mut Report) {
    let policy = input.policy;
    let keeps_open = input.dialect.is_some_and(|dialect| dialect.result_places() == ResultPlaces::Later);
    for item in &mut draft.messages {
        // A round of this session is dropped if none of its calls started. A round that was appended, or that an
        // application holds, may have run.
        let ours = item.message.run_id.is_some() && !item.message.source.is_of_provider();
        let never_ran = |call: &DraftCall<'_>| {
            let call = (call.result.is_none() && !call.invocation.is_deferred).then_some(call.invocation);
            ours && call.is_some_and(|call| call.started_at.is_none() && !call.stored_during_run)
        };
        let untouched = !item.is_acknowledged && item.calls.iter().all(never_ran);
        item.calls.retain_mut(|call| {
            let id = &call.invocation.call_id;
            if call.invocation.is_deferred && call.result.is_none() {
                defer(call, keeps_open, &item.message.id, report);
            } else if call.result.is_none() {
                let finding = Finding::info(FindingCode::DanglingCall, "a call without a result").of_message(&item.message.id).of_call(id);
                if untouched || !item.is_acknowledged && policy.dangling_calls() == DanglingCalls::Omit {
                    report.push(finding.with_action(Action::Dropped));
                    return false;
                }
                let text = if never_ran(call) { NOT_RUN } else { INTERRUPTED };
                call.result = Some(DraftResult::Closing(text));
                report.push(finding.with_action(Action::Synthesized));
            }
            if !item.is_acknowledged && call.invocation.replay_id.is_some() && !(id.is_empty() && ids_are_optional(item.message)) {
                let code = if id.is_empty() { FindingCode::InvalidCallId } else { FindingCode::DuplicateCallId };
                report.push(
                    Finding::info(code, "the call's id is missing or was used by an earlier call; call and result are sent with a new id")
                        .of_message(&item.message.id)
                        .of_call(id)
                        .with_action(Action::Renamed),
                );
            }
            true
        });
    }
    if keeps_open {
        give_outputs(draft, input);
    }
    draft.retain(&mut |item| item.is_sendable(true));
    join_results(draft);
    join_answers(draft);
}

/// Leaves a call open whose result comes later; in a dialect that allows no open call it gets a result that says so
/// (R75).
fn defer(call: &mut DraftCall<'_>, keeps_open: bool, message_id: &str, report: &mut Report) {
    if !keeps_open {
        call.result = Some(DraftResult::Placeholder(PENDING));
    }
    if call.invocation.awaits_result() {
        let finding = Finding::info(
            FindingCode::PendingCall,
            "the result of this call comes later; the request goes on without it",
        );
        let finding = finding.of_message(message_id).of_call(&call.invocation.call_id);
        report.push(finding.with_action(if keeps_open { Action::Kept } else { Action::Synthesized }));
    }
}

/// Turns late results into outputs of their calls, for a dialect in which an output may come later. A result whose call
/// is not in the request, and not at the service, stays a message.
fn give_outputs<'h>(draft: &mut RequestDraft<'h>, input: &ReplayInput<'h, '_>) {
    if !draft.messages.iter().any(|item| item.origin == DraftOrigin::LateResult) {
        return;
    }
    let is_open = |call: &&DraftCall<'h>| call.invocation.is_deferred;
    let open = draft.messages.iter().flat_map(|item| item.calls.iter().filter(is_open));
    let open: BTreeSet<&str> = open.map(|call| call.invocation.id.as_str()).collect();
    let is_answered = |call: &&ToolInvocation| call.result.is_some() || call.has_withheld_result();
    let in_live = |id: &str| input.live.and_then(|live| live.invocation(id).filter(is_answered));
    for item in draft.messages.iter_mut().filter(|item| item.origin == DraftOrigin::LateResult) {
        let Some(id) = LateResult::invocation_of(item.message) else { continue };
        let Some(invocation) = in_live(id).or_else(|| input.history.invocation(id)) else { continue };
        let at_service = input.delta.is_some() && !open.contains(id);
        let late = input.history.late_results().get(id);
        let is_expired = late.is_some_and(|late| std::ptr::eq(item.message, &late.expired));
        let result = match &invocation.result {
            Some(_) if is_expired => DraftResult::Placeholder(EXPIRED),
            Some(result) => DraftResult::Stored(result),
            None if invocation.has_withheld_result() => DraftResult::Placeholder(WITHHELD),
            None => continue,
        };
        if at_service || open.contains(id) {
            item.calls = vec![DraftCall { invocation, result: Some(result) }];
            item.is_acknowledged = at_service;
        }
    }
}

/// Returns true if the calls of a message's dialect need no id.
fn ids_are_optional(message: &Message) -> bool {
    message.dialect.is_some_and(|dialect| dialect.call_matching() == CallMatching::ByName)
}

/// Marks results that were received in one wire message with the user's text, so that they are sent so again.
fn join_results(draft: &mut RequestDraft<'_>) {
    for at in 1..draft.messages.len() {
        let joins =
            draft.messages.get(at).is_some_and(|item| {
                item.message.role == Role::User
                    && item.message.template.as_ref().is_some_and(|template| {
                        template.0.iter().any(|(_, slot)| *slot == TemplateSlot::ResultsThenParts)
                    })
            });
        if let Some(before) = draft.messages.get_mut(at - 1).filter(|before| joins && !before.calls.is_empty()) {
            before.results_go_on = true;
        }
    }
}

/// Marks consecutive answers whose results were received in one wire message, so that they are sent so again.
fn join_answers(draft: &mut RequestDraft<'_>) {
    // The number of results in the sequence so far, and in the wire message.
    let (mut count, mut whole) = (0_usize, 0_usize);
    for at in 1..draft.messages.len() {
        let Some([before, item]) = draft.messages.get_mut(at - 1..=at) else { continue };
        if count == 0 {
            (count, whole) = (before.calls.len(), came_among(before));
        }
        if count < whole && came_among(item) == whole && !before.results_go_on {
            before.results_go_on = true;
            count += item.calls.len();
        } else {
            count = 0;
        }
    }
}

/// Returns the number of results that were received in one wire message with those of an answer's calls. Returns 0 if
/// they were received alone, or if a call of the answer was dropped.
fn came_among(item: &DraftMessage<'_>) -> usize {
    let among = |call: &DraftCall<'_>| match call.result {
        Some(DraftResult::Stored(result)) => {
            result.template.as_ref().and_then(WireTemplate::place_among_results).map_or(0, |(_, all)| all as usize)
        }
        _ => 0,
    };
    let call_parts = item.message.parts.iter().filter(|part| matches!(part.body, PartBody::ToolCall { .. })).count();
    let mut calls = item.calls.iter().map(among);
    let first = calls.next().filter(|_| call_parts == item.calls.len()).unwrap_or(0);
    if calls.all(|among| among == first) { first } else { 0 }
}
