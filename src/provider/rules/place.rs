//! Where results go when each is a message of its own (openai-chat, mistral): right after the message that calls. And what
//! every dialect reports of pairs.

use super::pair::{Answer, Call, Fate, Pairs};
use super::{Piece, Plan};
use crate::finding::Action;
use crate::json::JsonRef;

/// An item of the list, as read.
#[derive(Debug)]
pub(crate) struct Message {
    pub kind: MessageKind,
    /// As it is read; empty where nobody asks.
    pub role: &'static str,
    /// What stands for it in the new list.
    pub piece: Piece,
    /// Parts that may not stay in it, to stand in a user message behind it.
    pub spill: Vec<Piece>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageKind {
    /// It calls: the group's number.
    Calls(usize),
    /// It is a result.
    Answer,
    Other,
    /// It goes.
    Gone,
}

impl Message {
    /// A user message of its spilled parts.
    pub fn spilled(&mut self) -> Piece {
        Piece::wrapped("{\"role\":\"user\",\"content\":[", std::mem::take(&mut self.spill), "]}")
    }

    /// Nothing of it stays but its spilled parts, if it has any.
    pub fn leave(&mut self) {
        self.kind = MessageKind::Gone;
        if !self.spill.is_empty() {
            self.kind = MessageKind::Other;
            self.piece = self.spilled();
        }
    }
}

/// An item of a new list.
pub(crate) enum Slot {
    /// One of the old list, by its place.
    Old(usize),
    New(Piece),
}

/// Puts every result behind its call, in the order in which they stood, closes or leaves out what is open, and reports
/// it. `made` writes a synthetic result for a call.
pub(crate) fn place_messages<'a>(
    plan: &mut Plan<'a, '_>,
    list: JsonRef<'a>,
    mut messages: Vec<Message>,
    pairs: &Pairs<'a>,
    words: &Words,
    made: &dyn Fn(&Call<'a>) -> String,
) {
    report_pairs(plan, pairs, words);
    // The message of each result.
    let mut answers: Vec<usize> = Vec::new();
    for (at, message) in messages.iter().enumerate() {
        if message.kind == MessageKind::Answer {
            answers.push(at);
        }
    }
    let mut order: Vec<Slot> = Vec::with_capacity(messages.len());
    for at in 0..messages.len() {
        let Some(kind) = messages.get(at).map(|message| message.kind) else { continue };
        if !matches!(kind, MessageKind::Calls(_) | MessageKind::Other) {
            continue;
        }
        order.push(Slot::Old(at));
        if let MessageKind::Calls(group) = kind {
            let mut spilled = Vec::new();
            for at in pairs.given(group).iter().filter_map(|a| answers.get(*a).copied()) {
                order.push(Slot::Old(at));
                if let Some(message) = messages.get_mut(at).filter(|message| !message.spill.is_empty()) {
                    spilled.push(Slot::New(message.spilled()));
                }
            }
            for call in pairs.open(group) {
                order.push(Slot::New(Piece::New(made(call))));
            }
            order.append(&mut spilled);
        }
        if let Some(message) = messages.get_mut(at).filter(|message| !message.spill.is_empty()) {
            order.push(Slot::New(message.spilled()));
        }
    }
    let mut pieces = Vec::with_capacity(messages.len());
    for message in &mut messages {
        pieces.push(message.piece.take());
    }
    plan.edits.reorder(list, &mut pieces, &mut order);
}

/// The provider's own sentences; `{}` stands for the id.
pub(crate) struct Words {
    pub dangling: &'static str,
    pub orphan: &'static str,
    pub duplicate: &'static str,
}

/// Reports open calls, orphans, doubles, and results out of their place.
pub(crate) fn report_pairs<'a>(plan: &mut Plan<'a, '_>, pairs: &Pairs<'a>, words: &Words) {
    for members in pairs.calls.chunk_by(|one, next| one.group == next.group) {
        let some = members.iter().any(|call| call.answer.is_some());
        for call in members.iter().filter(|call| call.answer.is_none()) {
            let code = if some { "missing_parallel_result" } else { "dangling_call" };
            let action = if call.omitted { Action::Dropped } else { Action::Synthesized };
            plan.call_error(code, call.place, call.id.as_ref().unwrap_or(&call.new_id), action, words.dangling);
        }
    }
    plan.report_mentions(pairs);
    for answer in &pairs.answers {
        let (code, action, sentence) = match answer.fate {
            Fate::Held => continue,
            Fate::Orphan => ("orphan_result", Action::Dropped, words.orphan),
            Fate::Duplicate => ("duplicate_result", Action::Dropped, words.duplicate),
            Fate::Answers(_) => {
                let Some(call) = pairs.answered_by(answer).filter(|call| !in_place(answer, call)) else { continue };
                if answer.order < call.order {
                    ("result_before_call", Action::Moved, words.orphan)
                } else {
                    ("interposed_message", Action::Moved, words.dangling)
                }
            }
        };
        plan.call_error(code, answer.place, answer.id.as_deref().unwrap_or(""), action, sentence);
    }
}

/// Whether a result stands in the reply to its call's group.
pub(crate) fn in_place(answer: &Answer<'_>, call: &Call<'_>) -> bool {
    answer.near == Some(call.group)
}
