//! Decodes messages of Converse.

use super::block::{
    CACHE_POINT, CITATIONS, DOCUMENT, JSON, REASONING, TEXT, TOOL_RESULT, TOOL_USE, is_server_call, is_server_result,
    kind_of,
};
use super::encode::write_block;
use super::media::{decode_media, joined_text, media_template};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::wire_template::{matches_pattern, template_of, template_with_slots, without_plain_template};
use crate::tool::Arguments;

/// How a call and a result are encoded that have no template.
const PLAIN_CALL: &str = r##"{"toolUse":{"toolUseId":#id,"name":#name,"input":#arguments}}"##;
const PLAIN_RESULT: &str = r##"{"toolResult":{"toolUseId":#id,"content":#content}}"##;

/// Decodes `system`, a list of blocks.
pub(super) fn decode_system(body: JsonRef<'_>) -> Option<Incoming> {
    let system = body.find("system")?;
    let mut parts: Vec<IncomingPart> = system.items().map(|block| IncomingPart::Part(decode_block(block))).collect();
    if let Some(text) = system.as_json_str().filter(|text| !text.is_empty()) {
        parts.push(IncomingPart::Part(PartBody::Text(text).into()));
    }
    (!parts.is_empty()).then_some(Incoming::Message(IncomingMessage {
        role: Role::System,
        parts,
        dialect: Some(Dialect::Bedrock),
        template: None,
    }))
}

/// The content of one wire message, separated into results and parts.
#[derive(Default)]
struct DecodedContent {
    parts: Vec<IncomingPart>,
    results: Vec<IncomingResult>,
}

/// Decodes one wire message: its results, and a message with the rest of its content, if any.
pub(super) fn decode_message(wire: JsonRef<'_>, items: &mut Vec<Incoming>) {
    let role = match wire.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return items.push(Incoming::Unknown(wire.to_owned())),
    };
    let DecodedContent { parts, results } = decode_content(wire.get("content").unwrap_or_default(), role);
    if parts.is_empty() && !results.is_empty() {
        return items.extend(results.into_iter().map(Incoming::Result));
    }
    let slot = if results.is_empty() { TemplateSlot::Parts } else { TemplateSlot::ResultsThenParts };
    let template = template_with_slots(wire, &[("content", slot)]);
    let is_plain = !parts.is_empty()
        && matches_pattern(&template, &format!(r##"{{"role":"{}","content":#parts}}"##, role.as_str()));
    let message = Incoming::Message(IncomingMessage {
        role,
        parts,
        dialect: Some(Dialect::Bedrock),
        template: (!is_plain).then_some(template),
    });
    let results = results.into_iter().map(Incoming::Result);
    // Converse rejects a result in an assistant message, but it answers a call before it or in the same message.
    if role == Role::Assistant {
        items.push(message);
        items.extend(results);
    } else {
        items.extend(results);
        items.push(message);
    }
}

fn decode_content(content: JsonRef<'_>, role: Role) -> DecodedContent {
    let mut decoded = DecodedContent::default();
    // Converse rejects a text in place of the list; its meaning is clear.
    if let Some(text) = content.as_json_str().filter(|text| !text.is_empty()) {
        decoded.parts.push(IncomingPart::Part(PartBody::Text(text).into()));
    }
    for block in content.items() {
        match kind_of(block) {
            Some((TOOL_RESULT, inner))
                if role != Role::System && !(role == Role::Assistant && is_server_result(inner)) =>
            {
                decoded.results.push(decode_result(block, inner));
            }
            Some((TOOL_USE, inner)) if role == Role::Assistant && !is_server_call(inner) => {
                decoded.parts.push(IncomingPart::Call(decode_call(block, inner)));
            }
            // It belongs to the result that it follows, and is sent after that.
            Some((CACHE_POINT, _)) if decoded.parts.is_empty() && !decoded.results.is_empty() => {
                if let Some(result) = decoded.results.last_mut() {
                    keep_cache_point(result, block);
                }
            }
            _ => decoded.parts.push(IncomingPart::Part(decode_block(block))),
        }
    }
    decoded
}

/// Adds the members of a cache point after a result to the result's template.
fn keep_cache_point(result: &mut IncomingResult, block: JsonRef<'_>) {
    let template = result.template.get_or_insert_with(plain_result_template);
    template.0.extend(template_with_slots(block, &[]).0);
}

fn plain_result_template() -> WireTemplate {
    let inner = vec![(JsonStr::new("toolUseId"), TemplateSlot::Id), (JsonStr::new("content"), TemplateSlot::Content)];
    WireTemplate(vec![(JsonStr::new(TOOL_RESULT), TemplateSlot::Object(WireTemplate(inner)))])
}

/// Returns the template of a block whose member `kind` is an object with these slots.
fn block_template(block: JsonRef<'_>, kind: &str, slots: &[(&str, TemplateSlot)]) -> WireTemplate {
    template_of(block, &mut |name, value| {
        (name == kind && value.is_object()).then(|| TemplateSlot::Object(template_with_slots(value, slots)))
    })
}

/// Decodes a block that is neither a call nor a result. A block without a neutral equivalent is kept as an opaque part.
pub(super) fn decode_block(block: JsonRef<'_>) -> Part {
    decode_known(block).unwrap_or_else(|| PartBody::Opaque(block.to_owned()).into())
}

fn decode_known(block: JsonRef<'_>) -> Option<Part> {
    let (kind, value) = kind_of(block)?;
    let (body, template) = match kind {
        TEXT => (PartBody::Text(value.as_json_str()?), template_with_slots(block, &[(TEXT, TemplateSlot::Text)])),
        "image" => (PartBody::Image(decode_media(kind, value)?), nested(block, kind, media_template(value))),
        DOCUMENT | "video" | "audio" => {
            (PartBody::File(decode_media(kind, value)?), nested(block, kind, media_template(value)))
        }
        REASONING => {
            let inner = value.find("reasoningText")?;
            let inner_template = block_template(value, "reasoningText", &[(TEXT, TemplateSlot::Text)]);
            (PartBody::Reasoning(inner.json_str(TEXT)?), nested(block, kind, inner_template))
        }
        // Texts of an answer with their sources: sent back as they were received, in other dialects as text.
        CITATIONS => (PartBody::Text(joined_text(value.get("content")?)?), template_with_slots(block, &[])),
        JSON => {
            let text = value.as_json_str().unwrap_or_else(|| JsonStr::new(value.as_raw()));
            (PartBody::Text(text), template_with_slots(block, &[]))
        }
        _ => return None,
    };
    Some(without_plain_template(&write_block, body, template))
}

fn nested(block: JsonRef<'_>, kind: &str, inner: WireTemplate) -> WireTemplate {
    template_of(block, &mut |name, _| (name == kind).then(|| TemplateSlot::Object(inner.clone())))
}

fn decode_call(block: JsonRef<'_>, inner: JsonRef<'_>) -> IncomingCall {
    let slots = [("toolUseId", TemplateSlot::Id), ("name", TemplateSlot::Name), ("input", TemplateSlot::Arguments)];
    let template = block_template(block, TOOL_USE, &slots);
    let is_complete = ["toolUseId", "name", "input"].iter().all(|key| inner.get(key).is_some());
    IncomingCall {
        id: None,
        is_async: false,
        call_id: inner.string("toolUseId"),
        name: inner.string("name"),
        arguments: match inner.find("input") {
            Some(input) => input.as_json_str().map_or_else(|| Arguments::Value(input.to_owned()), Arguments::Text),
            None => Arguments::Value(Json::trusted("{}".into())),
        },
        template: (is_complete && !matches_pattern(&template, PLAIN_CALL)).then_some(template),
    }
}

fn decode_result(block: JsonRef<'_>, inner: JsonRef<'_>) -> IncomingResult {
    let slots = [("toolUseId", TemplateSlot::Id), ("content", TemplateSlot::Content)];
    let template = block_template(block, TOOL_RESULT, &slots);
    let has_id = inner.get("toolUseId").is_some();
    let content = inner.find("content");
    let is_plain = content.is_some() && matches_pattern(&template, PLAIN_RESULT);
    // The results of a tool are JSON values, and a list of blocks is one. Anything else is the text of the result.
    let is_list = content.is_some_and(|content| content.kind() == JsonKind::Array);
    IncomingResult {
        call_id: inner.string("toolUseId"),
        name: None,
        content: content.map_or_else(|| Json::trusted("[]".into()), JsonRef::to_owned),
        is_error: inner.has_text("status", "error"),
        dialect: Some(Dialect::Bedrock),
        template: (has_id && is_list && !is_plain).then_some(template),
        raw: block.to_owned(),
        stands_alone: false,
    }
}
