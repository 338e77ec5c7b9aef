//! Thought signatures, which Gemini 3 requires on calls.

use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::gemini::model_version::GEMINI_3;
use crate::provider::gemini::part::SIGNATURE_NAMES;
use crate::provider::rules::{BlockKind, Plan, Speaker, Turn, Violation};

/// Google's stand-in for the signature of a call that another model made: `skip_thought_signature_validator`, in base64
/// as recorded requests have it. Gemini 3 rejects the first call of a step without a signature.
pub(crate) const PLACEHOLDER_SIGNATURE: &str = "\"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=\"";

/// Adds a signature to the first call of each step of the current turn, unless it has one. A step is a run of model
/// contents. The current turn starts after the last user content that has more than responses.
///
/// ```json
/// {"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"QQ=="},{"functionCall":{"name":"g"}}]}
/// ```
///
/// `version` is the model's. If it is unknown, a missing signature is a warning, and only if other calls have one.
pub(super) fn add_signatures<'a>(plan: &mut Plan<'a, '_>, turns: &[Turn<'a>], version: u16) {
    let are_required = version >= GEMINI_3;
    let (mut has_signatures, mut current_turn) = (false, 0);
    for (at, turn) in turns.iter().enumerate().filter(|(_, turn)| !turn.removed) {
        for block in &turn.blocks {
            match (block.kind, block.value) {
                (BlockKind::ToolCall(_), Some(part)) => has_signatures |= is_signed(part),
                (BlockKind::Other, Some(_)) if turn.speaker == Speaker::User => current_turn = at + 1,
                _ => {}
            }
        }
    }
    if !are_required && !has_signatures {
        return;
    }
    let mut last_step = None;
    for turn in turns.iter().skip(current_turn) {
        if turn.removed || turn.speaker != Speaker::Model || turn.run == last_step {
            continue;
        }
        let mut calls = turn.blocks.iter().filter(|block| matches!(block.kind, BlockKind::ToolCall(_)));
        let Some(part) = calls.next().and_then(|block| block.value) else { continue };
        last_step = turn.run;
        if is_signed(part) {
            continue;
        }
        let sentence = "Function call is missing a thought_signature in functionCall parts.";
        if !are_required {
            plan.report(Violation::warning(FindingCode::UnsignedThinking, sentence).at(turn.about));
            continue;
        }
        plan.report(Violation::error(FindingCode::UnsignedThinking, sentence).at(turn.about).rewritten());
        let [camel, snake] = SIGNATURE_NAMES;
        let key = if part.get(camel).is_none() && part.get(snake).is_some() { snake } else { camel };
        plan.edits.set(part, key, PLACEHOLDER_SIGNATURE.into());
    }
}

fn is_signed(part: JsonRef<'_>) -> bool {
    SIGNATURE_NAMES.iter().any(|key| part.find(key).is_some_and(|value| !value.is_text("")))
}
