//! Decodes messages of Anthropic Messages.

use super::encode::write_block;
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Media, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::wire_template::{matches_pattern, template_of, template_with_slots, without_plain_template};
use crate::tool::Arguments;

/// How a call and a result are encoded that have no template.
const PLAIN_CALL: &str = r##"{"type":"tool_use","id":#id,"name":#name,"input":#arguments}"##;
const PLAIN_RESULT: &str = r##"{"type":"tool_result","tool_use_id":#id,"content":#content}"##;

/// Decodes the top-level `system`: a text, or a list of blocks.
pub(super) fn decode_system(system: JsonRef<'_>) -> Option<Incoming> {
    let mut parts = Vec::new();
    match system.kind() {
        JsonKind::Array => system.items().for_each(|block| parts.push(IncomingPart::Part(decode_block(block)))),
        _ => {
            if let Some(text) = system.as_json_str().filter(|text| !text.is_empty()) {
                parts.push(IncomingPart::Part(PartBody::Text(text).into()));
            }
        }
    }
    (!parts.is_empty()).then_some(Incoming::Message(IncomingMessage {
        role: Role::System,
        parts,
        dialect: Some(Dialect::Anthropic),
        template: None,
    }))
}

/// The content of one wire message, separated into results and parts.
#[derive(Default)]
struct DecodedContent {
    parts: Vec<IncomingPart>,
    results: Vec<Incoming>,
    /// What replaces `content` in the message's template.
    slot: Option<TemplateSlot>,
}

/// Decodes one wire message: its results, and a message with the rest of its content, if any.
pub(super) fn decode_message(wire: JsonRef<'_>, items: &mut Vec<Incoming>) {
    let role = match wire.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return items.push(Incoming::Unknown(wire.to_owned())),
    };
    let DecodedContent { parts, results, slot } = decode_content(wire.get("content"), role);
    if parts.is_empty() && !results.is_empty() {
        return items.extend(results);
    }
    let template = match slot {
        Some(slot) => template_with_slots(wire, &[("content", slot)]),
        None => template_with_slots(wire, &[]),
    };
    let is_plain = is_plain_message(role, &parts, &template);
    let message = Incoming::Message(IncomingMessage {
        role,
        parts,
        dialect: Some(Dialect::Anthropic),
        template: (!is_plain).then_some(template),
    });
    // Anthropic rejects a result in an assistant message, but it answers a call before it or in the same message.
    if role == Role::Assistant {
        items.push(message);
        items.extend(results);
    } else {
        items.extend(results);
        items.push(message);
    }
}

/// Decodes `content`: a text, or a list of blocks.
fn decode_content(content: Option<JsonRef<'_>>, role: Role) -> DecodedContent {
    let mut decoded = DecodedContent::default();
    let Some(content) = content else { return decoded };
    match content.kind() {
        JsonKind::String => {
            if let Some(text) = content.as_json_str().filter(|text| !text.is_empty()) {
                decoded.parts.push(IncomingPart::Part(PartBody::Text(text).into()));
                decoded.slot = Some(TemplateSlot::Part(0));
            }
        }
        JsonKind::Array => {
            for block in content.items() {
                match block.text("type").as_deref() {
                    Some("tool_result") if matches!(role, Role::User | Role::Assistant) => {
                        decoded.results.push(Incoming::Result(decode_result(block)));
                    }
                    Some("tool_use") if role == Role::Assistant => {
                        decoded.parts.push(IncomingPart::Call(decode_call(block)));
                    }
                    _ => decoded.parts.push(IncomingPart::Part(decode_block(block))),
                }
            }
            let has_results = role == Role::User && !decoded.results.is_empty();
            decoded.slot = Some(if has_results { TemplateSlot::ResultsThenParts } else { TemplateSlot::Parts });
        }
        _ => {}
    }
    decoded
}

/// Returns true if a message with this template is encoded the same without it.
fn is_plain_message(role: Role, parts: &[IncomingPart], template: &WireTemplate) -> bool {
    let is_one_plain_text = matches!(parts, [IncomingPart::Part(Part { body: PartBody::Text(_), template: None, .. })]);
    let slot = if is_one_plain_text { "part" } else { "parts" };
    !parts.is_empty() && matches_pattern(template, &format!(r##"{{"role":"{}","content":#{slot}}}"##, role.as_str()))
}

/// Decodes a block that is neither a call nor a result. A block without a neutral equivalent is kept as an opaque part.
pub(super) fn decode_block(block: JsonRef<'_>) -> Part {
    let body = match block.text("type").as_deref() {
        Some("text") => block.json_str("text").map(PartBody::Text),
        Some("image") => decode_media(block).map(PartBody::Image),
        Some("document") => decode_media(block).map(PartBody::File),
        Some("thinking") => block.json_str("thinking").map(PartBody::Reasoning),
        _ => None,
    };
    let Some(body) = body else { return PartBody::Opaque(block.to_owned()).into() };
    let is_thinking = matches!(body, PartBody::Reasoning(_));
    let is_media = matches!(body, PartBody::Image(_) | PartBody::File(_));
    let template = template_of(block, &mut |key, value| match key {
        "text" if !is_thinking && !is_media => Some(TemplateSlot::Text),
        "thinking" if is_thinking => Some(TemplateSlot::Text),
        "source" if is_media && value.is_object() => Some(TemplateSlot::Object(source_template(value))),
        _ => None,
    });
    without_plain_template(&write_block, body, template)
}

/// Decodes the `source` of an image or document block:
///
/// ```json
/// {"type":"base64","media_type":"image/png","data":"iVBORw0…"}
/// {"type":"url","url":"https://example.com/a.png"}
/// {"type":"file","file_id":"file_011C…"}
/// ```
///
/// Returns `None` for any other source.
fn decode_media(block: JsonRef<'_>) -> Option<Media> {
    let source = block.find("source").filter(|source| source.is_object())?;
    let media_type = source.text("media_type").map(std::borrow::Cow::into_owned);
    let name = block.text("title").map(std::borrow::Cow::into_owned);
    match source.text("type").as_deref() {
        Some("base64") => Some(Media { data: source.json_str("data"), media_type, name, ..Media::default() }),
        Some("url") => Some(Media { url: source.json_str("url"), name, ..Media::default() }),
        Some("file") => Some(Media { file_id: source.json_str("file_id"), name, ..Media::default() }),
        _ => None,
    }
}

/// Returns the template of a `source`. Its slot is the member that [`decode_media`] reads.
fn source_template(source: JsonRef<'_>) -> WireTemplate {
    let member = match source.text("type").as_deref() {
        Some("base64") => "data",
        Some("url") => "url",
        _ => "file_id",
    };
    template_of(source, &mut |name, value| {
        (name == member && value.kind() == JsonKind::String).then_some(TemplateSlot::Text)
    })
}

fn decode_call(block: JsonRef<'_>) -> IncomingCall {
    let slots = [("id", TemplateSlot::Id), ("name", TemplateSlot::Name), ("input", TemplateSlot::Arguments)];
    let template = template_with_slots(block, &slots);
    let is_complete = ["id", "name", "input"].iter().all(|key| block.get(key).is_some());
    IncomingCall {
        id: None,
        is_async: false,
        call_id: block.string("id"),
        name: block.string("name"),
        arguments: match block.find("input") {
            Some(input) => input.as_json_str().map_or_else(|| Arguments::Value(input.to_owned()), Arguments::Text),
            None => Arguments::Value(Json::trusted("{}".into())),
        },
        template: (is_complete && !matches_pattern(&template, PLAIN_CALL)).then_some(template),
    }
}

fn decode_result(block: JsonRef<'_>) -> IncomingResult {
    let template = template_with_slots(block, &[("tool_use_id", TemplateSlot::Id), ("content", TemplateSlot::Content)]);
    let has_id = block.get("tool_use_id").is_some();
    let content = block.find("content");
    // A result without `content` keeps its template: only that records the absence.
    let is_plain = content.is_some() && matches_pattern(&template, PLAIN_RESULT);
    IncomingResult {
        call_id: block.string("tool_use_id"),
        name: None,
        content: content.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error: block.get("is_error").and_then(JsonRef::as_bool).unwrap_or(false),
        dialect: Some(Dialect::Anthropic),
        template: (has_id && !is_plain).then_some(template),
        raw: block.to_owned(),
        stands_alone: false,
    }
}
