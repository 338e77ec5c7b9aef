//! Gemini's parts that are neither calls nor responses.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::gemini::part::{CALL_NAMES, DATA_NAMES, RESPONSE_NAMES, SIGNATURE_NAMES};
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, as_quoted};

/// The start of a text part, before the token of its text.
pub(super) const TEXT_PART_START: &str = "{\"text\":";

/// Returns true if a part can be kept. Otherwise reports why it is removed. A part with only a signature is kept.
pub(super) fn is_kept<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>, _: &str) -> bool {
    let part = fields.object;
    let no_data = "required oneof field 'data' must have one initialized field";
    if !part.is_object() {
        let is_empty = part.is_null() || part.is_text("");
        if is_empty {
            plan.report(Violation::error(FindingCode::Malformed, no_data).at(part).dropped());
        }
        return !is_empty;
    }
    let names = [CALL_NAMES, RESPONSE_NAMES];
    let is_invalid_call = |key: JsonRef<'_>, value: JsonRef<'_>| {
        !value.is_object() && names.as_flattened().iter().any(|name| key.is_text(name))
    };
    if fields.members().iter().all(|(key, value)| value.is_null() || is_invalid_call(*key, *value)) {
        plan.report(Violation::error(FindingCode::EmptyContent, no_data).at(part).dropped());
        return false;
    }
    for name in names.as_flattened() {
        if fields.find(name).is_some_and(|value| !value.is_object()) {
            let sentence = "Invalid value at '{}': an object was expected.";
            let violation = Violation::error(FindingCode::Malformed, sentence).at_member(part, name);
            plan.report(violation.quoting(name).dropped());
            plan.edits.remove(part, name);
        }
    }
    true
}

/// Returns what is written for a part that is kept.
pub(super) fn repair_part<'a>(plan: &mut Plan<'a, '_>, fields: &Fields<'a>) -> BodyPiece {
    let part = fields.object;
    if !part.is_object() {
        let sentence = "Invalid value at 'parts': an object was expected.";
        plan.report(Violation::error(FindingCode::Malformed, sentence).at(part).rewritten());
        return plan.as_text(TEXT_PART_START, part);
    }
    let has_any = |names: &[&str]| names.iter().any(|name| fields.find(name).is_some());
    if let Some(text) = fields.find("text") {
        if text.kind() != JsonKind::String {
            let sentence = "Invalid value at 'text' (TYPE_STRING)";
            plan.rewrite(Violation::error(FindingCode::Malformed, sentence).at_member(part, "text"), as_quoted(text));
        } else if text.is_text("") && !has_any(&SIGNATURE_NAMES) {
            let sentence = "An empty text part: some models refuse it.";
            plan.report(Violation::warning(FindingCode::EmptyContent, sentence).at(part));
        }
    }
    if !DATA_NAMES.iter().any(|names| has_any(names)) && !has_any(&SIGNATURE_NAMES) {
        let sentence = "A part without any data that is known here: kept, because the provider may take it.";
        plan.report(Violation::warning(FindingCode::UnknownShape, sentence).at(part));
    }
    // A turn may consist of thought summaries only, signed or not: recorded turns do.
    plan.edits.source(part)
}
