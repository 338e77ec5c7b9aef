//! Where results go when each is a message of its own (openai-chat, mistral): right after the message that calls.

use super::pair::{Answer, Call, Fate, Pairs};
use super::{Dangling, Piece, Plan};
use crate::finding::Action;
use crate::sorted::in_order;

/// An item of the list, as read.
#[derive(Debug)]
pub(crate) struct Message {
    pub kind: MessageKind,
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
    Answer(usize),
    Other,
    /// It goes.
    Gone,
}

/// Puts every result behind its call, in the order in which they stood, closes or leaves out what is open, and reports
/// it. None where nothing changes. `made` writes a synthetic result for an id, `user` a message around spilled parts.
pub(crate) fn place_messages(
    plan: &mut Plan<'_, '_>,
    messages: Vec<Message>,
    pairs: &Pairs<'_>,
    words: &Words,
    made: impl Fn(&str) -> String,
    user: impl Fn(Vec<Piece>) -> Piece,
) -> Option<Vec<Piece>> {
    let groups = pairs.groups();
    report_pairs(plan, pairs, &groups, words);
    // The message of each result, taken when its call is reached.
    let mut answers: Vec<Option<usize>> = vec![None; pairs.answers.len()];
    for (at, message) in messages.iter().enumerate() {
        if let MessageKind::Answer(a) = message.kind
            && let Some(slot) = answers.get_mut(a)
        {
            *slot = Some(at);
        }
    }
    let mut fresh: Vec<Piece> = Vec::new();
    let kinds: Vec<(MessageKind, bool)> = messages.iter().map(|m| (m.kind, m.spill.is_empty())).collect();
    let mut plan_order: Vec<Slot> = Vec::with_capacity(messages.len());
    for (at, (kind, whole)) in kinds.iter().enumerate() {
        match kind {
            MessageKind::Gone | MessageKind::Answer(_) => continue,
            MessageKind::Other => plan_order.push(Slot::Old(at)),
            MessageKind::Calls(group) => {
                plan_order.push(Slot::Old(at));
                let members = groups.get(*group).map_or(&[][..], Vec::as_slice);
                let given: Vec<usize> = members.iter().filter_map(|c| pairs.calls.get(*c)?.answer).collect();
                let given = in_order(given, &Ord::cmp);
                let given: Vec<usize> = given.iter().filter_map(|a| answers.get(*a).copied().flatten()).collect();
                plan_order.extend(given.iter().map(|at| Slot::Old(*at)));
                for call in members.iter().filter_map(|c| pairs.calls.get(*c)) {
                    if call.answer.is_none() && !call.omitted {
                        plan_order.push(Slot::New(fresh.len()));
                        fresh.push(Piece::New(made(&call.new_id)));
                    }
                }
                plan_order.extend(
                    given
                        .iter()
                        .filter(|at| kinds.get(**at).is_some_and(|(_, whole)| !whole))
                        .map(|at| Slot::Spill(*at)),
                );
            }
        }
        if !whole {
            plan_order.push(Slot::Spill(at));
        }
    }
    let same = plan_order.len() == messages.len()
        && plan_order.iter().enumerate().all(|(at, slot)| matches!(slot, Slot::Old(old) if *old == at));
    let same = same && messages.iter().all(|message| matches!(message.piece, Piece::Source(_)));
    if same {
        return None;
    }
    let mut pieces: Vec<(Option<Piece>, Vec<Piece>)> = messages.into_iter().map(|m| (Some(m.piece), m.spill)).collect();
    let mut fresh: Vec<Option<Piece>> = fresh.into_iter().map(Some).collect();
    Some(
        plan_order
            .into_iter()
            .filter_map(|slot| match slot {
                Slot::Old(at) => pieces.get_mut(at)?.0.take(),
                Slot::New(at) => fresh.get_mut(at)?.take(),
                Slot::Spill(at) => Some(user(std::mem::take(&mut pieces.get_mut(at)?.1))),
            })
            .collect(),
    )
}

enum Slot {
    Old(usize),
    New(usize),
    Spill(usize),
}

/// The provider's own sentences; `{id}` stands for the id.
pub(crate) struct Words {
    pub dangling: &'static str,
    pub orphan: &'static str,
    pub duplicate: &'static str,
}

/// Leaves out the open calls where that was asked for. Before ids are given, so that none is lost to a call that goes.
pub(crate) fn omit_open(plan: &Plan<'_, '_>, pairs: &mut Pairs<'_>) {
    if plan.options.dangling == Dangling::Omit {
        for call in &mut pairs.calls {
            call.omitted = call.wants && call.answer.is_none();
        }
    }
}

/// Reports open calls, orphans, doubles, and results out of their place.
pub(crate) fn report_pairs(plan: &mut Plan<'_, '_>, pairs: &Pairs<'_>, groups: &[Vec<usize>], words: &Words) {
    for members in groups {
        let some = members.iter().any(|c| pairs.calls.get(*c).is_some_and(|call| call.answer.is_some()));
        for call in members.iter().filter_map(|c| pairs.calls.get(*c)) {
            if call.answer.is_none() && call.wants {
                let code = if some { "missing_parallel_result" } else { "dangling_call" };
                let action = if call.omitted { Action::Dropped } else { Action::Synthesized };
                let id = shown(call);
                plan.call_error(code, &call.path, id, action, crate::text::replaced(words.dangling, "{id}", id));
            }
        }
    }
    for answer in &pairs.answers {
        let id = answer.id.as_deref().unwrap_or("");
        match answer.fate {
            Fate::Held => {}
            Fate::Orphan => plan.call_error(
                "orphan_result",
                &answer.path,
                id,
                Action::Dropped,
                crate::text::replaced(words.orphan, "{id}", id),
            ),
            Fate::Duplicate(_) => plan.call_error(
                "duplicate_result",
                &answer.path,
                id,
                Action::Dropped,
                crate::text::replaced(words.duplicate, "{id}", id),
            ),
            Fate::Answers(c) => {
                let Some(call) = pairs.calls.get(c).filter(|call| !in_place(answer, call)) else { continue };
                let (code, sentence) = if answer.order < call.order {
                    ("result_before_call", words.orphan)
                } else {
                    ("interposed_message", words.dangling)
                };
                plan.call_error(code, &answer.path, id, Action::Moved, crate::text::replaced(sentence, "{id}", id));
            }
        }
    }
}

/// Whether a result stands in the reply to its call's group.
pub(crate) fn in_place(answer: &Answer<'_>, call: &Call) -> bool {
    answer.near == Some(call.group)
}

fn shown(call: &Call) -> &str {
    call.id.as_deref().unwrap_or(&call.new_id)
}
