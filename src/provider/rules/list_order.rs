//! The order of a list whose results are messages of their own: directly after the message with their calls.

use super::call_result_pairs::{Pairing, Pairs, WireCall};
use super::pair_report::{ErrorTemplates, report_pairs};
use super::{BodyPiece, ListItem, Plan};
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
    /// Results whose calls the server stores are placed before all else.
    pub held_results_first: bool,
}

/// Reports the violations of pairing, and plans the list in which the results follow the message with their calls, in
/// their order in the body. Calls without a result get a synthetic one, unless they are omitted. A result whose call
/// the server stores keeps its place, unless those come first.
pub(crate) fn place_messages<'a>(plan: &mut Plan<'a, '_>, pairs: &Pairs<'a>, placement: ListPlacement<'a, '_>) {
    let ListPlacement { list, mut messages, templates, synthesize, held_results_first } = placement;
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
    let is_held = |at: usize| {
        let index = result_messages.binary_search(&at).ok();
        let result = index.and_then(|index| pairs.results.get(index));
        result.is_some_and(|result| result.pairing == Pairing::HeldByServer)
    };
    let mut order: Vec<ListItem> = Vec::with_capacity(messages.len());
    if held_results_first {
        order.extend(result_messages.iter().copied().filter(|at| is_held(*at)).map(ListItem::Existing));
    }
    for at in 0..messages.len() {
        let Some(kind) = messages.get(at).map(|message| message.kind) else { continue };
        match kind {
            ListMessageKind::ToolResult if is_held(at) && !held_results_first => {}
            ListMessageKind::ToolCalls(_) | ListMessageKind::Other => {}
            ListMessageKind::ToolResult | ListMessageKind::Removed => continue,
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
