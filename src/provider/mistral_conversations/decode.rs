//! Entries to neutral messages. Consecutive entries of the model are one message: text, reasoning, calls and the
//! entries of Mistral's own tools are its parts, in their order. A part has the template of its entry
//! (`listed_parts.rs`).

use super::encode::write_block;
use super::entry::{
    CALL, CALL_ID, INPUT, OUTPUT, RESULT, answered_confirmations, is_type, needs_confirmation, thinking_texts, type_of,
};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Media, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::listed_parts::decode_entries;
use crate::provider::neutral::media_type_of;
use crate::provider::wire_template::{matches_pattern, template_of, template_with_slots, without_plain_template};
use crate::tool::Arguments;
use std::borrow::Cow;

/// Entries as they are encoded without a template. These need none.
const PLAIN_INPUT: &str = r##"{"type":"message.input","role":"user","content":#"##;
const PLAIN_OUTPUT: &str = r##"{"type":"message.output","role":"assistant","content":#text}"##;
const PLAIN_CALL: &str = r##"{"type":"function.call","tool_call_id":#id,"name":#name,"arguments":#arguments}"##;
const PLAIN_RESULT: &str = r##"{"type":"function.result","tool_call_id":#id,"result":#content}"##;

/// Decodes the `instructions` of a body: a system message.
pub(super) fn decode_instructions(instructions: JsonRef<'_>) -> Option<Incoming> {
    let text = instructions.as_json_str().filter(|text| !text.is_empty())?;
    Some(message_of(Role::System, vec![IncomingPart::Part(PartBody::Text(text).into())], None))
}

/// Decodes `inputs` that are a string: a user message.
pub(super) fn decode_text(text: JsonStr) -> Incoming {
    message_of(Role::User, vec![IncomingPart::Part(PartBody::Text(text).into())], None)
}

fn message_of(role: Role, parts: Vec<IncomingPart>, template: Option<WireTemplate>) -> Incoming {
    Incoming::Message(IncomingMessage { role, parts, dialect: Some(Dialect::MistralConversations), template })
}

/// Decodes the entries of `inputs` or `outputs`. A value that is no entry is returned as unknown.
pub(super) fn decode(wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
    // The parts of the model since the last entry of anybody else.
    let mut answer: Vec<IncomingPart> = Vec::new();
    let answered = answered_confirmations(wires);
    for wire in wires.iter().copied() {
        let entry_type = type_of(wire);
        match (&*entry_type, wire.text("role").as_deref()) {
            (INPUT, Some("assistant")) | (OUTPUT, _) => decode_answer(wire, &mut answer),
            // Mistral itself runs it, so no run waits for its result.
            (CALL, _) if needs_confirmation(wire) && wire.text(CALL_ID).is_none_or(|id| !answered.contains(&id)) => {
                answer.push(IncomingPart::Part(PartBody::Opaque(wire.to_owned()).into()));
            }
            (CALL, _) => answer.push(IncomingPart::Call(decode_call(wire))),
            (RESULT, _) => {
                end_answer(&mut answer, items);
                items.push(Incoming::Result(decode_result(wire)));
            }
            (INPUT, role) => {
                if !matches!(role, Some("user" | "system" | "developer")) {
                    items.push(Incoming::Unknown(wire.to_owned()));
                    continue;
                }
                end_answer(&mut answer, items);
                items.push(decode_input(wire));
            }
            (other, _) if is_type(other) => {
                answer.push(IncomingPart::Part(PartBody::Opaque(wire.to_owned()).into()));
            }
            _ => items.push(Incoming::Unknown(wire.to_owned())),
        }
    }
    end_answer(&mut answer, items);
}

/// Ends the message of the model: an entry of somebody else follows.
fn end_answer(answer: &mut Vec<IncomingPart>, items: &mut Vec<Incoming>) {
    if !answer.is_empty() {
        items.push(message_of(Role::Assistant, std::mem::take(answer), None));
    }
}

/// Decodes a message of the user. No entry is the system's: the rules make one with that role the user's, and so it is
/// here, too.
fn decode_input(wire: JsonRef<'_>) -> Incoming {
    let mut parts = Vec::new();
    let template = template_of(wire, &mut |key, value| match value.kind() {
        _ if key != "content" => None,
        JsonKind::String => {
            let text = value.as_json_str().filter(|text| !text.is_empty())?;
            parts = vec![IncomingPart::Part(PartBody::Text(text).into())];
            Some(TemplateSlot::Part(0))
        }
        JsonKind::Array => {
            parts = value.items().map(|block| IncomingPart::Part(decode_block(block))).collect();
            Some(TemplateSlot::Parts)
        }
        _ => None,
    });
    let is_single_text = matches!(parts.as_slice(), [IncomingPart::Part(Part { body: PartBody::Text(_), .. })]);
    let slot = if is_single_text { "part" } else { "parts" };
    let is_plain = !parts.is_empty() && matches_pattern(&template, &format!("{PLAIN_INPUT}{slot}}}"));
    message_of(Role::User, parts, (!is_plain).then_some(template))
}

/// Decodes a message of the model: each chunk of its content is a part.
fn decode_answer(entry: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let content = entry.get("content");
    if let Some(text) = content.and_then(JsonRef::as_json_str).filter(|text| !text.is_empty()) {
        let template = template_with_slots(entry, &[("content", TemplateSlot::Text)]);
        let template = (!matches_pattern(&template, PLAIN_OUTPUT)).then_some(template);
        return parts.push(IncomingPart::Part(Part { body: PartBody::Text(text), template, phase: None }));
    }
    let body = |chunk: JsonRef<'_>| match chunk.text("type").as_deref() {
        Some("text") => chunk.json_str("text").map(|text| (PartBody::Text(text), "text")),
        Some("thinking") => reasoning_of(chunk).map(|text| (PartBody::Reasoning(text), "")),
        _ => None,
    };
    match content.filter(|content| content.items().next().is_some()) {
        Some(content) => decode_entries(entry, ("content", content), &body, parts),
        // A message without text stays as received.
        None => parts.push(IncomingPart::Part(PartBody::Opaque(entry.to_owned()).into())),
    }
}

/// Returns the text of a chunk of reasoning, if it has one.
fn reasoning_of(chunk: JsonRef<'_>) -> Option<JsonStr> {
    let texts: Vec<JsonStr> = thinking_texts(chunk)?.into_iter().filter_map(JsonRef::as_json_str).collect();
    (!texts.is_empty()).then(|| JsonStr::joined(&mut texts.iter(), ""))
}

/// Decodes a chunk of the content of a message. One of a type without a neutral meaning stays opaque.
pub(super) fn decode_block(chunk: JsonRef<'_>) -> Part {
    decode_known(chunk).unwrap_or_else(|| PartBody::Opaque(chunk.to_owned()).into())
}

fn decode_known(chunk: JsonRef<'_>) -> Option<Part> {
    let chunk_type = chunk.text("type")?;
    let (body, template) = match &*chunk_type {
        "text" => {
            (PartBody::Text(chunk.json_str("text")?), template_with_slots(chunk, &[("text", TemplateSlot::Text)]))
        }
        "image_url" | "document_url" => {
            let member = &*chunk_type;
            let address = chunk.find(member)?;
            // An image is named by its URL, or by an object with it and more.
            let (url, slot) = match address.json_str("url") {
                Some(url) => (url, TemplateSlot::Object(template_with_slots(address, &[("url", TemplateSlot::Text)]))),
                None => (address.as_json_str()?, TemplateSlot::Text),
            };
            let media = Media {
                media_type: media_type_of(&url.decode()).map(str::to_owned),
                url: Some(url),
                name: chunk.text("document_name").map(Cow::into_owned),
                ..Media::default()
            };
            let body = if member == "image_url" { PartBody::Image(media) } else { PartBody::File(media) };
            (body, template_with_slots(chunk, &[(member, slot)]))
        }
        _ => return None,
    };
    let write = |out: &mut String, part: &Part, native| {
        write_block(out, part, native);
        true
    };
    Some(without_plain_template(&write, body, template))
}

fn decode_call(entry: JsonRef<'_>) -> IncomingCall {
    let slots = [(CALL_ID, TemplateSlot::Id), ("name", TemplateSlot::Name), ("arguments", TemplateSlot::Arguments)];
    let template = template_with_slots(entry, &slots);
    let is_complete = slots.iter().all(|(key, _)| entry.get(key).is_some());
    IncomingCall {
        id: None,
        is_async: false,
        call_id: entry.string(CALL_ID),
        name: entry.string("name"),
        arguments: match entry.find("arguments") {
            Some(value) => value.as_json_str().map_or_else(|| Arguments::Value(value.to_owned()), Arguments::Text),
            None => Arguments::Text(JsonStr::new("")),
        },
        template: (is_complete && !matches_pattern(&template, PLAIN_CALL)).then_some(template),
    }
}

fn decode_result(entry: JsonRef<'_>) -> IncomingResult {
    let template = template_with_slots(entry, &[(CALL_ID, TemplateSlot::Id), ("result", TemplateSlot::Content)]);
    let result = entry.get("result");
    let is_complete = entry.get(CALL_ID).is_some() && result.is_some();
    IncomingResult {
        call_id: entry.string(CALL_ID),
        name: None,
        content: result.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error: false,
        dialect: Some(Dialect::MistralConversations),
        template: (is_complete && !matches_pattern(&template, PLAIN_RESULT)).then_some(template),
        raw: entry.to_owned(),
        stands_alone: false,
    }
}
