//! OpenAI Chat Completions: from drafts to wire messages, each followed by one tool message a call.

use super::Chat;
use super::decode::{REASONING, result_parts};
use crate::finding::{Action, Finding, Report};
use crate::history::IncomingPart;
use crate::json::{JsonStr, Kind, ObjectWriter, push_text};
use crate::message::{Message, Part, PartBody, Role, Shape, Slot};
use crate::provider::settings::{ReasoningField, Settings};
use crate::provider::shape::write_shape;
use crate::provider::words::{Words, result_words};
use crate::provider::{Wire, call_ids, tool_name};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{Arguments, ToolInvocation};
use std::borrow::Cow;

/// Writes a message and the results of its calls. Nothing is written for one that has nothing to say.
pub fn encode(chat: &Chat, wire: &mut Wire<'_>, item: &DraftMessage<'_>, settings: &Settings, report: &mut Report) {
    let message = item.message;
    let own = message.dialect == Some(chat.dialect);
    let ids = call_ids(chat, &item.calls);
    match (&message.shape, own) {
        (Some(shape), true) if message.role != Role::Assistant || item.has_words() || !item.calls.is_empty() => {
            let out = wire.begin();
            write_shape(out, shape, &mut |name, slot, out| fill_message(chat, out, name, slot, item, &ids, settings));
        }
        (Some(_), true) => {}
        _ => encode_plain(chat, wire, item, &ids, settings, report),
    }
    encode_results(chat, wire, item, &ids, report);
}

fn role_name(chat: &Chat, message: &Message, settings: &Settings) -> &'static str {
    match message.role {
        Role::System | Role::Developer if chat.ways.chunks => Role::System.as_str(),
        Role::System | Role::Developer => settings.system_role.unwrap_or(message.role).as_str(),
        role => role.as_str(),
    }
}

fn fill_message(
    chat: &Chat,
    out: &mut String,
    name: &str,
    slot: &Slot,
    item: &DraftMessage<'_>,
    ids: &[Cow<'_, str>],
    settings: &Settings,
) -> bool {
    let message = item.message;
    match slot {
        Slot::Raw(_) if name == "role" => {
            out.push('"');
            out.push_str(role_name(chat, message, settings));
            out.push('"');
        }
        Slot::Raw(_) if name == "reasoning_details" && settings.reasoning == ReasoningField::Drop => return false,
        // A null beside calls may stay; without them it would leave the message empty.
        Slot::Raw(value) => out.push_str(value.as_str()),
        Slot::Part(at) => {
            if REASONING.contains(&name) && settings.reasoning == ReasoningField::Drop {
                return false;
            }
            let Some(part) = usize::try_from(*at).ok().and_then(|at| message.parts.get(at)) else { return false };
            let Some(text) = text_of(part) else { return false };
            out.push_str(text.token());
        }
        Slot::Parts | Slot::ResultsThenParts => write_blocks(chat, out, message),
        Slot::Calls => return write_calls(chat, out, item, ids),
        Slot::Text | Slot::Id | Slot::Name | Slot::Arguments | Slot::Content | Slot::Shape(_) => return false,
    }
    true
}

fn text_of(part: &Part) -> Option<&JsonStr> {
    match &part.body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => Some(text),
        _ => None,
    }
}

fn write_blocks(chat: &Chat, out: &mut String, message: &Message) {
    let own = message.dialect == Some(chat.dialect);
    out.push('[');
    let mut first = true;
    for part in &message.parts {
        let block = match &part.body {
            PartBody::Text(_) | PartBody::Refusal(_) | PartBody::File(_) => true,
            // One that another provider keeps cannot be shown to this one.
            PartBody::Image(media) => own || media.url.is_some() || media.data.is_some(),
            PartBody::Opaque(_) => own,
            PartBody::Reasoning(_) => own && chat.ways.chunks,
            PartBody::Data { .. } | PartBody::ToolCall { .. } => false,
        };
        if block {
            if !first {
                out.push(',');
            }
            first = false;
            write_block(chat, out, part, own);
        }
    }
    out.push(']');
}

/// Writes a content part, in its own shape if `own`.
pub fn write_block(chat: &Chat, out: &mut String, part: &Part, own: bool) {
    if let Some(shape) = part.shape.as_ref().filter(|_| own) {
        write_shape(out, shape, &mut |_, slot, out| match slot {
            Slot::Raw(value) => {
                out.push_str(value.as_str());
                true
            }
            Slot::Text => {
                let token = match &part.body {
                    PartBody::Image(media) | PartBody::File(media) => media.url.as_ref(),
                    _ => text_of(part),
                };
                token.is_some_and(|token| {
                    out.push_str(token.token());
                    true
                })
            }
            Slot::Parts => {
                write_thought(out, part);
                true
            }
            _ => false,
        });
        return;
    }
    if let PartBody::Opaque(value) = &part.body {
        out.push_str(value.as_str());
        return;
    }
    let mut block = ObjectWriter::new(out);
    match &part.body {
        PartBody::Reasoning(_) if chat.ways.chunks => {
            write_thought(block.text("type", "thinking").key("thinking"), part)
        }
        PartBody::Text(text) | PartBody::Reasoning(text) => {
            block.text("type", "text").token("text", text);
        }
        PartBody::Refusal(text) if chat.ways.chunks => {
            block.text("type", "text").token("text", text);
        }
        PartBody::Refusal(text) => {
            block.text("type", "refusal").token("refusal", text);
        }
        PartBody::Image(media) => {
            block.text("type", "image_url").object("image_url", |image| {
                image.raw("url", &media.address());
            });
        }
        PartBody::File(media) if chat.ways.chunks => {
            match &media.file_id {
                Some(id) => block.text("type", "file").token("file_id", id),
                None => block.text("type", "document_url").raw("document_url", &media.address()),
            };
            if let (Some(name), None) = (&media.name, &media.file_id) {
                block.text("document_name", name);
            }
        }
        PartBody::File(media) => {
            block.text("type", "file").object("file", |file| {
                if let Some(id) = &media.file_id {
                    file.token("file_id", id);
                } else {
                    file.raw("file_data", &media.address());
                }
                if let Some(name) = &media.name {
                    file.text("filename", name);
                }
            });
        }
        PartBody::Data { .. } | PartBody::ToolCall { .. } | PartBody::Opaque(_) => {}
    }
    block.end();
}

/// Mistral's reasoning is a list of chunks.
fn write_thought(out: &mut String, part: &Part) {
    out.push_str(r#"[{"type":"text","text":"#);
    out.push_str(text_of(part).map_or("\"\"", JsonStr::token));
    out.push_str("}]");
}

fn encode_plain(
    chat: &Chat,
    wire: &mut Wire<'_>,
    item: &DraftMessage<'_>,
    ids: &[Cow<'_, str>],
    settings: &Settings,
    report: &mut Report,
) {
    let message = item.message;
    let own = message.dialect == Some(chat.dialect);
    let role = role_name(chat, message, settings);
    let words = Words::of(message, own);
    if !own && message.parts.iter().any(|part| matches!(part.body, PartBody::Opaque(_))) {
        report.push(
            Finding::info("unsupported_part", "a block of another dialect has no place here")
                .of_message(&message.id)
                .did(Action::Dropped),
        );
    }
    if message.role != Role::Assistant {
        if words.is_empty() {
            return;
        }
        let pictures = words.has_media && message.role == Role::User;
        let mut object = ObjectWriter::new(wire.begin());
        object.text("role", role);
        match words.single() {
            Some(text) => {
                object.token("content", text);
            }
            None if pictures || own => write_blocks(chat, object.key("content"), message),
            None => {
                object.token("content", &words.joined());
            }
        }
        object.end();
        return;
    }
    if words.has_media && !own {
        report.push(
            Finding::info("unsupported_part", "an assistant message of this dialect holds no image or file")
                .of_message(&message.id)
                .did(Action::Dropped),
        );
    }
    // Where a refusal has no place of its own it is said.
    let said = words.refusal.filter(|_| chat.ways.chunks).cloned();
    let text = words.text().or(said);
    if text.is_none() && words.refusal.is_none() && item.calls.is_empty() {
        return;
    }
    let mut object = ObjectWriter::new(wire.begin());
    object.text("role", role);
    if let (ReasoningField::Named(field), Some(reasoning)) = (settings.reasoning, words.reasoning()) {
        object.token(field, &reasoning);
    }
    match &text {
        Some(text) => object.token("content", text),
        None => object.raw("content", if item.calls.is_empty() { "null" } else { chat.ways.blank }),
    };
    if let Some(refusal) = words.refusal.filter(|_| !chat.ways.chunks) {
        object.token("refusal", refusal);
    }
    if !item.calls.is_empty() {
        write_calls(chat, object.key("tool_calls"), item, ids);
    }
    object.end();
}

fn write_calls(chat: &Chat, out: &mut String, item: &DraftMessage<'_>, ids: &[Cow<'_, str>]) -> bool {
    if item.calls.is_empty() {
        return false;
    }
    for (at, (call, id)) in item.calls.iter().zip(ids).enumerate() {
        out.push(if at == 0 { '[' } else { ',' });
        write_call(chat, out, call.invocation, id, item.message.dialect == Some(chat.dialect));
    }
    out.push(']');
    true
}

fn write_call(chat: &Chat, out: &mut String, call: &ToolInvocation, id: &str, own: bool) {
    // What came as an object goes back as one, where the dialect takes it.
    let own_object = own && chat.ways.chunks;
    if let Some(shape) = call.shape.as_ref().filter(|_| own) {
        write_shape(out, shape, &mut |name, slot, out| {
            match (slot, &call.arguments) {
                (Slot::Raw(value), _) => out.push_str(value.as_str()),
                (Slot::Id, _) => push_text(out, id),
                (Slot::Name, _) => push_text(out, &tool_name(call)),
                (Slot::Arguments, Arguments::Value(text)) if name == "input" && text.view().kind() == Kind::String => {
                    out.push_str(text.as_str());
                }
                (Slot::Arguments, _) => push_arguments(out, &call.arguments, own_object),
                _ => return false,
            }
            true
        });
        return;
    }
    let mut object = ObjectWriter::new(out);
    object.text("id", id).text("type", "function").object("function", |function| {
        function.text("name", &tool_name(call));
        push_arguments(function.key("arguments"), &call.arguments, own_object);
    });
    object.end();
}

/// A string of JSON text. Nothing written reads as no arguments: `{}`.
fn push_arguments(out: &mut String, arguments: &Arguments, own_object: bool) {
    match arguments {
        Arguments::Value(value) if own_object && value.view().is_object() => out.push_str(value.as_str()),
        Arguments::Text(text) if text.is_empty() => out.push_str("\"{}\""),
        Arguments::Text(text) => out.push_str(text.token()),
        Arguments::Value(value) => push_text(out, value.as_str()),
    }
}

fn encode_results(
    chat: &Chat,
    wire: &mut Wire<'_>,
    item: &DraftMessage<'_>,
    ids: &[Cow<'_, str>],
    report: &mut Report,
) {
    let mut pictures: Vec<(&ToolInvocation, &str, Part)> = Vec::new();
    for (call, id) in item.calls.iter().zip(ids) {
        encode_result(chat, wire.begin(), call, id, &mut pictures);
    }
    if pictures.is_empty() {
        return;
    }
    // A tool message takes text only: what a tool shows follows as the user's.
    let out = wire.begin();
    out.push_str(r#"{"role":"user","content":["#);
    for (at, (call, id, part)) in pictures.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        let note = Part::from(PartBody::Text(JsonStr::new(&format!("Shown by the tool {} (call {id}):", call.name,))));
        write_block(chat, out, &note, false);
        out.push(',');
        write_block(chat, out, part, false);
        report.push(
            Finding::info("unsupported_part", "a tool message takes text only; the image follows in a user message")
                .of_call(&call.call_id)
                .did(Action::Moved),
        );
    }
    out.push_str("]}");
}

fn encode_result<'c>(
    chat: &Chat,
    out: &mut String,
    call: &DraftCall<'c>,
    id: &'c str,
    pictures: &mut Vec<(&'c ToolInvocation, &'c str, Part)>,
) {
    let invocation = call.invocation;
    let stored = match call.result {
        Some(DraftResult::Stored(result)) => Some(result),
        _ => None,
    };
    if let Some(result) = stored
        && result.dialect == Some(chat.dialect)
        && (chat.ways.chunks
            || result.content.view().kind() == Kind::String
            || is_text_only(&result_parts(chat, &result.content)))
    {
        if let Some(shape) = &result.shape {
            write_shape(out, shape, &mut |_, slot, out| {
                match slot {
                    Slot::Raw(value) => out.push_str(value.as_str()),
                    Slot::Id => push_text(out, id),
                    Slot::Content => out.push_str(result.content.as_str()),
                    _ => return false,
                }
                true
            });
            return;
        }
        let mut object = ObjectWriter::new(out);
        object.text("role", "tool").text("tool_call_id", id).json("content", result.content.view());
        object.end();
        return;
    }
    let words = result_words(chat.dialect, call);
    let shown = !words.media.is_empty();
    pictures.extend(words.media.into_iter().map(|part| (invocation, id, part)));
    let mut object = ObjectWriter::new(out);
    object.text("role", "tool").text("tool_call_id", id);
    match words.texts.as_slice() {
        [] => object.text("content", if !shown { "" } else { "The result is shown in the next message." }),
        [text] => object.token("content", text),
        texts => object.array("content", |content| {
            for text in texts {
                write_block(chat, content.item(), &PartBody::Text(text.clone()).into(), false);
            }
        }),
    };
    object.end();
}

fn is_text_only(parts: &[Part]) -> bool {
    !parts.is_empty() && parts.iter().all(|part| matches!(part.body, PartBody::Text(_)))
}

// What is plain needs no shape of its own.

/// Whether a call of that shape is written the same without it.
pub fn is_plain_call(shape: &Shape) -> bool {
    matches!(shape.0.as_slice(), [(id, Slot::Id), (kind, Slot::Raw(function)), (inner, Slot::Shape(Shape(members)))]
        if id.inside() == "id" && kind.inside() == "type" && function.as_str() == "\"function\"" && inner.inside() == "function"
            && matches!(members.as_slice(), [(name, Slot::Name), (arguments, Slot::Arguments)] if name.inside() == "name" && arguments.inside() == "arguments"))
}

/// Whether a result of that shape is written the same without it.
pub fn is_plain_result(shape: &Shape) -> bool {
    matches!(shape.0.as_slice(), [(role, Slot::Raw(tool)), (id, Slot::Id), (content, Slot::Content)]
        if role.inside() == "role" && tool.as_str() == "\"tool\"" && id.inside() == "tool_call_id" && content.inside() == "content")
}

/// Whether a message of that shape is written the same without it.
pub fn is_plain_message(chat: &Chat, role: Role, parts: &[IncomingPart], shape: &Shape) -> bool {
    let one_text = matches!(parts.first(), Some(IncomingPart::Part(Part { body: PartBody::Text(_), .. })));
    let calls = parts.iter().filter(|part| matches!(part, IncomingPart::Call(_))).count();
    let [(role_key, Slot::Raw(name)), (content, slot), rest @ ..] = shape.0.as_slice() else { return false };
    if role_key.inside() != "role" || name.as_str() != format!("\"{}\"", role.as_str()) || content.inside() != "content"
    {
        return false;
    }
    match (slot, rest) {
        (Slot::Part(0), []) => one_text && parts.len() == 1,
        (Slot::Parts, []) => role != Role::Assistant && (parts.len() > 1 || !one_text),
        (Slot::Part(0), [(key, Slot::Calls)]) => {
            one_text && calls > 0 && parts.len() == calls + 1 && key.inside() == "tool_calls"
        }
        (Slot::Raw(null), [(key, Slot::Calls)]) => {
            null.as_str() == chat.ways.blank && calls > 0 && parts.len() == calls && key.inside() == "tool_calls"
        }
        _ => false,
    }
}
