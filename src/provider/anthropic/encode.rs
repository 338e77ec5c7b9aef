//! Anthropic Messages: from drafts to wire messages, the results of a round in one user message behind it.

use super::Anthropic;
use super::decode::is_signed;
use super::rules::{SILENT_ERROR, TOOLSET};
use crate::finding::{Action, Finding, Report};
use crate::history::IncomingPart;
use crate::json::{JsonStr, ObjectWriter, list_of};
use crate::message::{Dialect, Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::refused;
use crate::provider::neutral::{arguments_object, result_text};
use crate::provider::template::{is_shape, write_filled, write_part};
use crate::provider::{Wire, call_id, tool_name};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::ToolInvocation;

/// Writes a message and, behind it, the results of its calls. `before` are the messages whose results stand in this one, or
/// with its own.
pub fn encode(wire: &mut Wire<'_>, item: &DraftMessage<'_>, before: &[DraftMessage<'_>], report: &mut Report) {
    let message = item.message;
    let own = message.dialect == Some(Dialect::Anthropic);
    let mut blocks = Vec::new();
    if message.role != Role::Assistant {
        add_results(before, &mut blocks, report);
    }
    let results = blocks.len();
    let beside = own && (!item.calls.is_empty() || message.parts.iter().any(says));
    for part in &message.parts {
        match &part.body {
            PartBody::ToolCall { .. } => {
                if let Some(call) = item.call(&part.body) {
                    blocks.push(call_block(call.invocation, own, report));
                }
            }
            _ => {
                let mut block = String::new();
                if may_go(part, message, own, beside, report) && write_block(&mut block, part, own) {
                    blocks.push(block);
                }
            }
        }
    }
    // A system message may say nothing, and hold what the model is to heed all the same.
    let directs = message.role == Role::System && own && message.parts.is_empty();
    if !blocks.is_empty() || directs {
        write_message(wire.begin(), message, own, &blocks, results == 0);
    }
    if !item.results_go_on && !item.calls.is_empty() {
        let mut results = Vec::new();
        add_results(before, &mut results, report);
        add_results(std::slice::from_ref(item), &mut results, report);
        let mut object = ObjectWriter::new(wire.begin());
        object.text("role", "user").list("content", &results);
        object.end();
    }
}

fn add_results(items: &[DraftMessage<'_>], blocks: &mut Vec<String>, report: &mut Report) {
    for item in items {
        for call in &item.calls {
            blocks.push(result_block(call, report));
        }
    }
}

/// The blocks of a system message, for the top-level `system`.
pub fn system_blocks(message: &Message, blocks: &mut Vec<String>) {
    let own = message.dialect == Some(Dialect::Anthropic);
    for part in &message.parts {
        let mut block = String::new();
        if may_go(part, message, own, own, &mut Vec::new()) && write_block(&mut block, part, own) {
            blocks.push(block);
        }
    }
}

/// `alone`: no results stand before its own blocks.
fn write_message(out: &mut String, message: &Message, own: bool, blocks: &[String], alone: bool) {
    let text = match message.parts.as_slice() {
        [Part { body: PartBody::Text(text), template }]
            if alone && blocks.len() == 1 && !(own && template.is_some()) =>
        {
            Some(text)
        }
        _ => None,
    };
    let list = list_of(blocks);
    let content = text.map_or(list.as_str(), JsonStr::token);
    if let Some(template) = message.template.as_ref().filter(|_| own) {
        let values =
            [(TemplateSlot::Part(0), content), (TemplateSlot::Parts, &list), (TemplateSlot::ResultsThenParts, &list)];
        return write_filled(out, template, &values);
    }
    let role = match message.role {
        Role::Developer => "system",
        role => role.as_str(),
    };
    let mut object = ObjectWriter::new(out);
    object.text("role", role).raw("content", content);
    object.end();
}

/// Whether a part has words.
fn says(part: &Part) -> bool {
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => !text.decode().trim().is_empty(),
        _ => false,
    }
}

/// Whether a part may go to Anthropic: it refuses text that says nothing, and thinking that it did not sign. What came from
/// there as white space goes back to it where words or calls are `beside` it.
fn may_go(part: &Part, message: &Message, own: bool, beside: bool, report: &mut Report) -> bool {
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => beside && !text.is_empty() || says(part),
        PartBody::Reasoning(_) if own && is_signed(part.template.as_ref()) => true,
        PartBody::Reasoning(_) => {
            if own {
                report.push(
                    Finding::info("unsigned_thinking", "thinking without a signature is refused; it is left out")
                        .of_message(&message.id)
                        .did(Action::Dropped),
                );
            }
            false
        }
        PartBody::Image(_) | PartBody::File(_)
            if message.role == Role::Assistant && !(own && matches!(part.body, PartBody::File(_))) =>
        {
            report.push(
                Finding::info("unsupported_part", "an assistant message of this dialect holds no image or file")
                    .of_message(&message.id)
                    .did(Action::Dropped),
            );
            false
        }
        PartBody::Image(_) | PartBody::File(_) => match refused(part, message.dialect, Dialect::Anthropic) {
            Some(finding) => {
                report.push(finding.of_message(&message.id));
                false
            }
            None => true,
        },
        // Told where a message is encoded, for every dialect.
        PartBody::Opaque(_) => own,
        PartBody::Data { .. } | PartBody::ToolCall { .. } => false,
    }
}

/// Writes a block, in its own shape if `own`; false where the dialect has none for it.
pub fn write_block(out: &mut String, part: &Part, own: bool) -> bool {
    if let Some(template) = part.template.as_ref().filter(|_| own) {
        write_part(out, part, template);
        return true;
    }
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => {
            let mut block = ObjectWriter::new(out);
            block.text("type", "text").token("text", text);
            block.end();
        }
        PartBody::Image(media) => return write_media(out, "image", media),
        PartBody::File(media) => return write_media(out, "document", media),
        PartBody::Opaque(value) => out.push_str(value.as_str()),
        PartBody::Reasoning(_) | PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
    }
    true
}

fn write_media(out: &mut String, kind: &str, media: &Media) -> bool {
    let inline = media.inline();
    if inline.is_none() && media.url.is_none() && media.file_id.is_none() {
        return false;
    }
    let mut block = ObjectWriter::new(out);
    block.text("type", kind).object("source", |source| match (inline, &media.url, &media.file_id) {
        (Some((media_type, data)), _, _) => {
            source.text("type", "base64").text("media_type", &media_type).token("data", &data);
        }
        (None, Some(url), _) => {
            source.text("type", "url").token("url", url);
        }
        (None, None, Some(id)) => {
            source.text("type", "file").token("file_id", id);
        }
        (None, None, None) => {}
    });
    if let Some(name) = media.name.as_ref().filter(|_| kind == "document") {
        block.text("title", name);
    }
    block.end();
    true
}

fn call_block(call: &ToolInvocation, own: bool, report: &mut Report) -> String {
    let input = arguments_object(call, report);
    let id = call_id(&Anthropic, call);
    let name = JsonStr::new(&tool_name(call));
    let mut out = String::new();
    if let Some(template) = call.template.as_ref().filter(|_| own) {
        let values = [
            (TemplateSlot::Id, id.token()),
            (TemplateSlot::Name, name.token()),
            (TemplateSlot::Arguments, input.as_str()),
        ];
        write_filled(&mut out, template, &values);
        return out;
    }
    let mut block = ObjectWriter::new(&mut out);
    block.text("type", "tool_use").token("id", &id).token("name", &name).json("input", input.view());
    block.end();
    out
}

fn result_block(call: &DraftCall<'_>, report: &mut Report) -> String {
    let id = call_id(&Anthropic, call.invocation);
    let mut out = String::new();
    if let Some(DraftResult::Stored(result)) = call.result
        && result.dialect == Some(Dialect::Anthropic)
    {
        if let Some(template) = &result.template {
            write_filled(
                &mut out,
                template,
                &[(TemplateSlot::Id, id.token()), (TemplateSlot::Content, result.content.as_str())],
            );
            return out;
        }
        let mut block = ObjectWriter::new(&mut out);
        block.text("type", "tool_result").token("tool_use_id", &id).json("content", result.content.view());
        block.end();
        return out;
    }
    let mut words = result_text(Dialect::Anthropic, call, report);
    // Empty text is refused, and so is an error that says nothing.
    words.texts.retain(|text| !text.is_empty());
    if words.is_error && words.texts.is_empty() {
        words.texts.push(JsonStr::new(SILENT_ERROR));
    }
    let mut block = ObjectWriter::new(&mut out);
    block.text("type", "tool_result").token("tool_use_id", &id);
    match words.texts.as_slice() {
        [] if words.media.is_empty() => {}
        [text] if words.media.is_empty() => _ = block.token("content", text),
        texts => {
            let mut blocks = Vec::new();
            let mut add = |part: &Part| {
                let mut text = String::new();
                if write_block(&mut text, part, false) {
                    blocks.push(text);
                }
            };
            texts.iter().for_each(|text| add(&PartBody::Text(text.clone()).into()));
            words.media.iter().for_each(add);
            block.list("content", &blocks);
        }
    }
    if words.is_error {
        block.bool("is_error", true);
    }
    if let Some(template) = &call.invocation.template {
        for (key, slot) in template.0.iter().filter(|(key, _)| key.inside() == TOOLSET) {
            if let TemplateSlot::Raw(name) = slot {
                block.raw(key.inside(), name.as_str());
            }
        }
    }
    block.end();
    out
}

// What is plain needs no shape of its own.

/// Whether a message of that shape is written the same without it.
pub fn is_plain_message(role: Role, parts: &[IncomingPart], template: &WireTemplate) -> bool {
    let one_plain_text = matches!(parts, [IncomingPart::Part(Part { body: PartBody::Text(_), template: None })]);
    let slot = if one_plain_text { "part" } else { "parts" };
    !parts.is_empty() && is_shape(template, &format!(r##"{{"role":"{}","content":#{slot}}}"##, role.as_str()))
}
