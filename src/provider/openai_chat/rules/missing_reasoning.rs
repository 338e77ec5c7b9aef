//! Reasoning that a model wants back beside its calls. It cannot be invented, so nothing is changed.

use crate::finding::FindingCode;
use crate::json::JsonRef;
use crate::provider::openai_chat::decode::names_reasoning;
use crate::provider::openai_chat::models::demands_reasoning;
use crate::provider::rules::{Plan, Violation};

/// Reports each answer with calls, after the last message of the user, that has no reasoning although its model rejects
/// that.
pub(super) fn report_missing_reasoning<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>) {
    if !demands_reasoning(plan.body.object) {
        return;
    }
    for (at, message) in answers_without_reasoning(list) {
        plan.at = at;
        let sentence = "The `reasoning_content` in the thinking mode must be passed back to the API.";
        plan.report(
            Violation::warning(FindingCode::MissingReasoning, sentence).at_member(message, "reasoning_content"),
        );
    }
}

/// Returns the indices of these answers.
pub(in crate::provider::openai_chat) fn find_missing_reasoning(list: JsonRef<'_>) -> Vec<usize> {
    answers_without_reasoning(list).into_iter().map(|(at, _)| at).collect()
}

fn answers_without_reasoning(list: JsonRef<'_>) -> Vec<(usize, JsonRef<'_>)> {
    let mut answers = Vec::new();
    for (at, message) in list.items().enumerate() {
        if message.has_text("role", "user") {
            answers.clear();
        } else if lacks_reasoning(message) {
            answers.push((at, message));
        }
    }
    answers
}

/// Returns true for an answer with calls and without reasoning.
fn lacks_reasoning(message: JsonRef<'_>) -> bool {
    message.has_text("role", "assistant") && has_calls(message) && !has_reasoning(message)
}

fn has_calls(message: JsonRef<'_>) -> bool {
    message.get("tool_calls").is_some_and(|calls| calls.items().next().is_some())
}

/// Returns true if reasoning is there, in any member that servers give it. It may be empty: the model may have had
/// none.
fn has_reasoning(message: JsonRef<'_>) -> bool {
    message.entries().any(|(key, value)| key.as_text().is_some_and(|key| names_reasoning(&key)) && !value.is_null())
}
