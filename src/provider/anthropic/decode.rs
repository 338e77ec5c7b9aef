//! Anthropic Messages: from wire messages to neutral ones.

use super::{Anthropic, encode};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonRef, JsonStr, Kind};
use crate::message::{Dialect, Media, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::dialect::without_plain_shape;
use crate::provider::template::{is_shape, shape_of, shape_with};
use crate::tool::Arguments;

/// What is written of a call and of a result that have no shape.
const PLAIN_CALL: &str = r##"{"type":"tool_use","id":#id,"name":#name,"input":#arguments}"##;
const PLAIN_RESULT: &str = r##"{"type":"tool_result","tool_use_id":#id,"content":#content}"##;

/// Decodes the top-level `system`: a text, or blocks.
pub fn decode_system(system: JsonRef<'_>) -> Option<Incoming> {
    let mut parts = Vec::new();
    match system.kind() {
        Kind::Array => system.items().for_each(|block| parts.push(IncomingPart::Part(decode_block(block)))),
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

/// Decodes one wire message: results apart, then what else it says.
pub fn decode_message(wire: JsonRef<'_>, items: &mut Vec<Incoming>) {
    let role = match wire.text("role").as_deref() {
        Some("user") => Role::User,
        Some("assistant") => Role::Assistant,
        Some("system") => Role::System,
        _ => return items.push(Incoming::Unknown(wire.to_owned())),
    };
    let mut parts = Vec::new();
    let mut results = 0;
    // Nobody takes a result in an assistant's message; it answers its call all the same.
    let mut misplaced = Vec::new();
    let content = wire.get("content");
    let slot = match content.map(JsonRef::kind) {
        Some(Kind::String) => match content.and_then(JsonRef::as_json_str).filter(|text| !text.is_empty()) {
            Some(text) => {
                parts.push(IncomingPart::Part(PartBody::Text(text).into()));
                Some(TemplateSlot::Part(0))
            }
            None => None,
        },
        Some(Kind::Array) => {
            for block in content.unwrap_or_default().items() {
                match block.text("type").as_deref() {
                    Some("tool_result") if role == Role::User => {
                        items.push(Incoming::Result(decode_result(block)));
                        results += 1;
                    }
                    Some("tool_result") if role == Role::Assistant => {
                        misplaced.push(Incoming::Result(decode_result(block)));
                    }
                    Some("tool_use") if role == Role::Assistant => parts.push(IncomingPart::Call(decode_call(block))),
                    _ => parts.push(IncomingPart::Part(decode_block(block))),
                }
            }
            Some(if results > 0 { TemplateSlot::ResultsThenParts } else { TemplateSlot::Parts })
        }
        _ => None,
    };
    if parts.is_empty() && (results > 0 || !misplaced.is_empty()) {
        return items.extend(misplaced);
    }
    let template = match slot {
        Some(slot) => shape_with(wire, &[("content", slot)]),
        None => shape_with(wire, &[]),
    };
    let plain = encode::is_plain_message(role, &parts, &template);
    items.push(Incoming::Message(IncomingMessage {
        role,
        parts,
        dialect: Some(Dialect::Anthropic),
        template: (!plain).then_some(template),
    }));
    items.extend(misplaced);
}

/// Decodes a block. One that has no neutral meaning stays opaque.
pub fn decode_block(block: JsonRef<'_>) -> Part {
    let source = block.find("source").filter(|source| source.is_object());
    let media = || {
        let source = source?;
        let kind = source.text("type");
        let media_type = source.text("media_type").map(std::borrow::Cow::into_owned);
        let name = block.text("title").map(std::borrow::Cow::into_owned);
        match kind.as_deref() {
            Some("base64") => Some(Media { data: source.json_str("data"), media_type, name, ..Media::default() }),
            Some("url") => Some(Media { url: source.json_str("url"), name, ..Media::default() }),
            Some("file") => Some(Media { file_id: source.json_str("file_id"), name, ..Media::default() }),
            _ => None,
        }
    };
    let body = match block.text("type").as_deref() {
        Some("text") => block.json_str("text").map(PartBody::Text),
        Some("image") => media().map(PartBody::Image),
        Some("document") => media().map(PartBody::File),
        Some("thinking") => block.json_str("thinking").map(PartBody::Reasoning),
        _ => None,
    };
    let Some(body) = body else { return PartBody::Opaque(block.to_owned()).into() };
    let thinking = matches!(body, PartBody::Reasoning(_));
    let has_source = matches!(body, PartBody::Image(_) | PartBody::File(_));
    let template = shape_of(block, &mut |key, value| match key {
        "text" if !thinking && !has_source => Some(TemplateSlot::Text),
        "thinking" if thinking => Some(TemplateSlot::Text),
        "source" if has_source && value.is_object() => {
            Some(TemplateSlot::Object(shape_of(value, &mut |name, value| {
                (matches!(name, "data" | "url" | "file_id") && value.kind() == Kind::String)
                    .then_some(TemplateSlot::Text)
            })))
        }
        _ => None,
    });
    without_plain_shape(&Anthropic, body, template)
}

fn decode_call(block: JsonRef<'_>) -> IncomingCall {
    let template = shape_with(
        block,
        &[("id", TemplateSlot::Id), ("name", TemplateSlot::Name), ("input", TemplateSlot::Arguments)],
    );
    let whole = ["id", "name", "input"].iter().all(|key| block.get(key).is_some());
    IncomingCall {
        call_id: block.string("id"),
        name: block.string("name"),
        arguments: match block.find("input") {
            Some(input) => input.as_json_str().map_or_else(|| Arguments::Value(input.to_owned()), Arguments::Text),
            None => Arguments::Value(Json::trusted("{}".into())),
        },
        template: (whole && !is_shape(&template, PLAIN_CALL)).then_some(template),
    }
}

fn decode_result(block: JsonRef<'_>) -> IncomingResult {
    let template = shape_with(block, &[("tool_use_id", TemplateSlot::Id), ("content", TemplateSlot::Content)]);
    let has_id = block.get("tool_use_id").is_some();
    let content = block.find("content");
    // Without content there is no hole for one: the shape alone says so.
    let plain = content.is_some() && is_shape(&template, PLAIN_RESULT);
    IncomingResult {
        call_id: block.string("tool_use_id"),
        name: None,
        content: content.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error: block.get("is_error").and_then(JsonRef::as_bool).unwrap_or(false),
        dialect: Some(Dialect::Anthropic),
        template: (has_id && !plain).then_some(template),
        raw: block.to_owned(),
        apart: false,
    }
}

/// Whether a thinking block of that shape carries the signature without which it may not go back.
pub fn is_signed(template: Option<&WireTemplate>) -> bool {
    template.is_some_and(|template| {
        template.0.iter().any(|(key, slot)| {
            key.inside() == "signature"
                && matches!(slot, TemplateSlot::Raw(value) if value.as_str().len() > 2 && value.as_str() != "null")
        })
    })
}
