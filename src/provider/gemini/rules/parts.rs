//! Parts that are neither call nor response.

use super::super::part::{CALL_NAMES, DATA_NAMES, RESPONSE_NAMES, SIGNATURE_NAMES};
use super::TEXT;
use crate::finding::FindingCode;
use crate::json::{JsonRef, Kind};
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, as_quoted};

/// Whether a part stays at all; reports it otherwise. A part with nothing but a signature stays.
pub(super) fn stays<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, _: &str) -> bool {
    let part = fields.object;
    let sentence = "required oneof field 'data' must have one initialized field";
    if !part.is_object() {
        let empty = part.is_null() || part.is_text("");
        if empty {
            plan.report(Violation::error(FindingCode::Malformed, sentence).at(part).dropped());
        }
        return !empty;
    }
    let names = [CALL_NAMES, RESPONSE_NAMES];
    let bad = |key: JsonRef<'_>, value: JsonRef<'_>| {
        !value.is_object() && names.as_flattened().iter().any(|name| key.is_text(name))
    };
    if fields.members().iter().all(|(key, value)| value.is_null() || bad(*key, *value)) {
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(part).dropped());
        return false;
    }
    for name in names.as_flattened() {
        if fields.find(name).is_some_and(|inner| !inner.is_object()) {
            let sentence = "Invalid value at '{}': an object was expected.";
            plan.report(
                Violation::error(FindingCode::Malformed, sentence).at_member(part, name).quoting(name).dropped(),
            );
            plan.edits.remove(part, name);
        }
    }
    true
}

/// What stands for a part that stays.
pub(super) fn read<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> BodyPiece {
    let part = fields.object;
    if !part.is_object() {
        let sentence = "Invalid value at 'parts': an object was expected.";
        plan.report(Violation::error(FindingCode::Malformed, sentence).at(part).rewritten());
        return plan.as_text(TEXT, part);
    }
    if let Some(given) = fields.find("text") {
        if given.kind() != Kind::String {
            let sentence = "Invalid value at 'text' (TYPE_STRING)";
            plan.rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(part, "text"), as_quoted(given));
        } else if given.is_text("") && SIGNATURE_NAMES.iter().all(|name| fields.find(name).is_none()) {
            plan.report(
                Violation::warning(FindingCode::EmptyContent, "An empty text part: some models refuse it.").at(part),
            );
        }
    }
    let says = |names: &[&str]| names.iter().any(|name| fields.find(name).is_some());
    if !DATA_NAMES.iter().any(|names| says(names)) && !says(&SIGNATURE_NAMES) {
        let sentence = "A part without any data that is known here: kept, because the provider may take it.";
        plan.report(Violation::warning(FindingCode::UnknownShape, sentence).at(part));
    }
    // Thought summaries count as any text: recorded turns hold nothing else, signed or not.
    plan.edits.source(part)
}
