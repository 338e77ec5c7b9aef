//! Where results go when each is a message of its own (openai-chat, mistral): right after the message that calls. And what
//! every dialect reports of pairs.

use super::pair::{Pairing, Pairs, WireCall, WireResult};
use super::{BodyPiece, ListItem, Plan, Violation};
use crate::finding::{Action, FindingCode};
use crate::json::JsonRef;

/// An item of the list, as read.
#[derive(Debug)]
pub(crate) struct ListMessage {
    pub kind: ListMessageKind,
    /// As it is read; empty where nobody asks.
    pub role: &'static str,
    /// What stands for it in the new list.
    pub piece: BodyPiece,
    /// Parts that may not stay in it, to stand in a user message behind it.
    pub spill: Vec<BodyPiece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMessageKind {
    /// It calls: the group's number.
    ToolCalls(usize),
    /// It is a result.
    ToolResult,
    Other,
    /// It goes.
    Removed,
}

impl ListMessage {
    /// A user message of its spilled parts.
    pub fn spilled(&mut self) -> BodyPiece {
        BodyPiece::wrapped("{\"role\":\"user\",\"content\":[", std::mem::take(&mut self.spill), "]}")
    }

    /// Nothing of it stays but its spilled parts, if it has any.
    pub fn leave(&mut self) {
        self.kind = ListMessageKind::Removed;
        if !self.spill.is_empty() {
            self.kind = ListMessageKind::Other;
            self.piece = self.spilled();
        }
    }
}

/// Puts every result behind its call, in the order in which they stood, closes or leaves out what is open, and reports
/// it. `made` writes a synthetic result for a call.
pub(crate) fn place_messages<'a>(
    plan: &mut Plan<'a, '_>,
    list: JsonRef<'a>,
    mut messages: Vec<ListMessage>,
    pairs: &Pairs<'a>,
    words: &ErrorTemplates,
    made: &dyn Fn(&WireCall<'a>) -> String,
) {
    report_pairs(plan, pairs, words);
    // The message of each result.
    let mut answers: Vec<usize> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.kind == ListMessageKind::ToolResult {
            answers.push(at);
        }
    }
    let mut order: Vec<ListItem> = Vec::with_capacity(messages.len());
    for at in 0..messages.len() {
        let Some(kind) = messages.get(at).map(|message| message.kind) else { continue };
        if !matches!(kind, ListMessageKind::ToolCalls(_) | ListMessageKind::Other) {
            continue;
        }
        order.push(ListItem::Existing(at));
        if let ListMessageKind::ToolCalls(group) = kind {
            let mut spilled = Vec::new();
            for at in pairs.results_of(group).iter().filter_map(|a| answers.get(*a).copied()) {
                order.push(ListItem::Existing(at));
                if let Some(message) = messages.get_mut(at).filter(|message| !message.spill.is_empty()) {
                    spilled.push(ListItem::New(message.spilled()));
                }
            }
            for call in pairs.open_calls(group) {
                order.push(ListItem::New(BodyPiece::New(made(call))));
            }
            order.append(&mut spilled);
        }
        if let Some(message) = messages.get_mut(at).filter(|message| !message.spill.is_empty()) {
            order.push(ListItem::New(message.spilled()));
        }
    }
    let mut pieces = Vec::with_capacity(messages.len());
    for message in &mut messages {
        pieces.push(message.piece.take());
    }
    plan.edits.reorder(list, &mut pieces, &mut order);
}

/// The provider's own sentences; `{}` stands for the id.
pub(crate) struct ErrorTemplates {
    pub dangling: &'static str,
    pub orphan: &'static str,
    pub duplicate: &'static str,
}

/// Reports open calls, orphans, doubles, and results out of their place.
pub(crate) fn report_pairs<'a>(plan: &mut Plan<'a, '_>, pairs: &Pairs<'a>, words: &ErrorTemplates) {
    for members in pairs.calls.chunk_by(|one, next| one.group == next.group) {
        let some = members.iter().any(|call| call.answer.is_some());
        for call in members.iter().filter(|call| call.answer.is_none()) {
            let code = if some { FindingCode::MissingParallelResult } else { FindingCode::DanglingCall };
            let action = if call.omitted { Action::Dropped } else { Action::Synthesized };
            plan.report(
                Violation::error(code, words.dangling)
                    .at(call.location)
                    .of_call(call.id.as_ref().unwrap_or(&call.new_id))
                    .with_action(action),
            );
        }
    }
    plan.report_mentions(pairs);
    for answer in &pairs.results {
        let (code, action, sentence) = match answer.pairing {
            Pairing::HeldByServer => continue,
            Pairing::Orphan => (FindingCode::OrphanResult, Action::Dropped, words.orphan),
            Pairing::Duplicate => (FindingCode::DuplicateResult, Action::Dropped, words.duplicate),
            Pairing::Paired(_) => {
                let Some(call) = pairs.call_of(answer).filter(|call| !in_place(answer, call)) else { continue };
                if answer.order < call.order {
                    (FindingCode::ResultBeforeCall, Action::Moved, words.orphan)
                } else {
                    (FindingCode::InterposedMessage, Action::Moved, words.dangling)
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

/// Whether a result stands in the reply to its call's group.
pub(crate) fn in_place(answer: &WireResult<'_>, call: &WireCall<'_>) -> bool {
    answer.reply_to == Some(call.group)
}
