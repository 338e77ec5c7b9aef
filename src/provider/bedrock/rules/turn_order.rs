//! The order of roles. Checked when all results are in their final places.

use crate::finding::{Action, FindingCode};
use crate::json::JsonRef;
use crate::provider::bedrock::block::{CACHE_POINT, kind_of};
use crate::provider::rules::{Block, BlockKind, Plan, Speaker, Turn, Violation};

/// The block of a user turn that is added only because Converse requires one.
const CONTINUE_BLOCK: &str = "{\"text\":\"Continue.\"}";
/// The block of a model turn that separates results from the user's text.
const SEPARATING_BLOCK: &str = "{\"text\":\".\"}";

const STARTS_WITH_USER: &str =
    "A conversation must start with a user message. Try again with a conversation that starts with a user message.";
const ALTERNATES: &str = "A conversation must alternate between user and assistant roles. Make sure the conversation alternates between user and assistant roles and try again.";
const SAME_TURN: &str = "Conversation blocks and tool result blocks cannot be provided in the same turn.";

fn is_result(block: &Block<'_>) -> bool {
    matches!(block.kind, BlockKind::ToolResult(_))
}

/// Merges turns of one speaker in a row, and adds a user turn if the conversation starts with the model's. A system
/// message separates turns.
pub(super) fn alternate<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: &mut Vec<Turn<'a>>) {
    let mut before: Option<usize> = None;
    let mut merged: Vec<usize> = Vec::new();
    for at in 0..turns.len() {
        let (earlier, rest) = turns.split_at_mut(at);
        let Some(turn) = rest.first_mut().filter(|turn| !turn.removed) else { continue };
        let last = before.and_then(|index| earlier.get_mut(index)).filter(|last| last.speaker == turn.speaker);
        let Some(last) = last.filter(|_| turn.speaker != Speaker::System) else {
            before = Some(at);
            continue;
        };
        plan.report(Violation::error(FindingCode::RoleOrder, ALTERNATES).at(turn.about).with_action(Action::Merged));
        last.blocks.append(&mut turn.blocks);
        last.touched = true;
        turn.removed = true;
        merged.push(before.unwrap_or(at));
    }
    merged.dedup();
    for at in merged {
        if let Some(turn) = turns.get_mut(at).filter(|turn| turn.speaker == Speaker::User) {
            // Results first. What is added for a call is a result.
            turn.blocks.sort_by_key(|block| !is_result(block) && block.value.is_some());
        }
    }
    let first = turns.iter().find(|turn| !turn.removed && turn.speaker != Speaker::System);
    if let Some(first) = first.filter(|turn| turn.speaker == Speaker::Model) {
        plan.report(Violation::error(FindingCode::RoleOrder, STARTS_WITH_USER).at(first.about).synthesized());
        turns.insert(0, Turn::synthetic(Speaker::User, list, vec![Block::synthetic(CONTINUE_BLOCK.into())]));
    }
}

/// Moves what follows results in a user turn to a turn of its own, after a short answer, for models that reject both in
/// one turn.
pub(super) fn separate_results<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: &mut Vec<Turn<'a>>) {
    let mut separated = Vec::with_capacity(turns.len());
    for mut turn in std::mem::take(turns) {
        // What was added for a call is a result, too.
        let has_results = turn.blocks.iter().any(|block| is_result(block) || block.value.is_none());
        let mixes = turn.speaker == Speaker::User && !turn.removed && has_results;
        let rest = if mixes { take_rest(&mut turn) } else { Vec::new() };
        if !rest.is_empty() {
            plan.report(Violation::error(FindingCode::RoleOrder, SAME_TURN).at(turn.about).moved());
            turn.touched = true;
        }
        separated.push(turn);
        if !rest.is_empty() {
            let answer = vec![Block::synthetic(SEPARATING_BLOCK.into())];
            separated.push(Turn::synthetic(Speaker::Model, list, answer));
            separated.push(Turn::synthetic(Speaker::User, list, rest));
        }
    }
    *turns = separated;
}

/// Takes the user's own blocks out of a turn with results.
fn take_rest<'a>(turn: &mut Turn<'a>) -> Vec<Block<'a>> {
    let is_other = |block: &Block<'a>| {
        !is_result(block) && block.value.is_some_and(|value| kind_of(value).is_none_or(|(kind, _)| kind != CACHE_POINT))
    };
    let (rest, kept) = std::mem::take(&mut turn.blocks).into_iter().partition(is_other);
    turn.blocks = kept;
    rest
}
