//! Where outputs go: behind the calls of their step, before anybody speaks. Reasoning goes with the item after it.

use super::Item;
use crate::finding::Action;
use crate::provider::rules::{Call, Pairs, Piece, Plan};
use crate::sorted::in_order;

enum Slot {
    Old(usize),
    New(Piece),
}

/// The new list, or none where nothing changes. `stays` tells whether an output is where it may be; `bare` takes the calls
/// that lose their reasoning.
pub(super) fn place(
    plan: &mut Plan<'_, '_>,
    items: Vec<(Item, Piece)>,
    pairs: &Pairs<'_>,
    groups: &[Vec<usize>],
    stays: impl Fn(usize) -> bool,
    made: impl Fn(&Call) -> String,
    bare: &mut Vec<usize>,
) -> Option<Vec<Piece>> {
    let kinds: Vec<Item> = items.iter().map(|(item, _)| *item).collect();
    let kept: Vec<usize> = kinds
        .iter()
        .enumerate()
        .filter(|(_, kind)| match kind {
            Item::Gone => false,
            Item::Output(a) => stays(*a),
            Item::Call(c) => pairs.calls.get(*c).is_some_and(|call| !call.omitted),
            _ => true,
        })
        .map(|(at, _)| at)
        .collect();
    let mut outputs: Vec<Option<usize>> = vec![None; pairs.answers.len()];
    let mut ends: Vec<Option<usize>> = vec![None; pairs.calls.len()];
    for (at, kind) in kinds.iter().enumerate() {
        if let Item::Output(a) = kind
            && let Some(slot) = outputs.get_mut(*a)
        {
            *slot = Some(at);
        }
    }
    // Backwards: the last item of the step that each call belongs to, which is calls and what is between them, then outputs.
    let (mut next_kind, mut reach): (Option<Item>, Option<usize>) = (None, None);
    for at in kept.iter().rev().copied() {
        let Some(kind) = kinds.get(at).copied() else { continue };
        let spoken = matches!(next_kind, None | Some(Item::Barrier | Item::Said(_)));
        reach = match kind {
            Item::Output(_) => Some(if matches!(next_kind, Some(Item::Output(_))) { reach.unwrap_or(at) } else { at }),
            Item::Call(_) => Some(if spoken { at } else { reach.unwrap_or(at) }),
            Item::Barrier | Item::Said(_) => None,
            _ if spoken => None,
            _ => reach,
        };
        if let Item::Call(c) = kind
            && let Some(slot) = ends.get_mut(c)
        {
            *slot = reach;
        }
        next_kind = Some(kind);
    }
    let mut due: Vec<Vec<Slot>> = Vec::new();
    due.resize_with(items.len(), Vec::new);
    for members in groups {
        let mut moved: Vec<(usize, usize)> = Vec::new();
        for c in members.iter().copied() {
            let (Some(call), Some(end)) = (pairs.calls.get(c), ends.get(c).copied().flatten()) else { continue };
            moved.extend(call.answer.filter(|a| !stays(*a)).map(|a| (a, end)));
        }
        let moved = in_order(moved, &Ord::cmp);
        for (a, end) in moved {
            if let Some(due) = due.get_mut(end) {
                due.extend(outputs.get(a).copied().flatten().map(Slot::Old));
            }
        }
        for c in members.iter().copied() {
            let (Some(call), Some(end)) = (pairs.calls.get(c), ends.get(c).copied().flatten()) else { continue };
            if call.wants
                && call.answer.is_none()
                && !call.omitted
                && let Some(due) = due.get_mut(end)
            {
                due.push(Slot::New(Piece::New(made(call))));
            }
        }
    }
    let mut order: Vec<Slot> = Vec::with_capacity(items.len());
    for at in kept {
        order.push(Slot::Old(at));
        order.extend(due.get_mut(at).map(std::mem::take).unwrap_or_default());
    }
    let order = without_orphans(plan, order, &kinds, bare);
    let same = order.len() == items.len()
        && order.iter().enumerate().all(|(at, slot)| matches!(slot, Slot::Old(old) if *old == at));
    if same && items.iter().all(|(_, piece)| matches!(piece, Piece::Source(_))) {
        return None;
    }
    let mut pieces: Vec<Option<Piece>> = items.into_iter().map(|(_, piece)| Some(piece)).collect();
    Some(
        order
            .into_iter()
            .filter_map(|slot| match slot {
                Slot::Old(at) => pieces.get_mut(at)?.take(),
                Slot::New(piece) => Some(piece),
            })
            .collect(),
    )
}

/// "Item 'rs_…' of type 'reasoning' was provided without its required following item" (continue#8933): also where the
/// message after it has lost its own id (recorded).
fn without_orphans(plan: &mut Plan<'_, '_>, order: Vec<Slot>, kinds: &[Item], bare: &mut Vec<usize>) -> Vec<Slot> {
    let kind = |slot: &Slot| match slot {
        Slot::Old(at) => kinds.get(*at).copied(),
        Slot::New(_) => Some(Item::Output(usize::MAX)),
    };
    let (mut follower, mut kept) = (None, Vec::with_capacity(order.len()));
    // The calls of the step behind the item that is looked at.
    let mut step = Vec::new();
    for slot in order.into_iter().rev() {
        let own = kind(&slot);
        if own == Some(Item::Reasoning) {
            if matches!(follower, None | Some(Item::Barrier | Item::Output(_) | Item::Said(false))) {
                if let Slot::Old(at) = slot {
                    plan.error(
                        "orphan_reasoning",
                        format!("{}/{at}", plan.base),
                        Action::Dropped,
                        "Item of type 'reasoning' was provided without its required following item.",
                    );
                }
                bare.append(&mut step);
                continue;
            }
            step.clear();
        } else {
            match own {
                Some(Item::Call(c)) => step.push(c),
                Some(Item::Barrier | Item::Output(_)) => step.clear(),
                _ => {}
            }
            follower = own;
        }
        kept.push(slot);
    }
    kept.reverse();
    kept
}
