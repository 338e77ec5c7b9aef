//! The first pass: every stored message with its calls, and each call with its stored result, in their order. A call whose content is
//! not stored is dropped, unless it is in the live turn (R12).

use super::input::ReplayInput;
use super::request_draft::{DraftCall, DraftMessage, DraftOrigin, DraftResult, RequestDraft};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::history::History;
use crate::message::{Message, Role};

/// The result of a call whose result was not stored, in a resumed run.
const WITHHELD: &str =
    "This call ran and was answered. Its arguments and its result were not kept; check before repeating it.";

/// Drafts the messages of the history, then those of the live turn.
pub(super) fn select<'h>(input: &ReplayInput<'h, '_>, report: &mut Report) -> RequestDraft<'h> {
    let ReplayInput { history, live, .. } = *input;
    let count = history.messages().len() + live.map_or(0, |live| live.messages().len());
    let mut messages = Vec::with_capacity(count);
    // What history has of the live turn already stands in the live turn, with its raw values.
    let run = live.and_then(|live| live.messages().first()).and_then(|first| first.run_id.as_ref());
    let is_live = |message: &Message| {
        run.is_some() && message.run_id.as_ref() == run && live.is_some_and(|live| live.message(&message.id).is_some())
    };
    for (at, message) in history.messages().iter().enumerate() {
        if is_live(message) {
            continue;
        }
        let calls = sent_calls(history, message, false, report);
        messages.push(draft_message(input, message, DraftOrigin::Stored(at), calls));
    }
    if let Some(live) = live {
        for (at, message) in live.messages().iter().enumerate() {
            let calls = sent_calls(live, message, true, report);
            messages.push(draft_message(input, message, DraftOrigin::Live(at), calls));
        }
    }
    RequestDraft { messages }
}

fn draft_message<'h>(
    input: &ReplayInput<'h, '_>,
    message: &'h Message,
    origin: DraftOrigin,
    calls: Vec<DraftCall<'h>>,
) -> DraftMessage<'h> {
    let extra_content = (input.extra_content)(message);
    DraftMessage { message, origin, calls, results_go_on: false, extra_content }
}

/// Returns the calls of a message that are sent, with their results. `live`: the message is in the live turn.
fn sent_calls<'h>(history: &'h History, message: &'h Message, live: bool, report: &mut Report) -> Vec<DraftCall<'h>> {
    let mut calls = Vec::new();
    if message.role == Role::Assistant {
        for invocation in history.calls_of(message) {
            let is_withheld = invocation.is_withheld() || invocation.has_withheld_result();
            if is_withheld && live {
                // In a resumed run the model must know that it called the tool.
                let result = invocation.result.as_ref().map_or(DraftResult::Closing(WITHHELD), DraftResult::Stored);
                calls.push(DraftCall { invocation, result: Some(result) });
                continue;
            }
            if is_withheld {
                let text = if invocation.is_withheld() {
                    "nothing is stored of this call but that it was made; it is left out"
                } else {
                    "the result of this call is withheld from the store; the call is left out"
                };
                let finding =
                    Finding::info(FindingCode::Redacted, text).of_message(&message.id).of_call(&invocation.call_id);
                report.push(finding.with_action(Action::Dropped));
                continue;
            }
            calls.push(DraftCall { invocation, result: invocation.result.as_ref().map(DraftResult::Stored) });
        }
    }
    calls
}
