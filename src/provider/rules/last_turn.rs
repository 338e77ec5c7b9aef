//! A list that ends with the model's own turn: the beginning of its answer (a prefill), which newer models of Claude
//! refuse.

use super::turns::{Block, Speaker, Turn};
use super::{Plan, Violation, quoted};
use crate::finding::FindingCode;

const PREFILL: &str =
    "This model does not support assistant message prefill. The conversation must end with a user message.";

/// What the user says so that the model goes on.
const CONTINUE: &str = "Continue.";

/// Appends a user message, [`CONTINUE`], if the list ends with a turn of the model, and removes such a turn without
/// content. Returns true if it appends one. An answer that the service itself continues (`pause_turn`, a compaction) stays last:
/// `is_resumed` says so of its last block. `text_start` is the JSON of a text block up to its text.
pub(crate) fn end_with_user<'a>(
    plan: &mut Plan<'a, '_>,
    turns: &mut Vec<Turn<'a>>,
    text_start: &str,
    is_resumed: fn(&Block<'a>) -> bool,
) -> bool {
    for turn in turns.iter_mut().rev().filter(|turn| !turn.removed) {
        if turn.speaker != Speaker::Model || turn.blocks.last().is_some_and(is_resumed) {
            return false;
        }
        let about = turn.about;
        let violation = Violation::error(FindingCode::RoleOrder, PREFILL).at(about);
        if turn.blocks.is_empty() {
            plan.report(violation.dropped());
            turn.removed = true;
            continue;
        }
        plan.report(violation.synthesized());
        let text = Block::synthetic(format!("{text_start}{}}}", quoted(CONTINUE)));
        turns.push(Turn::synthetic(Speaker::User, about, vec![text]));
        return true;
    }
    false
}
