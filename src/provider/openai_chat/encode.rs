//! OpenAI Chat Completions: from drafts to wire messages, each followed by one tool message a call.

use super::decode::{REASONING, is_text_only};
use super::variant::ChatVariant;
use crate::finding::{Action, Finding, Report};
use crate::json::{ArrayWriter, JsonStr, Kind, ObjectWriter};
use crate::message::{Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{MessageText, result_text, text_of};
use crate::provider::neutral::{default_name, refused};
use crate::provider::request::{ReasoningField, Settings};
use crate::provider::template::{write_filled, write_part, write_shape};
use crate::provider::{Wire, call_ids, tool_name};
use crate::replay::{DraftCall, DraftMessage, DraftResult, names_reasoning};
use crate::tool::{Arguments, ToolInvocation};
use std::borrow::Cow;

/// Writes a message and the results of its calls. Nothing is written for one that has nothing to say.
pub fn encode(
    chat: &ChatVariant,
    wire: &mut Wire<'_>,
    item: &DraftMessage<'_>,
    settings: &Settings,
    report: &mut Report,
) {
    let message = item.message;
    let own = message.dialect == Some(chat.dialect);
    let ids = call_ids(chat, &item.calls);
    match (&message.template, own) {
        (Some(template), true) if item.says(settings.reasoning != ReasoningField::Drop) => {
            write_own(chat, wire.begin(), template, item, &ids, settings);
        }
        (Some(_), true) => {}
        _ => encode_plain(chat, wire, item, &ids, settings, report),
    }
    encode_results(chat, wire, item, &ids, report);
}

/// Writes a message of the dialect's own, with its reasoning where the server wants it.
fn write_own(
    chat: &ChatVariant,
    out: &mut String,
    template: &WireTemplate,
    item: &DraftMessage<'_>,
    ids: &[JsonStr],
    settings: &Settings,
) {
    // Mistral has it in the content. Servers that have both members say the same in both.
    let field = match settings.reasoning {
        ReasoningField::Named(field) if !chat.content_chunks => field,
        _ => "",
    };
    let reasons = |part: &&Part| !field.is_empty() && matches!(part.body, PartBody::Reasoning(_));
    let mut reasoning = item.message.parts.iter().find(reasons).and_then(text_of);
    write_shape(out, template, &mut |name, slot, out| {
        if names_reasoning(name) && settings.reasoning == ReasoningField::Drop {
            return false;
        }
        if !field.is_empty() && REASONING.contains(&name) {
            if name != field {
                return false;
            }
            if let Some(text) = reasoning.take() {
                out.push_str(text.token());
                return true;
            }
        }
        fill_message(chat, out, name, slot, item, ids, settings)
    });
    if let Some(text) = reasoning {
        out.pop();
        for piece in [",\"", field, "\":", text.token(), "}"] {
            out.push_str(piece);
        }
    }
}

fn role_name(chat: &ChatVariant, message: &Message, settings: &Settings) -> &'static str {
    match message.role {
        Role::System | Role::Developer if chat.content_chunks => Role::System.as_str(),
        Role::System | Role::Developer => settings.system_role.unwrap_or(message.role).as_str(),
        role => role.as_str(),
    }
}

fn fill_message(
    chat: &ChatVariant,
    out: &mut String,
    name: &str,
    slot: &TemplateSlot,
    item: &DraftMessage<'_>,
    ids: &[JsonStr],
    settings: &Settings,
) -> bool {
    let message = item.message;
    match slot {
        TemplateSlot::Raw(_) if name == "role" => {
            out.push('"');
            out.push_str(role_name(chat, message, settings));
            out.push('"');
        }
        // A null beside calls may stay; without them it would leave the message empty.
        TemplateSlot::Raw(value) => out.push_str(value.as_str()),
        TemplateSlot::Part(at) => {
            let Some(part) = usize::try_from(*at).ok().and_then(|at| message.parts.get(at)) else { return false };
            let Some(text) = text_of(part) else { return false };
            out.push_str(text.token());
        }
        TemplateSlot::Parts | TemplateSlot::ResultsThenParts => write_blocks(chat, out, message),
        TemplateSlot::Calls => return write_calls(chat, out, item, ids),
        TemplateSlot::Text
        | TemplateSlot::Id
        | TemplateSlot::Name
        | TemplateSlot::Arguments
        | TemplateSlot::Content
        | TemplateSlot::Object(_) => return false,
    }
    true
}

fn write_blocks(chat: &ChatVariant, out: &mut String, message: &Message) {
    let own = message.dialect == Some(chat.dialect);
    let mut list = ArrayWriter::new(out);
    for part in &message.parts {
        let block = match &part.body {
            PartBody::Text(_) | PartBody::Refusal(_) => true,
            PartBody::Image(_) | PartBody::File(_) => refused(part, message.dialect, chat.dialect).is_none(),
            PartBody::Opaque(_) => own,
            PartBody::Reasoning(_) => own && chat.content_chunks,
            PartBody::Data { .. } | PartBody::ToolCall { .. } => false,
        };
        if block {
            write_block(chat, list.item(), part, own);
        }
    }
    list.end();
}

/// Writes a content part, in its own shape if `own`.
pub fn write_block(chat: &ChatVariant, out: &mut String, part: &Part, own: bool) {
    if let Some(template) = part.template.as_ref().filter(|_| own) {
        return match &part.body {
            PartBody::Reasoning(text) => write_filled(out, template, &[(TemplateSlot::Parts, &thinking_chunks(text))]),
            _ => write_part(out, part, template),
        };
    }
    if let PartBody::Opaque(value) = &part.body {
        out.push_str(value.as_str());
        return;
    }
    let mut block = ObjectWriter::new(out);
    match &part.body {
        PartBody::Reasoning(text) if chat.content_chunks => {
            block.text("type", "thinking").raw("thinking", &thinking_chunks(text));
        }
        PartBody::Text(text) | PartBody::Reasoning(text) => {
            block.text("type", "text").token("text", text);
        }
        PartBody::Refusal(text) if chat.content_chunks => {
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
        PartBody::File(media) if chat.content_chunks => {
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
                // Data needs a name: it says what is in it.
                let (data, own) = (media.address(), media.name.as_deref());
                match &media.file_id {
                    Some(id) => file.token("file_id", id),
                    None => file.raw("file_data", &data),
                };
                if let Some(name) = own.or(media.file_id.is_none().then_some(default_name(&data))) {
                    file.text("filename", name);
                }
            });
        }
        PartBody::Data { .. } | PartBody::ToolCall { .. } | PartBody::Opaque(_) => {}
    }
    block.end();
}

/// Mistral's reasoning is a list of chunks.
pub fn thinking_chunks(text: &JsonStr) -> String {
    format!(r#"[{{"type":"text","text":{}}}]"#, text.token())
}

fn encode_plain(
    chat: &ChatVariant,
    wire: &mut Wire<'_>,
    item: &DraftMessage<'_>,
    ids: &[JsonStr],
    settings: &Settings,
    report: &mut Report,
) {
    let message = item.message;
    let own = message.dialect == Some(chat.dialect);
    let role = role_name(chat, message, settings);
    let words = MessageText::of(message, chat.dialect, report);
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
    let text = words.text();
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
        None => object.raw("content", if item.calls.is_empty() { "null" } else { chat.empty_content }),
    };
    if let Some(refusal) = words.refusal {
        object.token("refusal", refusal);
    }
    if !item.calls.is_empty() {
        write_calls(chat, object.key("tool_calls"), item, ids);
    }
    object.end();
}

fn write_calls(chat: &ChatVariant, out: &mut String, item: &DraftMessage<'_>, ids: &[JsonStr]) -> bool {
    if item.calls.is_empty() {
        return false;
    }
    let mut list = ArrayWriter::new(out);
    for (call, id) in item.calls.iter().zip(ids) {
        write_call(chat, list.item(), call.invocation, id, item.message.dialect == Some(chat.dialect));
    }
    list.end();
    true
}

fn write_call(chat: &ChatVariant, out: &mut String, call: &ToolInvocation, id: &JsonStr, own: bool) {
    // What came as an object goes back as one, where the dialect takes it.
    let own_object = own && chat.content_chunks;
    let template = call.template.as_ref().filter(|_| own);
    // Kimi's own tools have such names; in a call of another type the rules mend it.
    let own_name = template.is_some() && call.name.starts_with('$');
    let name = JsonStr::new(&if own_name { Cow::Borrowed(call.name.as_str()) } else { tool_name(call) });
    let arguments = arguments_of(&call.arguments, own_object);
    let Some(template) = template else {
        let mut object = ObjectWriter::new(out);
        object.token("id", id).text("type", "function").object("function", |function| {
            function.token("name", &name).raw("arguments", &arguments);
        });
        return object.end();
    };
    write_shape(out, template, &mut |member, slot, out| {
        out.push_str(match (slot, &call.arguments) {
            (TemplateSlot::Raw(value), _) => value.as_str(),
            (TemplateSlot::Id, _) => id.token(),
            (TemplateSlot::Name, _) => name.token(),
            (TemplateSlot::Arguments, Arguments::Value(text))
                if member == "input" && text.view().kind() == Kind::String =>
            {
                text.as_str()
            }
            (TemplateSlot::Arguments, _) => &arguments,
            _ => return false,
        });
        true
    });
}

/// A string of JSON text. Nothing written reads as no arguments: `{}`.
fn arguments_of(arguments: &Arguments, own_object: bool) -> Cow<'_, str> {
    match arguments {
        Arguments::Value(value) if own_object && value.view().is_object() => value.as_str().into(),
        Arguments::Text(text) if text.is_empty() => "\"{}\"".into(),
        Arguments::Text(text) => text.token().into(),
        Arguments::Value(value) => JsonStr::new(value.as_str()).token().to_owned().into(),
    }
}

fn encode_results(
    chat: &ChatVariant,
    wire: &mut Wire<'_>,
    item: &DraftMessage<'_>,
    ids: &[JsonStr],
    report: &mut Report,
) {
    let mut pictures: Vec<(&ToolInvocation, &JsonStr, Part)> = Vec::new();
    for (call, id) in item.calls.iter().zip(ids) {
        encode_result(chat, wire.begin(), call, id, &mut pictures, report);
    }
    if pictures.is_empty() {
        return;
    }
    // A tool message takes text only: what a tool shows follows as the user's.
    let mut message = ObjectWriter::new(wire.begin());
    let mut content = ArrayWriter::new(message.text("role", "user").key("content"));
    for (call, id, part) in &pictures {
        let note = JsonStr::new(&format!("Shown by the tool {} (call {}):", call.name, id.decode()));
        write_block(chat, content.item(), &PartBody::Text(note).into(), false);
        write_block(chat, content.item(), part, false);
        report.push(
            Finding::info("unsupported_part", "a tool message takes text only; the image follows in a user message")
                .of_call(&call.call_id)
                .did(Action::Moved),
        );
    }
    content.end();
    message.end();
}

fn encode_result<'c>(
    chat: &ChatVariant,
    out: &mut String,
    call: &DraftCall<'c>,
    id: &'c JsonStr,
    pictures: &mut Vec<(&'c ToolInvocation, &'c JsonStr, Part)>,
    report: &mut Report,
) {
    let invocation = call.invocation;
    let stored = match call.result {
        Some(DraftResult::Stored(result)) => Some(result),
        _ => None,
    };
    if let Some(result) = stored
        && result.dialect == Some(chat.dialect)
        && (chat.content_chunks || result.content.view().kind() == Kind::String || is_text_only(chat, &result.content))
    {
        if let Some(template) = &result.template {
            return write_filled(
                out,
                template,
                &[(TemplateSlot::Id, id.token()), (TemplateSlot::Content, result.content.as_str())],
            );
        }
        let mut object = ObjectWriter::new(out);
        object.text("role", "tool").token("tool_call_id", id).json("content", result.content.view());
        object.end();
        return;
    }
    let words = result_text(chat.dialect, call, report);
    let shown = !words.media.is_empty();
    for part in words.media {
        pictures.push((invocation, id, part));
    }
    let mut object = ObjectWriter::new(out);
    object.text("role", "tool").token("tool_call_id", id);
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
