//! Where Gemini requires user turns. Checked when all responses are in their final places.

use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::gemini::model_version::GEMINI_3_6;
use crate::provider::rules::{Block, BlockKind, Plan, Speaker, Turn, Violation};

/// The part of a user turn that is added only because Gemini requires one.
const CONTINUE_PART: &str = "{\"text\":\"Continue.\"}";

const CALL_FIRST: &str =
    "Please ensure that function call turn comes immediately after a user turn or after a function response turn.";
const MODEL_LAST: &str = "Please ensure that multiturn requests end with a user role or a function response.";
const TEXT_AFTER_RESPONSE: &str =
    "Requests ending with a model turn are not supported: newer models say so of words behind a functionResponse.";

/// Adds a user turn before model turns with a call at the start of the list, and after a model turn at its end.
pub(super) fn add_user_turns<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, turns: &mut Vec<Turn<'a>>) {
    let continue_turn = || Turn::synthetic(Speaker::User, list, vec![Block::synthetic(CONTINUE_PART.into())]);
    let has_call = |turn: &Turn<'a>| turn.blocks.iter().any(|block| matches!(block.kind, BlockKind::ToolCall(_)));
    let mut first_turns = turns.iter().filter(|turn| !turn.removed).take_while(|turn| turn.speaker == Speaker::Model);
    if first_turns.any(has_call) {
        plan.report(Violation::error(FindingCode::RoleOrder, CALL_FIRST).at(list).synthesized());
        turns.insert(0, continue_turn());
    }
    if turns.iter().rev().find(|turn| !turn.removed).is_some_and(|turn| turn.speaker == Speaker::Model) {
        plan.report(Violation::error(FindingCode::RoleOrder, MODEL_LAST).at(list).synthesized());
        turns.push(continue_turn());
    }
}

/// Moves text after a response in the last content to a content of its own:
///
/// ```json
/// {"role":"user","parts":[{"functionResponse":{"name":"f","response":{}}},{"text":"And?"}]}
/// ```
///
/// Gemini 2.5 accepts this (recorded). Gemini 3.6 and 3.7 take such a content for a model turn and reject a request
/// that ends with it; for them it is split, for others it is a warning.
pub(super) fn split_last_content<'a>(
    plan: &mut Plan<'a, '_>,
    list: JsonRef<'a>,
    turns: &mut Vec<Turn<'a>>,
    version: u16,
) {
    let Some(last) = turns.iter_mut().rev().find(|turn| !turn.removed) else { return };
    let is_result = |block: &Block<'a>| matches!(block.kind, BlockKind::ToolResult(_));
    let after_first_result = last.blocks.iter().skip_while(|block| !is_result(block));
    if after_first_result.filter(|block| block.kind == BlockKind::Other).count() == 0 {
        return;
    }
    if version < GEMINI_3_6 {
        return plan.report(Violation::warning(FindingCode::RoleOrder, TEXT_AFTER_RESPONSE).at(last.about));
    }
    plan.report(Violation::error(FindingCode::RoleOrder, TEXT_AFTER_RESPONSE).at(last.about).moved());
    let rest = last.split_after_results();
    turns.push(Turn::synthetic(Speaker::User, list, rest));
}
