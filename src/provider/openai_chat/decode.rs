//! OpenAI Chat Completions: wire messages to neutral ones.

use super::blocks::write_block;
use super::variant::ChatVariant;
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::media_type_of;
use crate::provider::wire_template::{matches_pattern, template_of, template_with_slots, without_plain_template};
use crate::replay::ExtraContent;
use crate::tool::Arguments;
use std::borrow::Cow;

/// The members in which compatible servers send reasoning. OpenAI itself sends none.
pub(super) const REASONING_MEMBERS: [&str; 2] = ["reasoning_content", "reasoning"];

/// Returns true if compatible servers keep reasoning in a member of that name, such as `reasoning_details`.
pub(super) fn names_reasoning(member: &str) -> bool {
    member.starts_with("reasoning") || member.starts_with("thinking")
}

/// Returns the content of an answer beside text, refusal and calls: reasoning, or a member that is an object or array,
/// such as `"audio":{"id":"audio_1"}`. A string or number in a member is an id, a name or a state.
pub(super) fn extra_content(answer: &Message) -> ExtraContent {
    let is_reasoning = |part: &Part| matches!(&part.body, PartBody::Reasoning(text) if !text.is_empty());
    let mut found = if answer.parts.iter().any(is_reasoning) { ExtraContent::Reasoning } else { ExtraContent::None };
    for (key, slot) in answer.template.iter().flat_map(|template| &template.0) {
        let TemplateSlot::Raw(value) = slot else { continue };
        let is_filled = value.as_str().len() > 2 && value.as_str().starts_with(['{', '[']);
        match key.inside() {
            _ if !is_filled => {}
            "content" | "tool_calls" => {}
            name if names_reasoning(name) => found = ExtraContent::Reasoning,
            _ => return ExtraContent::Other,
        }
    }
    found
}

/// A call and a result as they are encoded without a template. These need none.
const PLAIN_CALL: &str = r##"{"id":#id,"type":"function","function":{"name":#name,"arguments":#arguments}}"##;
const PLAIN_RESULT: &str = r##"{"role":"tool","tool_call_id":#id,"content":#content}"##;

/// Decodes one wire message. A value that is no message is returned as unknown.
pub(super) fn decode_message(variant: &ChatVariant, wire: JsonRef<'_>) -> Incoming {
    let role = wire.text("role");
    match role.as_deref() {
        Some("system") => Incoming::Message(decode_input(variant, wire, Role::System)),
        Some("developer") => Incoming::Message(decode_input(variant, wire, Role::Developer)),
        Some("user") => Incoming::Message(decode_input(variant, wire, Role::User)),
        Some("assistant") => Incoming::Message(decode_assistant(variant, wire)),
        Some("tool") => Incoming::Result(decode_result(variant, wire, "tool_call_id")),
        // The result of a deprecated `function_call`. It has no id: they pair in their order.
        Some("function") => Incoming::Result(IncomingResult { template: None, ..decode_result(variant, wire, "") }),
        _ => Incoming::Unknown(wire.to_owned()),
    }
}

/// Decodes a message of the user or the system.
fn decode_input(variant: &ChatVariant, wire: JsonRef<'_>, role: Role) -> IncomingMessage {
    let mut parts = Vec::new();
    let template = template_of(wire, &mut |key, value| {
        if key == "content" { decode_content(variant, value, &mut parts) } else { None }
    });
    message_of(variant, role, parts, template)
}

/// Decodes an answer. Its parts are reasoning, content, refusal and calls, in this order, whatever the order of the
/// members.
fn decode_assistant(variant: &ChatVariant, wire: JsonRef<'_>) -> IncomingMessage {
    let mut parts = Vec::new();
    let mut slots: Vec<(&str, TemplateSlot)> = Vec::new();
    for (key, value) in wire.entries().filter(|_| !variant.content_chunks) {
        if let Some(name) = REASONING_MEMBERS.into_iter().find(|name| key.is_text(name))
            && let Some(slot) = decode_text(value, &mut parts, PartBody::Reasoning)
        {
            slots.push((name, slot));
        }
    }
    if let Some(slot) = wire.get("content").and_then(|content| decode_content(variant, content, &mut parts)) {
        slots.push(("content", slot));
    }
    if let Some(slot) = wire.get("refusal").and_then(|refusal| decode_text(refusal, &mut parts, PartBody::Refusal)) {
        slots.push(("refusal", slot));
    }
    // OpenAI rejects an empty list of calls, so it is omitted; Mistral accepts it, so it stays in the template.
    let calls = wire.get("tool_calls").filter(|calls| calls.kind() == JsonKind::Array);
    if let Some(calls) = calls.filter(|calls| !variant.content_chunks || calls.items().next().is_some()) {
        for call in calls.items().filter(|call| call.is_object()) {
            parts.push(IncomingPart::Call(decode_call(variant, call)));
        }
        slots.push(("tool_calls", TemplateSlot::Calls));
    }
    let legacy_call = wire.find("function_call").filter(|call| call.is_object());
    parts.extend(legacy_call.map(|call| IncomingPart::Call(decode_legacy_call(call))));
    let mut template = template_with_slots(wire, &slots);
    // A deprecated call is sent as one of `tool_calls`. Of a repeated member the last one counts, and a template cannot
    // tell which of them the slot is.
    if legacy_call.is_some() || has_repeated_slot(&template) {
        template.0.clear();
    }
    message_of(variant, Role::Assistant, parts, template)
}

fn decode_legacy_call(call: JsonRef<'_>) -> IncomingCall {
    IncomingCall {
        id: None,
        is_async: false,
        call_id: String::new(),
        name: call.string("name"),
        arguments: arguments_of(call.get("arguments")),
        template: None,
    }
}

/// Returns true if two slots of a template have the same key.
fn has_repeated_slot(template: &WireTemplate) -> bool {
    let slots = || template.0.iter().filter(|(_, slot)| !matches!(slot, TemplateSlot::Raw(_)));
    slots().enumerate().any(|(at, (key, _))| slots().take(at).any(|(earlier, _)| earlier.decode() == key.decode()))
}

/// Decodes a member that is a string: adds it to `parts` and returns its slot. An empty string is no part.
fn decode_text(
    value: JsonRef<'_>,
    parts: &mut Vec<IncomingPart>,
    body: fn(JsonStr) -> PartBody,
) -> Option<TemplateSlot> {
    let text = value.as_json_str().filter(|text| !text.is_empty())?;
    let index = u32::try_from(parts.len()).ok()?;
    parts.push(IncomingPart::Part(body(text).into()));
    Some(TemplateSlot::Part(index))
}

fn decode_content(variant: &ChatVariant, content: JsonRef<'_>, parts: &mut Vec<IncomingPart>) -> Option<TemplateSlot> {
    match content.kind() {
        JsonKind::String => decode_text(content, parts, PartBody::Text),
        JsonKind::Array => {
            parts.extend(content.items().map(|block| IncomingPart::Part(decode_block(variant, block))));
            Some(TemplateSlot::Parts)
        }
        _ => None,
    }
}

/// Decodes a content part. One of a type without a neutral meaning stays opaque.
pub(super) fn decode_block(variant: &ChatVariant, block: JsonRef<'_>) -> Part {
    let kind = block.text("type");
    let body = match kind.as_deref() {
        Some("text") => block.json_str("text").map(PartBody::Text),
        Some("refusal") => block.json_str("refusal").map(PartBody::Refusal),
        // `"image_url":{"url":"https://…"}`; Mistral also accepts `"image_url":"https://…"`.
        Some("image_url") => block
            .get("image_url")
            .and_then(|image| image.json_str("url").or_else(|| image.as_json_str()))
            .map(|url| PartBody::Image(Media { url: Some(url), ..Media::default() })),
        Some("file") => decode_file(variant, block).map(PartBody::File),
        Some("document_url") if variant.content_chunks => block.json_str("document_url").map(|url| {
            let name = block.text("document_name").map(Cow::into_owned);
            PartBody::File(Media { url: Some(url), name, ..Media::default() })
        }),
        Some("thinking") if variant.content_chunks => {
            block.get("thinking").and_then(thinking_text).map(PartBody::Reasoning)
        }
        _ => None,
    };
    let Some(body) = body else { return PartBody::Opaque(block.to_owned()).into() };
    let template = block_template(block, &body);
    let write = |out: &mut String, part: &Part, native| {
        write_block(variant, out, part, native);
        true
    };
    without_plain_template(&write, body, template)
}

/// Decodes `{"type":"file","file":{…}}`, or Mistral's `{"type":"file","file_id":"…"}`.
fn decode_file(variant: &ChatVariant, block: JsonRef<'_>) -> Option<Media> {
    let inner = block.find("file").filter(|file| file.is_object());
    let file = inner.unwrap_or(block);
    let name = file.text("filename").map(Cow::into_owned);
    let (data, file_id) = (file.json_str("file_data"), file.json_str("file_id"));
    if inner.is_none() && (!variant.content_chunks || file_id.is_none()) {
        return None;
    }
    // `file_data` is a data URL. Some clients send base64 alone; then only the name tells the media type.
    if data.as_ref().is_some_and(|data| !data.inside().contains(':')) {
        let media_type = name.as_deref().and_then(media_type_of).map(str::to_owned);
        return Some(Media { data, file_id, media_type, name, ..Media::default() });
    }
    Some(Media { url: data, file_id, name, ..Media::default() })
}

/// Returns the template of a content part: its text or URL is a slot.
fn block_template(block: JsonRef<'_>, body: &PartBody) -> WireTemplate {
    let text_slot = |value: JsonRef<'_>| (value.kind() == JsonKind::String).then_some(TemplateSlot::Text);
    let inner_slot = |value: JsonRef<'_>, name: &str| {
        if !value.is_object() {
            return text_slot(value);
        }
        let inner = template_of(value, &mut |key, value| if key == name { text_slot(value) } else { None });
        Some(TemplateSlot::Object(inner))
    };
    template_of(block, &mut |key, value| match (key, body) {
        ("text", PartBody::Text(_)) | ("refusal", PartBody::Refusal(_)) => Some(TemplateSlot::Text),
        ("image_url", PartBody::Image(_)) => inner_slot(value, "url"),
        ("file", PartBody::File(_)) if value.is_object() => inner_slot(value, "file_data"),
        ("document_url", PartBody::File(_)) => inner_slot(value, ""),
        ("thinking", PartBody::Reasoning(_)) => is_single_text_chunk(value).then_some(TemplateSlot::Parts),
        _ => None,
    })
}

/// Returns the text of Mistral's `thinking`, a string or a list of chunks; none if there is no text.
fn thinking_text(thinking: JsonRef<'_>) -> Option<JsonStr> {
    let texts: Vec<JsonStr> = thinking.items().filter_map(|chunk| chunk.json_str("text")).collect();
    if texts.is_empty() { thinking.as_json_str() } else { Some(JsonStr::joined(&mut texts.iter(), "\\n\\n")) }
}

/// Returns true if a list of chunks is what the encoder writes for a text: `[{"type":"text","text":"…"}]`.
fn is_single_text_chunk(chunks: JsonRef<'_>) -> bool {
    let mut all = chunks.items();
    let (Some(chunk), None) = (all.next(), all.next()) else { return false };
    let template = template_of(chunk, &mut |_, value| (value.kind() == JsonKind::String).then_some(TemplateSlot::Text));
    chunk.has_text("type", "text") && matches_pattern(&template, r##"{"type":#text,"text":#text}"##)
}

/// Decodes an entry of `tool_calls`: `{"id":"call_1","type":"function","function":{"name":"search","arguments":"{}"}}`,
/// or the same with `"custom":{"name":"run","input":"free text"}`.
fn decode_call(variant: &ChatVariant, call: JsonRef<'_>) -> IncomingCall {
    let custom = call.find("custom").filter(|custom| custom.is_object());
    let function = call.find("function").filter(|function| function.is_object());
    let inner = function.or(custom).unwrap_or(call);
    let (own, input) = match (function, custom) {
        (Some(_), _) => ("function", "arguments"),
        (None, Some(_)) => ("custom", "input"),
        (None, None) => ("custom", "arguments"),
    };
    let arguments = match inner.get(input) {
        // The input of a custom tool is free text, not JSON in a string.
        Some(text) if input == "input" && text.kind() == JsonKind::String => Arguments::Value(text.to_owned()),
        value => arguments_of(value),
    };
    let template = template_of(call, &mut |key, value| match key {
        "id" => Some(TemplateSlot::Id),
        _ if key == own && value == inner => Some(TemplateSlot::Object(template_with_slots(
            value,
            &[("name", TemplateSlot::Name), (input, TemplateSlot::Arguments)],
        ))),
        _ => None,
    });
    // A call that lacks a member with a slot is encoded without its template.
    let has_id_and_name = call.get("id").is_some() && inner.get("name").is_some();
    let has_arguments =
        inner.get(input).is_some_and(|a| a.kind() == JsonKind::String || (variant.content_chunks && a.is_object()));
    let keeps_template = has_id_and_name && has_arguments && inner != call && !matches_pattern(&template, PLAIN_CALL);
    IncomingCall {
        id: None,
        is_async: false,
        call_id: call.string("id"),
        name: inner.string("name"),
        arguments,
        template: keeps_template.then_some(template),
    }
}

/// Reads arguments: a string of JSON text. Some compatible servers send an object.
fn arguments_of(value: Option<JsonRef<'_>>) -> Arguments {
    match value.filter(|value| !value.is_null()) {
        None => Arguments::Text(JsonStr::new("")),
        Some(value) => match value.as_json_str() {
            Some(text) => Arguments::Text(text),
            None => Arguments::Value(value.to_owned()),
        },
    }
}

/// Decodes a tool message. `id_member` holds the id of its call.
fn decode_result(variant: &ChatVariant, wire: JsonRef<'_>, id_member: &str) -> IncomingResult {
    let template = template_with_slots(wire, &[("content", TemplateSlot::Content), (id_member, TemplateSlot::Id)]);
    let has_slots = wire.get(id_member).is_some() && wire.get("content").is_some();
    IncomingResult {
        call_id: wire.string(id_member),
        name: None,
        content: wire.get("content").map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error: false,
        dialect: Some(variant.content.dialect),
        template: (has_slots && !matches_pattern(&template, PLAIN_RESULT)).then_some(template),
        raw: wire.to_owned(),
        stands_alone: false,
    }
}

fn message_of(variant: &ChatVariant, role: Role, parts: Vec<IncomingPart>, template: WireTemplate) -> IncomingMessage {
    let needs_template = !template.0.is_empty() && !is_plain_message(variant, role, &parts, &template);
    IncomingMessage {
        role,
        parts,
        dialect: Some(variant.content.dialect),
        template: needs_template.then_some(template),
    }
}

/// Returns true if a content is a list of text parts and not empty: nothing else may be the list of an OpenAI tool
/// message.
pub(super) fn is_text_only(variant: &ChatVariant, content: &Json) -> bool {
    let mut blocks = content.view().items();
    blocks.clone().next().is_some()
        && blocks.all(|block| matches!(decode_block(variant, block).body, PartBody::Text(_)))
}

/// Returns true if a message is encoded to the same JSON without its template.
fn is_plain_message(variant: &ChatVariant, role: Role, parts: &[IncomingPart], template: &WireTemplate) -> bool {
    let starts_with_text = matches!(parts.first(), Some(IncomingPart::Part(Part { body: PartBody::Text(_), .. })));
    let calls = parts.iter().filter(|part| matches!(part, IncomingPart::Call(_))).count();
    let content = match parts.len() - calls {
        1 if starts_with_text => "#part",
        0 if calls > 0 => variant.empty_content,
        _ if role != Role::Assistant => "#parts",
        _ => return false,
    };
    let calls = if calls > 0 { r##","tool_calls":#calls"## } else { "" };
    matches_pattern(template, &format!(r#"{{"role":"{}","content":{content}{calls}}}"#, role.as_str()))
}
