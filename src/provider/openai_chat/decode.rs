//! OpenAI Chat Completions: from wire messages to neutral ones.

use super::variant::ChatVariant;
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonRef, JsonStr, Kind};
use crate::message::{Media, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::dialect::without_plain_shape;
use crate::provider::neutral::kind_of;
use crate::provider::template::{is_shape, shape_of, shape_with};
use crate::tool::Arguments;

/// The members that hold reasoning on compatible servers; OpenAI itself has none.
pub const REASONING: [&str; 2] = ["reasoning_content", "reasoning"];

/// What is written of a call and of a result that have no shape.
const PLAIN_CALL: &str = r##"{"id":#id,"type":"function","function":{"name":#name,"arguments":#arguments}}"##;
const PLAIN_RESULT: &str = r##"{"role":"tool","tool_call_id":#id,"content":#content}"##;

/// Decodes one wire message. What is no message comes back as it is.
pub fn decode_message(chat: &ChatVariant, wire: JsonRef<'_>) -> Incoming {
    let role = wire.text("role");
    match role.as_deref() {
        Some("system") => Incoming::Message(decode_input(chat, wire, Role::System)),
        Some("developer") => Incoming::Message(decode_input(chat, wire, Role::Developer)),
        Some("user") => Incoming::Message(decode_input(chat, wire, Role::User)),
        Some("assistant") => Incoming::Message(decode_assistant(chat, wire)),
        Some("tool") => Incoming::Result(decode_result(chat, wire, "tool_call_id")),
        // The legacy form: one function call a message, paired by order.
        Some("function") => Incoming::Result(IncomingResult { template: None, ..decode_result(chat, wire, "") }),
        _ => Incoming::Unknown(wire.to_owned()),
    }
}

fn decode_input(chat: &ChatVariant, wire: JsonRef<'_>, role: Role) -> IncomingMessage {
    let mut parts = Vec::new();
    let template =
        shape_of(wire, &mut |key, value| if key == "content" { decode_content(chat, value, &mut parts) } else { None });
    finish(chat, role, parts, template)
}

fn decode_assistant(chat: &ChatVariant, wire: JsonRef<'_>) -> IncomingMessage {
    let mut parts = Vec::new();
    // Reasoning, then words, then calls, whatever the order of the members.
    let mut slots: Vec<(&str, TemplateSlot)> = Vec::new();
    for (key, value) in wire.entries().filter(|_| !chat.content_chunks) {
        if let Some(name) = REASONING.into_iter().find(|name| key.is_text(name))
            && let Some(slot) = own_text(value, &mut parts, PartBody::Reasoning)
        {
            slots.push((name, slot));
        }
    }
    if let Some(slot) = wire.get("content").and_then(|content| decode_content(chat, content, &mut parts)) {
        slots.push(("content", slot));
    }
    if let Some(slot) = wire.get("refusal").and_then(|refusal| own_text(refusal, &mut parts, PartBody::Refusal)) {
        slots.push(("refusal", slot));
    }
    // An empty list of calls is refused by OpenAI and taken by Mistral.
    let calls = wire.get("tool_calls").filter(|calls| calls.kind() == Kind::Array);
    if let Some(calls) = calls.filter(|calls| !chat.content_chunks || calls.items().next().is_some()) {
        for call in calls.items().filter(|call| call.is_object()) {
            parts.push(IncomingPart::Call(decode_call(chat, call)));
        }
        slots.push(("tool_calls", TemplateSlot::Calls));
    }
    let mut legacy = false;
    if let Some(call) = wire.find("function_call").filter(|call| call.is_object()) {
        parts.push(IncomingPart::Call(IncomingCall {
            call_id: String::new(),
            name: call.string("name"),
            arguments: arguments_of(call.get("arguments")),
            template: None,
        }));
        legacy = true;
    }
    // Of doubled members the last counts, as everybody reads them; then no shape could say where the hole is.
    let mut template = shape_with(wire, &slots);
    if legacy || doubled(&template) {
        template.0.clear();
    }
    finish(chat, Role::Assistant, parts, template)
}

fn doubled(template: &WireTemplate) -> bool {
    let holes = || template.0.iter().filter(|(_, slot)| !matches!(slot, TemplateSlot::Raw(_)));
    holes().enumerate().any(|(at, (key, _))| holes().take(at).any(|(before, _)| before.decode() == key.decode()))
}

/// A member that is one text: the text becomes a part, the member a hole.
fn own_text(value: JsonRef<'_>, parts: &mut Vec<IncomingPart>, body: fn(JsonStr) -> PartBody) -> Option<TemplateSlot> {
    let text = value.as_json_str().filter(|text| !text.is_empty())?;
    let at = u32::try_from(parts.len()).ok()?;
    parts.push(IncomingPart::Part(body(text).into()));
    Some(TemplateSlot::Part(at))
}

fn decode_content(chat: &ChatVariant, content: JsonRef<'_>, parts: &mut Vec<IncomingPart>) -> Option<TemplateSlot> {
    match content.kind() {
        Kind::String => own_text(content, parts, PartBody::Text),
        Kind::Array => {
            for block in content.items() {
                parts.push(IncomingPart::Part(decode_block(chat, block)));
            }
            Some(TemplateSlot::Parts)
        }
        _ => None,
    }
}

/// Decodes a content part. One that has no neutral meaning stays opaque.
pub fn decode_block(chat: &ChatVariant, block: JsonRef<'_>) -> Part {
    let kind = block.text("type");
    let body = match kind.as_deref() {
        Some("text") => block.json_str("text").map(PartBody::Text),
        Some("refusal") => block.json_str("refusal").map(PartBody::Refusal),
        // Mistral takes the address itself, too.
        Some("image_url") => block
            .get("image_url")
            .and_then(|image| image.json_str("url").or_else(|| image.as_json_str()))
            .map(|url| PartBody::Image(Media { url: Some(url), ..Media::default() })),
        Some("file") => block.find("file").filter(|file| file.is_object()).or(Some(block)).and_then(|file| {
            let name = file.text("filename").map(std::borrow::Cow::into_owned);
            let (url, file_id) = (file.json_str("file_data"), file.json_str("file_id"));
            // Bytes without an address around them: what they are is in the name alone.
            let bare = url.as_ref().is_some_and(|url| !url.inside().contains(':'));
            let (url, data) = if bare { (None, url) } else { (url, None) };
            let media_type = name.as_deref().and_then(kind_of).filter(|_| bare).map(str::to_owned);
            // Mistral's has its id in the part itself.
            (file != block || (chat.content_chunks && file_id.is_some())).then_some(PartBody::File(Media {
                url,
                data,
                file_id,
                media_type,
                name,
            }))
        }),
        Some("document_url") if chat.content_chunks => block.json_str("document_url").map(|url| {
            let name = block.text("document_name").map(std::borrow::Cow::into_owned);
            PartBody::File(Media { url: Some(url), name, ..Media::default() })
        }),
        Some("thinking") if chat.content_chunks => block.get("thinking").and_then(thought).map(PartBody::Reasoning),
        _ => None,
    };
    let Some(body) = body else { return PartBody::Opaque(block.to_owned()).into() };
    let inner = |value: JsonRef<'_>, name: &str| {
        let hole = |value: JsonRef<'_>| (value.kind() == Kind::String).then_some(TemplateSlot::Text);
        if !value.is_object() {
            return hole(value);
        }
        Some(TemplateSlot::Object(shape_of(value, &mut |key, value| if key == name { hole(value) } else { None })))
    };
    let template = shape_of(block, &mut |key, value| match (key, &body) {
        ("text", PartBody::Text(_)) | ("refusal", PartBody::Refusal(_)) => Some(TemplateSlot::Text),
        ("image_url", PartBody::Image(_)) => inner(value, "url"),
        ("file", PartBody::File(_)) if value.is_object() => inner(value, "file_data"),
        ("document_url", PartBody::File(_)) => inner(value, ""),
        ("thinking", PartBody::Reasoning(_)) => is_one_text(value).then_some(TemplateSlot::Parts),
        _ => None,
    });
    without_plain_shape(chat, body, template)
}

/// The words of Mistral's reasoning: a text, or a list of chunks; none where no chunk is text.
fn thought(value: JsonRef<'_>) -> Option<JsonStr> {
    let mut texts = Vec::new();
    for chunk in value.items() {
        texts.extend(chunk.json_str("text"));
    }
    if texts.is_empty() { value.as_json_str() } else { Some(JsonStr::joined(&mut texts.iter(), "\\n\\n")) }
}

/// Whether a list of chunks is the one that is written for a text.
fn is_one_text(chunks: JsonRef<'_>) -> bool {
    let mut all = chunks.items();
    let (Some(chunk), None) = (all.next(), all.next()) else { return false };
    let template = shape_of(chunk, &mut |_, value| (value.kind() == Kind::String).then_some(TemplateSlot::Text));
    chunk.says("type", "text") && is_shape(&template, r##"{"type":#text,"text":#text}"##)
}

fn decode_call(chat: &ChatVariant, call: JsonRef<'_>) -> IncomingCall {
    let custom = call.find("custom").filter(|custom| custom.is_object());
    let function = call.find("function").filter(|function| function.is_object());
    let inner = function.or(custom).unwrap_or(call);
    let input = if function.is_none() && custom.is_some() { "input" } else { "arguments" };
    let own = if function.is_some() { "function" } else { "custom" };
    let template = shape_of(call, &mut |key, value| match key {
        "id" => Some(TemplateSlot::Id),
        _ if key == own && value == inner => Some(TemplateSlot::Object(shape_with(
            value,
            &[("name", TemplateSlot::Name), (input, TemplateSlot::Arguments)],
        ))),
        _ => None,
    });
    let mut decoded = IncomingCall {
        call_id: call.string("id"),
        name: inner.string("name"),
        arguments: match inner.get(input) {
            // The free text of a custom tool is a value, and no text that holds one.
            Some(text) if input == "input" && text.kind() == Kind::String => Arguments::Value(text.to_owned()),
            value => arguments_of(value),
        },
        template: None,
    };
    // A call without id, name or arguments takes the plain form: the holes have nowhere to be.
    let whole = call.get("id").is_some()
        && inner.get("name").is_some()
        && inner.get(input).is_some_and(|a| a.kind() == Kind::String || (chat.content_chunks && a.is_object()))
        && inner != call;
    if whole && !is_shape(&template, PLAIN_CALL) {
        decoded.template = Some(template);
    }
    decoded
}

/// Arguments, a string of JSON text by rule; an object from servers that are nearly the dialect.
pub fn arguments_of(value: Option<JsonRef<'_>>) -> Arguments {
    match value {
        None => Arguments::Text(JsonStr::new("")),
        Some(value) => match value.as_json_str() {
            Some(text) => Arguments::Text(text),
            None if value.is_null() => Arguments::Text(JsonStr::new("")),
            None => Arguments::Value(value.to_owned()),
        },
    }
}

fn decode_result(chat: &ChatVariant, wire: JsonRef<'_>, id: &str) -> IncomingResult {
    let template = shape_with(wire, &[("content", TemplateSlot::Content), (id, TemplateSlot::Id)]);
    let whole = wire.get(id).is_some() && wire.get("content").is_some();
    IncomingResult {
        call_id: wire.string(id),
        name: None,
        content: wire.get("content").map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error: false,
        dialect: Some(chat.dialect),
        template: (whole && !is_shape(&template, PLAIN_RESULT)).then_some(template),
        raw: wire.to_owned(),
        apart: false,
    }
}

fn finish(chat: &ChatVariant, role: Role, parts: Vec<IncomingPart>, template: WireTemplate) -> IncomingMessage {
    let plain = is_plain_message(chat, role, &parts, &template);
    let template = (!plain && !template.0.is_empty()).then_some(template);
    IncomingMessage { role, parts, dialect: Some(chat.dialect), template }
}

/// Whether a content is a list of texts, and holds one at least: a tool message takes nothing else.
pub fn is_text_only(chat: &ChatVariant, content: &Json) -> bool {
    let mut blocks = content.view().items();
    blocks.clone().next().is_some() && blocks.all(|block| matches!(decode_block(chat, block).body, PartBody::Text(_)))
}

/// Whether a message of that shape is written the same without it.
pub fn is_plain_message(chat: &ChatVariant, role: Role, parts: &[IncomingPart], template: &WireTemplate) -> bool {
    let one_text = matches!(parts.first(), Some(IncomingPart::Part(Part { body: PartBody::Text(_), .. })));
    let calls = parts.iter().filter(|part| matches!(part, IncomingPart::Call(_))).count();
    let content = match parts.len() - calls {
        1 if one_text => "#part",
        0 if calls > 0 => chat.empty_content,
        _ if role != Role::Assistant => "#parts",
        _ => return false,
    };
    let calls = if calls > 0 { r##","tool_calls":#calls"## } else { "" };
    is_shape(template, &format!(r#"{{"role":"{}","content":{content}{calls}}}"#, role.as_str()))
}
