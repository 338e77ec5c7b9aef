//! Placement of results that are messages of their own, directly after the message with their calls, and the report
//! about pairs, which all dialects share.

use super::call_result_pairs::{Pairing, Pairs, WireCall, WireResult};
use super::{BodyPiece, ListItem, Plan, Violation};
use crate::finding::{Action, FindingCode};
use crate::json::JsonRef;

/// An item of the list.
#[derive(Debug)]
pub(crate) struct ListMessage {
    pub kind: ListMessageKind,
    /// The role as which the rules read it; empty if no rule depends on it.
    pub role: &'static str,
    /// What the repaired list has for it.
    pub piece: BodyPiece,
    /// Parts that its role cannot have. They move to a user message after it.
    pub moved_parts: Vec<BodyPiece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ListMessageKind {
    /// A message with calls, by the number of their group.
    ToolCalls(usize),
    ToolResult,
    Other,
    /// A message that the repair removes.
    Removed,
}

impl ListMessage {
    /// Takes the moved parts, and returns the user message that holds them.
    pub fn take_moved_parts(&mut self) -> BodyPiece {
        BodyPiece::wrapped("{\"role\":\"user\",\"content\":[", std::mem::take(&mut self.moved_parts), "]}")
    }

    /// Removes the message. Moved parts, if it has any, take its place.
    pub fn remove(&mut self) {
        self.kind = ListMessageKind::Removed;
        if !self.moved_parts.is_empty() {
            self.kind = ListMessageKind::Other;
            self.piece = self.take_moved_parts();
        }
    }
}

/// What [`place_messages`] arranges, and how.
pub(crate) struct ListPlacement<'a, 'r> {
    /// The list in the body.
    pub list: JsonRef<'a>,
    /// The items of the list, in its order.
    pub messages: Vec<ListMessage>,
    pub templates: &'r ErrorTemplates,
    /// Writes the result that a call without one gets.
    pub synthesize: &'r dyn Fn(&WireCall<'a>) -> String,
}

/// Reports the violations of pairing, and plans the list in which the results follow the message with their calls, in
/// their order in the body. Calls without a result get a synthetic one, unless they are omitted.
pub(crate) fn place_messages<'a>(plan: &mut Plan<'a, '_>, pairs: &Pairs<'a>, placement: ListPlacement<'a, '_>) {
    let ListPlacement { list, mut messages, templates, synthesize } = placement;
    report_pairs(plan, pairs, templates);
    if plan.is_over_budget() {
        return;
    }
    // By index of a result: the index of its message.
    let mut result_messages: Vec<usize> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.kind == ListMessageKind::ToolResult {
            result_messages.push(at);
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
            let mut after_results = Vec::new();
            for at in pairs.results_of(group).iter().filter_map(|a| result_messages.get(*a).copied()) {
                order.push(ListItem::Existing(at));
                if let Some(message) = messages.get_mut(at).filter(|message| !message.moved_parts.is_empty()) {
                    after_results.push(ListItem::New(message.take_moved_parts()));
                }
            }
            for call in pairs.open_calls(group) {
                order.push(ListItem::New(BodyPiece::New(synthesize(call))));
            }
            order.append(&mut after_results);
        }
        if let Some(message) = messages.get_mut(at).filter(|message| !message.moved_parts.is_empty()) {
            order.push(ListItem::New(message.take_moved_parts()));
        }
    }
    let mut pieces = Vec::with_capacity(messages.len());
    for message in &mut messages {
        pieces.push(message.piece.take());
    }
    plan.edits.reorder(list, &mut pieces, &mut order);
}

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
