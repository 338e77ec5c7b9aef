//! The first pass: every stored message in its order, its calls in theirs, each with its stored result.

use super::draft::{Draft, DraftCall, DraftMessage, DraftResult, Origin};
use crate::history::History;
use crate::message::{Message, Role};

pub(super) fn select<'h>(history: &'h History, live: Option<&'h History>) -> Draft<'h> {
    let count = history.messages().len() + live.map_or(0, |live| live.messages().len());
    let mut messages = Vec::with_capacity(count);
    messages.extend(
        history.messages().iter().enumerate().map(|(at, message)| draft_message(history, message, Origin::Stored(at))),
    );
    if let Some(live) = live {
        messages.extend(
            live.messages().iter().enumerate().map(|(at, message)| draft_message(live, message, Origin::Live(at))),
        );
    }
    Draft { messages }
}

fn draft_message<'h>(history: &'h History, message: &'h Message, origin: Origin) -> DraftMessage<'h> {
    let mut calls = Vec::new();
    if message.role == Role::Assistant {
        calls.extend(
            history.calls_of(message).map(|invocation| DraftCall {
                invocation,
                result: invocation.result.as_ref().map(DraftResult::Stored),
            }),
        );
    }
    DraftMessage { message, origin, calls, results_go_on: false }
}
