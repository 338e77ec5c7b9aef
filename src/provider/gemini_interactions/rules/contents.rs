//! The contents of a step, and the result in one.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::gemini::model_version::model_version;
use crate::provider::gemini_interactions::results::{accepts_lists, text_of_list};
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, as_quoted};

/// The JSON of a text up to its text.
pub(super) const CONTENT_START: &str = "{\"type\":\"text\",\"text\":";

/// The types of texts in the Responses API, whose items have the types of calls that steps have.
const RESPONSES_TEXTS: [&str; 2] = ["input_text", "output_text"];

/// The sentences of findings in a list of contents.
pub(super) struct ListSentences {
    no_list: &'static str,
    no_object: &'static str,
    unknown_type: &'static str,
    no_text: &'static str,
    text_kind: &'static str,
}

/// Those of `content`, in a step of the user or the model.
pub(super) const OF_CONTENT: ListSentences = ListSentences {
    no_list: "input[{at}].content: a list of contents is required.",
    no_object: "input[{at}].content: a content is an object.",
    unknown_type: "input[{at}].content: '{}' is no type of a content.",
    no_text: "input[{at}].content: a text has a `text`.",
    text_kind: "input[{at}].content: `text` is a string.",
};

/// Those of `result`.
const OF_RESULT: ListSentences = ListSentences {
    no_list: "function_result.result: a text, a list of contents or an object is required.",
    no_object: "function_result.result: a content is an object.",
    unknown_type: "function_result.result: '{}' is no type of a content.",
    no_text: "function_result.result: a text has a `text`.",
    text_kind: "function_result.result: `text` is a string.",
};

/// That of a list as `result`.
const LIST_OF_OLDER: &str = "function_result.result: a model before Gemini 3 accepts a text or an object, not a list.";

/// Fixes the `content` of a step: a list, which may be empty. Returns false if a repair leaves nothing of it.
pub(super) fn fix_contents<'a>(plan: &mut Plan<'a, '_>, step: &Fields<'a>, content: JsonRef<'a>) -> bool {
    if content.kind() == JsonKind::Array {
        return fix_list(plan, content, &OF_CONTENT);
    }
    let violation = Violation::error(FindingCode::Malformed, OF_CONTENT.no_list).at_member(step.object, "content");
    plan.report(violation.rewritten());
    let piece = if content.is_object() { plan.edits.source(content) } else { plan.as_text(CONTENT_START, content) };
    plan.edits.enclose(content, BodyPiece::wrapped("[", vec![piece], "]"));
    true
}

/// Fixes the contents of a list. Returns false if a repair leaves nothing of it.
fn fix_list<'a>(plan: &mut Plan<'a, '_>, list: JsonRef<'a>, sentences: &ListSentences) -> bool {
    let (mut kept, mut is_changed) = (Vec::new(), false);
    for value in list.items() {
        if plan.is_over_budget() {
            return true;
        }
        if value.is_object() {
            let is_kept = fix_content(plan, &Fields::of(value), sentences);
            is_changed |= !is_kept;
            if is_kept {
                kept.push(plan.edits.source(value));
            }
            continue;
        }
        is_changed = true;
        kept.extend(bare_content(plan, value, sentences));
    }
    let is_left = !kept.is_empty();
    if is_changed && is_left {
        plan.edits.rebuild(list, kept);
    }
    is_left || !is_changed
}

/// Reports an entry of a list that is no object. It becomes a text, and null is removed.
pub(super) fn bare_content<'a>(
    plan: &mut Plan<'a, '_>,
    value: JsonRef<'a>,
    sentences: &ListSentences,
) -> Option<BodyPiece> {
    let violation = Violation::error(FindingCode::Malformed, sentences.no_object).at(value);
    plan.report(if value.is_null() { violation.dropped() } else { violation.rewritten() });
    (!value.is_null()).then(|| plan.as_text(CONTENT_START, value))
}

/// Fixes a content. Returns false for one that is removed, after reporting it. One of an unknown type is kept: Google
/// keeps adding types.
pub(super) fn fix_content<'a>(plan: &mut Plan<'a, '_>, content: &Fields<'a>, sentences: &ListSentences) -> bool {
    let content_type = content.owned_text("type");
    let is_foreign = RESPONSES_TEXTS.contains(&content_type.as_str()) || plan.is_foreign_block(content);
    if is_foreign || !is_provider_type(&content_type) {
        let violation = Violation::error(FindingCode::UnknownShape, sentences.unknown_type);
        plan.report(violation.at_member(content.object, "type").quoting(&content_type).rewritten());
        let text = content.get("text").filter(|text| text.kind() == JsonKind::String).unwrap_or(content.object);
        plan.edits.replace(content.object, BodyPiece::New(format!("{CONTENT_START}{}}}", as_quoted(text))));
        return true;
    }
    if content_type != "text" {
        return true;
    }
    match content.find("text") {
        None => {
            plan.report(Violation::error(FindingCode::EmptyContent, sentences.no_text).at(content.object).dropped());
            false
        }
        Some(text) if text.kind() != JsonKind::String => {
            let violation = Violation::error(FindingCode::Malformed, sentences.text_kind);
            plan.rewrite(violation.at_member(content.object, "text"), as_quoted(text));
            true
        }
        Some(_) => true,
    }
}

/// Fixes the `result` of a step: a text, a list of contents or an object.
pub(super) fn fix_result<'a>(plan: &mut Plan<'a, '_>, step: &Fields<'a>) {
    let result = step.find("result");
    match result.map(|result| (result, result.kind())) {
        Some((_, JsonKind::String | JsonKind::Object)) => return,
        Some((list, JsonKind::Array))
            if !accepts_lists(model_version(&plan.body.text("model").unwrap_or_default()))
                && let Some(text) = text_of_list(list) =>
        {
            let violation = Violation::error(FindingCode::Malformed, LIST_OF_OLDER).at_member(step.object, "result");
            return plan.rewrite(violation, text.token().to_owned());
        }
        Some((list, JsonKind::Array)) => {
            if !fix_list(plan, list, &OF_RESULT) {
                plan.edits.replace(list, BodyPiece::New("[]".into()));
            }
            return;
        }
        _ => {}
    }
    let text = result.map_or_else(|| "\"\"".into(), as_quoted);
    let violation = Violation::error(FindingCode::EmptyContent, OF_RESULT.no_list);
    plan.rewrite(violation.at_member(step.object, "result"), text);
}
