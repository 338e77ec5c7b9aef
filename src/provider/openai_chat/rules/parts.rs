//! The parts of a message's content: which role may hold which.

use crate::finding::{Action, FindingCode};
use crate::json::{JsonRef, Kind};
use crate::provider::foreign_format::is_provider_type;
use crate::provider::rules::{BodyPiece, Fields, Plan, Violation, as_quoted, quoted};

const TEXT: &[&str] = &["text"];
const ASSISTANT: &[&str] = &["text", "refusal"];
const USER: &[&str] = &["text", "image_url", "input_audio", "file"];
const USER_SILENT: &[&str] = &["text", "image_url", "file"];
/// Parts that a user message can hold in another's stead.
const MEDIA: &[&str] = &["image_url", "input_audio", "file"];
/// Parts of other wire formats. Only these are refused beside the known ones: servers that speak this format have parts of their own.
const FOREIGN: &[&str] = &[
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "server_tool_use",
    "image",
    "document",
    "input_text",
    "output_text",
    "input_image",
    "input_file",
    "function_call",
    "function_call_output",
    "reasoning",
];
/// Parts of servers of this format under the names of those: the role, the type, and the member that other formats' have not.
/// Groq's documents, Databricks' reasoning, vLLM's thinking.
const THEIRS: [(&str, &str, &str); 3] =
    [("user", "document", "document"), ("assistant", "reasoning", "summary"), ("assistant", "thinking", "closed")];
/// Up to this size a part that cannot stay is kept as its JSON text.
const QUOTABLE: usize = 4096;

/// What OpenAI lets a role hold. Only a user message takes more than text: "Image URLs are only allowed for messages with
/// role 'user'". Recorded: a model without hearing refuses `input_audio` ("Content blocks are expected to be either text or image_url type").
pub(crate) fn allowed(role: &str, model: &str) -> Option<&'static [&'static str]> {
    let own = model.starts_with("gpt-")
        || model.strip_prefix('o').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    let silent = own && !["audio", "realtime", "omni"].iter().any(|word| crate::text::has(model, word));
    Some(match role {
        "assistant" => ASSISTANT,
        "user" if silent => USER_SILENT,
        "user" => USER,
        _ => TEXT,
    })
}

/// How a text part begins.
const OPEN: &str = "{\"type\":\"text\",\"text\":";

/// A text part that stands for something that went.
pub(crate) fn note(text: &str) -> String {
    format!("{OPEN}{}}}", quoted(text))
}

/// Reads a list of parts, reporting what the provider refuses. `allowed` none means that anything goes. What stays, none
/// where that is the list as it is; what a user message behind must hold goes to `spill`.
pub(crate) fn read<'a>(
    plan: &mut Plan<'a, '_>,
    content: JsonRef<'a>,
    role: &str,
    allowed: Option<&[&str]>,
    at_user: Option<&[&str]>,
    spill: &mut Vec<BodyPiece>,
) -> Option<Vec<BodyPiece>> {
    let (mut stay, mut same) = (Vec::new(), true);
    for part in content.items() {
        if !part.is_object() {
            same = false;
            let drop = part.is_null();
            let action = if drop { Action::Dropped } else { Action::Rewritten };
            plan.report(
                Violation::error(FindingCode::Malformed, "Invalid type for a content part: expected an object.")
                    .at(part)
                    .with_action(action),
            );
            if !drop {
                stay.push(plan.as_text(OPEN, part));
            }
            continue;
        }
        let fields = Fields::of(part);
        let kind = fields.owned_text("type");
        let text = fields.find("text");
        let words = text.filter(|text| text.kind() == Kind::String);
        if kind == "text" {
            let Some(text) = text else {
                same = false;
                let sentence = "Missing required parameter: 'text' of a text part.";
                plan.report(Violation::error(FindingCode::EmptyContent, sentence).at(part).dropped());
                continue;
            };
            if words.is_none() {
                let sentence = "Invalid type for 'text': expected a string.";
                plan.rewrite(
                    Violation::error(FindingCode::Malformed, sentence).at_member(part, "text"),
                    as_quoted(text),
                );
            }
            stay.push(plan.edits.source(part));
            continue;
        }
        let named = |names: &[&str]| names.contains(&kind.as_str());
        let known = allowed.is_none_or(named);
        // Mistral's file has its id in the part itself.
        if known && named(MEDIA) && fields.find(&kind).or_else(|| fields.find("file_id")).is_none() {
            same = false;
            let sentence = "Missing required parameter: '{}' of a content part of that type.";
            plan.report(Violation::error(FindingCode::Malformed, sentence).at(part).quoting(&kind).dropped());
            continue;
        }
        let theirs = THEIRS.iter().any(|(at, name, member)| {
            // An item of OpenAI Responses has an id.
            role == *at && kind == *name && fields.find(member).is_some() && fields.find("id").is_none()
        });
        let unknown = !known && (plan.is_foreign_block(&fields) || !kind.is_empty() && !is_provider_type(&kind));
        let own = !kind.is_empty() && !known && !named(MEDIA) && !unknown && (theirs || !named(FOREIGN));
        if (known && !kind.is_empty()) || own {
            if own {
                let sentence = "Content parts of type '{}' are no part of this format: some servers take them.";
                plan.report(Violation::warning(FindingCode::UnsupportedPart, sentence).at(part).quoting(&kind));
            }
            stay.push(plan.edits.source(part));
            continue;
        }
        same = false;
        let movable = role != "user" && named(MEDIA) && at_user.is_none_or(named);
        let action = if movable { Action::Moved } else { Action::Rewritten };
        let sentence = format!(
            "Invalid value: '{kind}' in a message with role '{role}'. Content blocks are expected to be of the types that this role supports."
        );
        let code = if unknown { FindingCode::UnknownShape } else { FindingCode::UnsupportedPart };
        plan.report(Violation::error(code, sentence).at(part).with_action(action));
        if movable {
            spill.push(plan.edits.source(part));
        } else if let Some(text) = words {
            stay.push(plan.as_text(OPEN, text));
        } else if named(&["thinking", "redacted_thinking", "reasoning"]) {
            // Reasoning cannot be replayed in this format, and is no text of the answer.
        } else if part.as_raw().len() <= QUOTABLE {
            stay.push(BodyPiece::New(note(part.as_raw())));
        } else {
            stay.push(BodyPiece::New(note(&format!(
                "[A part of type '{kind}' was left out: the model cannot read it.]"
            ))));
        }
    }
    if same { None } else { Some(stay) }
}
