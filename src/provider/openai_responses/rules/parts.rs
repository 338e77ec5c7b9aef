//! The parts of a message's content, or of an output.

use crate::finding::FindingCode;
use crate::json::{JsonKind, JsonRef};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, as_quoted, quoted};

/// The parts that a list may hold.
pub(super) struct PartRules {
    /// The `type` of text. Each side has its own: `output_text` in a user message fails the schema.
    text_type: &'static str,
    /// The beginning of a text part, up to its text.
    text_part: &'static str,
    /// Images and files are accepted.
    accepts_media: bool,
    /// The provider's error message for any other type.
    sentence: &'static str,
}

pub(super) const USER_PARTS: PartRules = PartRules {
    text_type: "input_text",
    text_part: "{\"type\":\"input_text\",\"text\":",
    accepts_media: true,
    sentence: "Invalid value: '{}'. Supported values are: 'input_text', 'input_image', and 'input_file'.",
};

pub(super) const SYSTEM_PARTS: PartRules = PartRules {
    accepts_media: false,
    sentence: "Invalid value: '{}'. Supported values are: 'input_text'.",
    ..USER_PARTS
};

pub(super) const ANSWER_PARTS: PartRules = PartRules {
    text_type: "output_text",
    text_part: "{\"type\":\"output_text\",\"text\":",
    accepts_media: false,
    sentence: "Invalid value: '{}'. Supported values are: 'output_text' and 'refusal'.",
};

/// What the repair does with a part.
enum PartFate {
    Kept,
    /// It moves to a user message.
    Moved,
    Removed,
    /// It is replaced by new text.
    Replaced(BodyPiece),
}

/// Fixes a list of parts. Parts of an unknown type are kept, since OpenAI keeps adding types. `moved_parts` receives
/// the parts that only a user message may hold.
pub(super) fn fix_parts<'a>(
    plan: &mut Plan<'a, '_>,
    content: JsonRef<'a>,
    rules: &PartRules,
    moved_parts: &mut Vec<BodyPiece>,
) {
    let (mut kept, mut is_changed) = (Vec::new(), false);
    for part in content.items() {
        if plan.is_over_budget() {
            return;
        }
        let fate =
            if part.is_object() { fix_part(plan, &Fields::of(part), rules) } else { fix_non_object(plan, part, rules) };
        is_changed |= !matches!(fate, PartFate::Kept);
        match fate {
            PartFate::Kept => kept.push(plan.edits.source(part)),
            PartFate::Moved => moved_parts.push(plan.edits.source(part)),
            PartFate::Removed => {}
            PartFate::Replaced(piece) => kept.push(piece),
        }
    }
    if is_changed {
        plan.edits.rebuild(content, kept);
    }
}

fn fix_non_object<'a>(plan: &mut Plan<'a, '_>, part: JsonRef<'a>, rules: &PartRules) -> PartFate {
    let sentence = "Invalid type for a content part: expected an object.";
    let violation = Violation::error(FindingCode::Malformed, sentence).at(part);
    if part.is_null() {
        plan.report(violation.dropped());
        return PartFate::Removed;
    }
    plan.report(violation.rewritten());
    PartFate::Replaced(plan.as_text(rules.text_part, part))
}

fn fix_part<'a>(plan: &mut Plan<'a, '_>, part: &Fields<'a>, rules: &PartRules) -> PartFate {
    let given_type = part.owned_text("type");
    if plan.is_foreign_block(part) || !given_type.is_empty() && !is_provider_type(&given_type) {
        report_type(plan, part, &given_type, Violation::error(FindingCode::UnknownShape, rules.sentence).rewritten());
        let text = part.get("text").filter(|text| text.kind() == JsonKind::String).unwrap_or(part.object);
        let text_part = format!("{}{}}}", rules.text_part, as_quoted(text));
        plan.edits.replace(part.object, BodyPiece::New(text_part));
        return PartFate::Kept;
    }
    if ["text", "input_text", "output_text", ""].contains(&given_type.as_str()) {
        return fix_text(plan, part, &given_type, rules);
    }
    let converted = from_chat(part, &given_type);
    let is_media = converted.is_some() || given_type == "input_image" || given_type == "input_file";
    let is_moved = is_media && !rules.accepts_media;
    if is_moved || converted.is_some() {
        let violation = Violation::error(FindingCode::UnsupportedPart, rules.sentence);
        let violation = if is_moved { violation.moved() } else { violation.rewritten() };
        report_type(plan, part, &given_type, violation);
    }
    if let Some(text) = converted {
        plan.edits.replace(part.object, BodyPiece::New(text));
    }
    if is_moved { PartFate::Moved } else { PartFate::Kept }
}

fn report_type<'a>(plan: &mut Plan<'a, '_>, part: &Fields<'a>, given_type: &str, violation: Violation<'a, '_>) {
    plan.report(violation.at_member(part.object, "type").quoting(given_type));
}

/// Fixes a text part: its type, and a `text` that is no string. Without `text` the part is removed.
fn fix_text<'a>(plan: &mut Plan<'a, '_>, part: &Fields<'a>, given_type: &str, rules: &PartRules) -> PartFate {
    if given_type != rules.text_type && part.text("text").is_some() {
        let violation = Violation::error(FindingCode::UnsupportedPart, rules.sentence);
        plan.rewrite(violation.at_member(part.object, "type").quoting(given_type), quoted(rules.text_type));
    }
    let Some(text) = part.find("text") else {
        let sentence = "Missing required parameter: 'text' of a content part.";
        plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(part.object).dropped());
        return PartFate::Removed;
    };
    if text.kind() != JsonKind::String {
        let sentence = "Invalid type for 'text': expected a string.";
        let violation = Violation::error(FindingCode::Malformed, sentence);
        plan.rewrite(violation.at_member(part.object, "text"), as_quoted(text));
    }
    PartFate::Kept
}

/// Converts an image or file of Chat Completions: `{"type":"image_url","image_url":{"url":"…"}}` becomes
/// `{"type":"input_image","image_url":"…"}`.
fn from_chat(part: &Fields<'_>, given_type: &str) -> Option<String> {
    let inner = part.get(given_type)?;
    match given_type {
        "image_url" => {
            let url = inner.get("url").unwrap_or(inner).as_json_str()?;
            let detail = inner.get("detail").map(|detail| format!(",\"detail\":{}", detail.as_raw()));
            let detail = detail.unwrap_or_default();
            Some(format!("{{\"type\":\"input_image\",\"image_url\":{}{detail}}}", url.token()))
        }
        // The members of a file have the same names in both formats.
        "file" => {
            inner.entries().next()?;
            Some(format!("{{\"type\":\"input_file\",{}", inner.as_raw().get(1..)?))
        }
        _ => None,
    }
}
