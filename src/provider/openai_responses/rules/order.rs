//! Where outputs go: behind the calls of their step, before anybody speaks. Reasoning goes with the item after it.

use super::{Item, Kind};
use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::rules::{BodyPiece, ListItem, Pairing, Pairs, Plan, Violation, WireCall};
use crate::sorted::in_order;

/// Gives the list its new order. Gives the calls that lose their reasoning.
pub(super) fn place<'a>(
    plan: &mut Plan<'a, '_>,
    list: JsonRef<'a>,
    mut items: Vec<Item<'a>>,
    pairs: &Pairs<'a>,
    made: &dyn Fn(&WireCall<'a>) -> String,
) -> Vec<usize> {
    // Whether an output is where it may be.
    let stays = |a: usize| {
        pairs.results.get(a).is_some_and(|answer| answer.reply_to.is_some() || answer.pairing == Pairing::HeldByServer)
    };
    let mut outputs: Vec<usize> = Vec::new();
    let mut ends: Vec<Option<usize>> = vec![None; pairs.calls.len()];
    // Backwards: the last item of the step that each call belongs to, which is calls and what is between them, then outputs.
    let (mut next_kind, mut reach): (Option<Kind>, Option<usize>) = (None, None);
    let mut kept = Vec::with_capacity(items.len());
    for (at, item) in items.iter().enumerate().rev() {
        let keep = match item.kind {
            Kind::Gone => false,
            Kind::Output(a) => {
                outputs.push(at);
                stays(a)
            }
            Kind::Call(c) => pairs.calls.get(c).is_some_and(|call| !call.omitted),
            _ => true,
        };
        if !keep {
            continue;
        }
        kept.push(at);
        let spoken = matches!(next_kind, None | Some(Kind::Barrier | Kind::Said(_)));
        reach = match item.kind {
            Kind::Output(_) => Some(if matches!(next_kind, Some(Kind::Output(_))) { reach.unwrap_or(at) } else { at }),
            Kind::Call(_) => Some(if spoken { at } else { reach.unwrap_or(at) }),
            Kind::Barrier | Kind::Said(_) => None,
            _ if spoken => None,
            _ => reach,
        };
        if let Kind::Call(c) = item.kind
            && let Some(slot) = ends.get_mut(c)
        {
            *slot = reach;
        }
        next_kind = Some(item.kind);
    }
    outputs.reverse();
    let mut due: Vec<Vec<ListItem>> = Vec::new();
    due.resize_with(items.len(), Vec::new);
    for members in pairs.calls.chunk_by(|one, next| one.group == next.group) {
        let Some(first) = members.first().map(|call| pairs.calls_of(call.group).start) else { continue };
        let end = |at: usize| ends.get(first + at).copied().flatten();
        let mut moved: Vec<(usize, usize)> = Vec::new();
        for (at, call) in members.iter().enumerate() {
            if let (Some(a), Some(end)) = (call.answer.filter(|a| !stays(*a)), end(at)) {
                moved.push((a, end));
            }
        }
        for (a, end) in in_order(moved, &Ord::cmp) {
            if let (Some(due), Some(at)) = (due.get_mut(end), outputs.get(a)) {
                due.push(ListItem::Existing(*at));
            }
        }
        for (at, call) in members.iter().enumerate() {
            if call.answer.is_none()
                && !call.omitted
                && let Some(due) = end(at).and_then(|end| due.get_mut(end))
            {
                due.push(ListItem::New(BodyPiece::New(made(call))));
            }
        }
    }
    let mut order: Vec<ListItem> = Vec::with_capacity(items.len());
    for at in kept.into_iter().rev() {
        order.push(ListItem::Existing(at));
        if let Some(due) = due.get_mut(at) {
            order.append(due);
        }
    }
    let mut bare = Vec::new();
    let mut order = without_orphans(plan, order, &items, &mut bare);
    let mut pieces = Vec::with_capacity(items.len());
    for item in &mut items {
        pieces.push(item.piece.take());
    }
    plan.edits.reorder(list, &mut pieces, &mut order);
    bare
}

/// "Item 'rs_…' of type 'reasoning' was provided without its required following item" (continue#8933): also where the
/// message after it has lost its own id (recorded). `bare` takes the calls that lose their reasoning.
fn without_orphans<'a>(
    plan: &mut Plan<'a, '_>,
    order: Vec<ListItem>,
    items: &[Item<'a>],
    bare: &mut Vec<usize>,
) -> Vec<ListItem> {
    let (mut follower, mut kept) = (None, Vec::with_capacity(order.len()));
    // The calls of the step behind the item that is looked at.
    let mut step = Vec::new();
    for slot in order.into_iter().rev() {
        let item = if let ListItem::Existing(at) = slot { items.get(at) } else { None };
        let own = item.map_or(Kind::Output(usize::MAX), |item| item.kind);
        match own {
            Kind::Reasoning => {
                if matches!(follower, None | Some(Kind::Barrier | Kind::Output(_) | Kind::Said(false))) {
                    if let Some(item) = item {
                        let sentence = "Item of type 'reasoning' was provided without its required following item.";
                        plan.report(Violation::error(FindingCode::OrphanReasoning, sentence).at(item.value).dropped());
                    }
                    bare.append(&mut step);
                    continue;
                }
                step.clear();
            }
            Kind::Call(c) => step.push(c),
            Kind::Barrier | Kind::Output(_) => step.clear(),
            _ => {}
        }
        if own != Kind::Reasoning {
            follower = Some(own);
        }
        kept.push(slot);
    }
    kept.reverse();
    kept
}
