//! The parts of a message's content: which role may hold which.

use crate::finding::Action;
use crate::json::{JsonRef, Kind, ObjectWriter};
use crate::provider::rules::{Fields, Piece, Plan, as_quoted};

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

/// What a list of parts comes to.
pub(crate) enum Spilled {
    /// Nothing to mend.
    Same,
    /// It was empty to begin with.
    Empty,
    /// What stays, and what a user message behind must hold.
    Parts { stay: Vec<Piece>, spill: Vec<Piece> },
}

/// A text part that stands for something that went.
pub(crate) fn note(text: &str) -> String {
    ObjectWriter::build(|o| {
        o.text("type", "text").text("text", text);
    })
    .as_str()
    .to_owned()
}

fn text_part(plan: &Plan<'_, '_>, text: JsonRef<'_>) -> Piece {
    let token = if text.kind() == Kind::String { plan.edits.source(text) } else { Piece::New(as_quoted(text)) };
    Piece::Wrapped("{\"type\":\"text\",\"text\":".into(), vec![token], "}".into())
}

/// Reads a list of parts, reporting what the provider refuses. `allowed` none means that anything goes.
pub(crate) fn read<'a>(
    plan: &mut Plan<'a, '_>,
    content: JsonRef<'a>,
    role: &str,
    path: &str,
    allowed: Option<&[&str]>,
    at_user: Option<&[&str]>,
) -> Spilled {
    let (mut stay, mut spill, mut same, mut empty) = (Vec::new(), Vec::new(), true, true);
    for (place, part) in content.items().enumerate() {
        empty = false;
        let here = format!("{path}/{place}");
        if !part.is_object() {
            same = false;
            let drop = part.is_null();
            plan.error(
                "malformed",
                here,
                if drop { Action::Dropped } else { Action::Rewritten },
                "Invalid type for a content part: expected an object.",
            );
            if !drop {
                stay.push(text_part(plan, part));
            }
            continue;
        }
        let fields = Fields::of(part);
        let kind = fields.text("type").unwrap_or_default();
        let text = fields.find("text");
        if kind == "text" {
            match text.map(JsonRef::kind) {
                Some(Kind::String) => stay.push(plan.edits.source(part)),
                Some(_) => {
                    plan.error(
                        "malformed",
                        format!("{here}/text"),
                        Action::Rewritten,
                        "Invalid type for 'text': expected a string.",
                    );
                    if let Some(text) = text {
                        plan.edits.replace(text, Piece::New(as_quoted(text)));
                    }
                    stay.push(plan.edits.source(part));
                }
                None => {
                    same = false;
                    plan.error(
                        "empty_content",
                        here,
                        Action::Dropped,
                        "Missing required parameter: 'text' of a text part.",
                    );
                }
            }
            continue;
        }
        let known = allowed.is_none_or(|allowed| allowed.contains(&&*kind));
        let own = !kind.is_empty() && !known && !MEDIA.contains(&&*kind) && !FOREIGN.contains(&&*kind);
        if (known && !kind.is_empty()) || own {
            if own {
                plan.warn(
                    "unsupported_part",
                    here,
                    format!("Content parts of type '{kind}' are no part of this format: some servers take them."),
                );
            }
            stay.push(plan.edits.source(part));
            continue;
        }
        same = false;
        let movable = role != "user" && MEDIA.contains(&&*kind) && at_user.is_none_or(|user| user.contains(&&*kind));
        let action = if movable { Action::Moved } else { Action::Rewritten };
        plan.error("unsupported_part", here, action, format!(
            "Invalid value: '{kind}' in a message with role '{role}'. Content blocks are expected to be of the types that this role supports."));
        if movable {
            spill.push(plan.edits.source(part));
        } else if let Some(text) = text.filter(|text| text.kind() == Kind::String) {
            stay.push(text_part(plan, text));
        } else if kind == "thinking" || kind == "redacted_thinking" || kind == "reasoning" {
            // Reasoning cannot be replayed in this format, and is no text of the answer.
        } else if part.as_raw().len() <= QUOTABLE {
            stay.push(Piece::New(note(part.as_raw())));
        } else {
            stay.push(Piece::New(note(&format!("[A part of type '{kind}' was left out: the model cannot read it.]"))));
        }
    }
    match (empty, same) {
        (true, _) => Spilled::Empty,
        (_, true) => Spilled::Same,
        _ => Spilled::Parts { stay, spill },
    }
}
