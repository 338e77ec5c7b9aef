//! The contents of a step, and the result in one.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, as_quoted};

/// The JSON of a text up to its text.
pub(super) const CONTENT_START: &str = "{\"type\":\"text\",\"text\":";

/// Fixes the contents of a step: a list. Returns false if none is left.
pub(super) fn fix_contents<'a>(plan: &mut Plan<'a, '_>, step: &Fields<'a>, content: JsonRef<'a>) -> bool {
    if content.kind() != JsonKind::Array {
        if content.is_text("") {
            return false;
        }
        let sentence = "input[{at}].content: a list of contents is required.";
        let violation = Violation::error(FindingCode::Malformed, sentence).at_member(step.object, "content");
        plan.report(violation.rewritten());
        let piece = if content.is_object() { plan.edits.source(content) } else { plan.as_text(CONTENT_START, content) };
        plan.edits.enclose(content, BodyPiece::wrapped("[", vec![piece], "]"));
        return true;
    }
    let (mut kept, mut is_changed) = (Vec::new(), false);
    for value in content.items() {
        if plan.is_over_budget() {
            return true;
        }
        if value.is_object() {
            let is_kept = fix_content(plan, &Fields::of(value));
            is_changed |= !is_kept;
            if is_kept {
                kept.push(plan.edits.source(value));
            }
            continue;
        }
        is_changed = true;
        let violation =
            Violation::error(FindingCode::Malformed, "input[{at}].content: a content is an object.").at(value);
        plan.report(if value.is_null() { violation.dropped() } else { violation.rewritten() });
        if !value.is_null() {
            kept.push(plan.as_text(CONTENT_START, value));
        }
    }
    let is_empty = kept.is_empty();
    if is_changed && !is_empty {
        plan.edits.rebuild(content, kept);
    }
    !is_empty
}

/// Fixes a content. Returns false for one that is removed, after reporting it. One of an unknown type is kept: Google
/// keeps adding types.
pub(super) fn fix_content<'a>(plan: &mut Plan<'a, '_>, content: &Fields<'a>) -> bool {
    let content_type = content.owned_text("type");
    if plan.is_foreign_block(content) || !is_provider_type(&content_type) {
        let sentence = "input[{at}].content: '{}' is no type of a content.";
        let violation = Violation::error(FindingCode::UnknownShape, sentence).at_member(content.object, "type");
        plan.report(violation.quoting(&content_type).rewritten());
        let text = content.get("text").filter(|text| text.kind() == JsonKind::String).unwrap_or(content.object);
        plan.edits.replace(content.object, BodyPiece::New(format!("{CONTENT_START}{}}}", as_quoted(text))));
        return true;
    }
    if content_type != "text" {
        return true;
    }
    match content.find("text") {
        None => {
            let sentence = "input[{at}].content: a text has a `text`.";
            plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(content.object).dropped());
            false
        }
        Some(text) if text.kind() != JsonKind::String => {
            let sentence = "input[{at}].content: `text` is a string.";
            let violation = Violation::error(FindingCode::Malformed, sentence);
            plan.rewrite(violation.at_member(content.object, "text"), as_quoted(text));
            true
        }
        Some(_) => true,
    }
}

/// Fixes the `result` of a step: a text, a list of contents or an object.
pub(super) fn fix_result<'a>(plan: &mut Plan<'a, '_>, step: &Fields<'a>) {
    let result = step.find("result");
    if result.is_some_and(|it| matches!(it.kind(), JsonKind::String | JsonKind::Array | JsonKind::Object)) {
        return;
    }
    let text = result.map_or_else(|| "\"\"".into(), as_quoted);
    let sentence = "function_result.result: a text, a list of contents or an object is required.";
    plan.rewrite(Violation::error(FindingCode::EmptyContent, sentence).at_member(step.object, "result"), text);
}
