//! The order of items: outputs follow the calls of their step, and reasoning the item that it belongs to.

use super::input_item::{InputItem, InputKind};
use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::rules::{BodyPiece, ListItem, Pairing, Pairs, Plan, Violation, WireCall};

/// Places the outputs of a body.
pub(super) struct OutputPlacement<'p, 'a> {
    pub pairs: &'p Pairs<'a>,
    /// Returns an output for a call that has none.
    pub synthetic_output: &'p dyn Fn(&WireCall<'a>) -> String,
}

/// The items that keep their place, and where outputs that do not are inserted.
struct StepEnds {
    /// Indices of the items that keep their place, in descending order.
    kept: Vec<usize>,
    /// Indices of the items that are outputs.
    outputs: Vec<usize>,
    /// By call: the index of the last item of its step.
    ends: Vec<Option<usize>>,
}

impl<'a> OutputPlacement<'_, 'a> {
    /// Gives the list its new order. Returns the indices of the calls whose reasoning is removed.
    pub fn apply(&self, plan: &mut Plan<'a, '_>, list: JsonRef<'a>, mut items: Vec<InputItem<'a>>) -> Vec<usize> {
        let steps = self.step_ends(&items);
        let mut inserted = self.insertions(&steps, items.len());
        let mut order: Vec<ListItem> = Vec::with_capacity(items.len());
        for at in steps.kept.into_iter().rev() {
            order.push(ListItem::Existing(at));
            if let Some(after) = inserted.get_mut(at) {
                order.append(after);
            }
        }
        let mut calls_without_reasoning = Vec::new();
        let mut order = remove_orphaned_reasoning(plan, order, &items, &mut calls_without_reasoning);
        let mut pieces: Vec<BodyPiece> = items.iter_mut().map(|item| item.piece.take()).collect();
        plan.edits.reorder(list, &mut pieces, &mut order);
        calls_without_reasoning
    }

    /// Returns true if an output keeps its place.
    fn output_stays(&self, index: usize) -> bool {
        let stays = |pairing, reply_to: Option<usize>| reply_to.is_some() || pairing == Pairing::HeldByServer;
        self.pairs.results.get(index).is_some_and(|result| stays(result.pairing, result.reply_to))
    }

    fn stays(&self, item: &InputItem<'a>) -> bool {
        match item.kind {
            InputKind::Removed => false,
            InputKind::Output(index) => self.output_stays(index),
            InputKind::Call(index) => self.pairs.calls.get(index).is_some_and(|call| !call.omitted),
            _ => true,
        }
    }

    /// Finds the end of each call's step. A step is calls and the items between them, then outputs. Items are visited
    /// from the last to the first.
    fn step_ends(&self, items: &[InputItem<'a>]) -> StepEnds {
        let mut outputs = Vec::new();
        let mut ends: Vec<Option<usize>> = vec![None; self.pairs.calls.len()];
        let mut kept = Vec::with_capacity(items.len());
        // The kind of the next item that is kept, and the end of the step that it belongs to.
        let (mut next_kind, mut end): (Option<InputKind>, Option<usize>) = (None, None);
        for (at, item) in items.iter().enumerate().rev() {
            if matches!(item.kind, InputKind::Output(_)) {
                outputs.push(at);
            }
            if !self.stays(item) {
                continue;
            }
            kept.push(at);
            let is_last = matches!(next_kind, None | Some(InputKind::InputMessage | InputKind::AnswerMessage { .. }));
            end = match item.kind {
                kind if kind.is_output() && next_kind.is_some_and(InputKind::is_output) => end.or(Some(at)),
                kind if kind.is_output() => Some(at),
                InputKind::Call(_) if is_last => Some(at),
                InputKind::Call(_) => end.or(Some(at)),
                InputKind::InputMessage | InputKind::AnswerMessage { .. } => None,
                _ if is_last => None,
                _ => end,
            };
            if let InputKind::Call(index) = item.kind
                && let Some(slot) = ends.get_mut(index)
            {
                *slot = end;
            }
            next_kind = Some(item.kind);
        }
        outputs.reverse();
        StepEnds { kept, outputs, ends }
    }

    /// Returns, by item, what is inserted after it: first the outputs that move there, then synthetic ones.
    fn insertions(&self, steps: &StepEnds, item_count: usize) -> Vec<Vec<ListItem>> {
        let mut inserted: Vec<Vec<ListItem>> = Vec::new();
        inserted.resize_with(item_count, Vec::new);
        let end_of = |call: usize| steps.ends.get(call).copied().flatten();
        for group in self.pairs.calls.chunk_by(|one, next| one.group == next.group) {
            let Some(first) = group.first().map(|call| self.pairs.calls_of(call.group).start) else { continue };
            let mut moved: Vec<(usize, usize)> = Vec::new();
            for (index, call) in (first..).zip(group) {
                let output = call.result.filter(|output| !self.output_stays(*output));
                moved.extend(output.zip(end_of(index)));
            }
            moved.sort_unstable();
            for (output, end) in moved {
                if let (Some(after), Some(at)) = (inserted.get_mut(end), steps.outputs.get(output)) {
                    after.push(ListItem::Existing(*at));
                }
            }
            for (index, call) in (first..).zip(group).filter(|(_, call)| call.lacks_result() && !call.omitted) {
                if let Some(after) = end_of(index).and_then(|end| inserted.get_mut(end)) {
                    after.push(ListItem::New(BodyPiece::New((self.synthetic_output)(call))));
                }
            }
        }
        inserted
    }
}

/// Removes reasoning that no item of the model follows: "Item 'rs_…' of type 'reasoning' was provided without its
/// required following item" (continue#8933). A message that follows must have its id (recorded).
/// `calls_without_reasoning` receives the calls that belonged to it.
fn remove_orphaned_reasoning<'a>(
    plan: &mut Plan<'a, '_>,
    order: Vec<ListItem>,
    items: &[InputItem<'a>],
    calls_without_reasoning: &mut Vec<usize>,
) -> Vec<ListItem> {
    let (mut follower, mut kept) = (None, Vec::with_capacity(order.len()));
    // The calls between the current item and the end of its step.
    let mut step_calls = Vec::new();
    for list_item in order.into_iter().rev() {
        let item = if let ListItem::Existing(at) = list_item { items.get(at) } else { None };
        // A new item is a synthetic output.
        let kind = item.map_or(InputKind::Output(usize::MAX), |item| item.kind);
        match kind {
            InputKind::Reasoning if !can_follow_reasoning(follower) => {
                if let Some(item) = item {
                    let sentence = "Item of type 'reasoning' was provided without its required following item.";
                    plan.report(Violation::error(FindingCode::OrphanReasoning, sentence).at(item.value).dropped());
                }
                calls_without_reasoning.append(&mut step_calls);
                continue;
            }
            InputKind::Call(index) => step_calls.push(index),
            InputKind::Reasoning | InputKind::InputMessage => step_calls.clear(),
            kind if kind.is_output() => step_calls.clear(),
            _ => {}
        }
        if kind != InputKind::Reasoning {
            follower = Some(kind);
        }
        kept.push(list_item);
    }
    kept.reverse();
    kept
}

/// Returns true if OpenAI accepts an item after reasoning.
fn can_follow_reasoning(follower: Option<InputKind>) -> bool {
    follower.is_some_and(|kind| {
        !kind.is_output() && !matches!(kind, InputKind::InputMessage | InputKind::AnswerMessage { has_id: false })
    })
}
