//! Parts that are neither call nor response.

use super::either;
use crate::finding::Action;
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{Block, BlockKind, Fields, Piece, Plan, as_quoted};

const CALLS: [&str; 4] = ["functionCall", "function_call", "functionResponse", "function_response"];

/// Whether a part stays at all; reports it otherwise. A part with nothing but a signature stays.
pub(super) fn stays<'a>(plan: &mut Plan<'a, '_>, part: JsonRef<'a>, fields: &Fields<'a>, path: &str) -> bool {
    let message = "required oneof field 'data' must have one initialized field";
    if !part.is_object() {
        if part.is_null() || part.is_text("") {
            plan.error("malformed", path, Action::Dropped, message);
            return false;
        }
        return true;
    }
    let bad = |key: JsonRef<'_>, value: JsonRef<'_>| {
        CALLS.iter().any(|name| key.is_text(name)) && !value.is_null() && !value.is_object()
    };
    if fields.iter().all(|(key, value)| value.is_null() || bad(key, value)) {
        plan.error("empty_content", path, Action::Dropped, message);
        return false;
    }
    for name in CALLS {
        if fields.find(name).is_some_and(|inner| !inner.is_object()) {
            plan.error(
                "malformed",
                format!("{path}/{name}"),
                Action::Dropped,
                format!("Invalid value at '{name}': an object was expected."),
            );
            plan.edits.remove(part, name);
        }
    }
    true
}

/// A text as a part.
pub(super) fn text<'a>(plan: &Plan<'a, '_>, text: JsonRef<'a>) -> Block<'a> {
    let token = if text.kind() == Kind::String { plan.edits.source(text) } else { Piece::New(as_quoted(text)) };
    Block {
        kind: BlockKind::Other,
        value: Some(text),
        piece: Piece::Wrapped("{\"text\":".into(), vec![token], "}".into()),
    }
}

pub(super) fn read<'a>(plan: &mut Plan<'a, '_>, part: JsonRef<'a>, fields: &Fields<'a>, path: &str) -> Block<'a> {
    if !part.is_object() {
        plan.error("malformed", path, Action::Rewritten, "Invalid value at 'parts': an object was expected.");
        return text(plan, part);
    }
    if let Some(given) = fields.find("text").filter(|given| given.kind() != Kind::String) {
        plan.error("malformed", format!("{path}/text"), Action::Rewritten, "Invalid value at 'text' (TYPE_STRING)");
        plan.edits.replace(given, Piece::New(as_quoted(given)));
    } else if fields.find("text").is_some_and(|given| given.is_text(""))
        && either(fields, "thoughtSignature", "thought_signature").is_none()
    {
        plan.warn("empty_content", path, "An empty text part: some models refuse it.");
    }
    // Thought summaries count as any text: recorded turns hold nothing else, signed or not.
    Block { kind: BlockKind::Other, value: Some(part), piece: plan.edits.source(part) }
}
