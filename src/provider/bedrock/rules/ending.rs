//! What Claude's models require of a final answer, which they continue.

use crate::finding::{Action, FindingCode};
use crate::provider::bedrock::block::{TEXT, kind_of};
use crate::provider::rules::{BodyPiece, Plan, Speaker, Turn, Violation, quoted};

/// Removes white space from the end of a final answer: "final assistant content cannot end with trailing whitespace".
pub(super) fn trim_last_message<'a>(plan: &mut Plan<'a, '_>, turns: &mut [Turn<'a>]) {
    let Some(last) = turns.iter_mut().rev().find(|turn| !turn.removed) else { return };
    let block = last.blocks.last_mut().filter(|_| last.speaker == Speaker::Model);
    let Some(block) = block.filter(|block| block.piece.is_source()) else { return };
    let Some((TEXT, text)) = block.value.and_then(kind_of) else { return };
    let Some(decoded) = text.as_text().filter(|text| text.trim_end().len() < text.len()) else { return };
    let sentence = "messages: final assistant content cannot end with trailing whitespace";
    let violation = Violation::error(FindingCode::EmptyContent, sentence).at_member(last.about, "content");
    plan.report(violation.with_action(Action::Rewritten));
    plan.edits.replace(text, BodyPiece::New(quoted(decoded.trim_end())));
}
