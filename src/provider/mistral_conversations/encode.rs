//! Drafts to entries. The results of a message's calls follow its entries.

use super::content::{CONTENT, OWN_CONTENT};
use super::entry::{CALL, CALL_ID, INPUT, OUTPUT, RESULT};
use super::sent_form::sent_form;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{ArrayWriter, Json, JsonKind, JsonStr, ObjectWriter, push_text};
use crate::message::{Dialect, Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::listed_parts::{continues_item, grouped_by_item, write_item};
use crate::provider::neutral::{
    MessageText, NO_ASSISTANT_MEDIA, image_detail, input_text, is_content_part, result_text, text_of,
};
use crate::provider::spec::{EncodeContext, Wire, call_ids, id_of_service, tool_name};
use crate::provider::wire_template::{write_filled, write_part, write_template};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{Arguments, ToolInvocation};

/// What a result says whose images and files follow it.
const SHOWN_NEXT: &str = "The result is shown in the next message.";

/// Writes a message and the results of its calls. An empty message is omitted.
pub(super) fn encode(wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
    let content = if is_native(item.message) { &OWN_CONTENT } else { &CONTENT };
    let ids: Vec<JsonStr> = if item.is_acknowledged {
        item.calls.iter().map(|call| id_of_service(content, call.invocation)).collect()
    } else {
        call_ids(content, &item.calls)
    };
    match item.message.role {
        // The service has the message and its calls.
        _ if item.is_acknowledged => {}
        Role::Assistant if is_native(item.message) => encode_native_answer(wire, item, &ids, context.report),
        Role::Assistant => encode_foreign_answer(wire, item, &ids, context.report),
        _ => encode_input(wire, item.message, context.report),
    }
    let mut media = Vec::new();
    for (call, id) in item.calls.iter().zip(&ids) {
        let mut entry = String::new();
        let parts = encode_result(&mut entry, call, id, context);
        write_sent(wire, entry, "");
        media.extend(parts.into_iter().map(|part| (call.invocation, id, part)));
    }
    if !media.is_empty() {
        encode_result_media(wire.begin(), &media, context.report);
    }
}

fn is_native(message: &Message) -> bool {
    message.dialect == Some(Dialect::MistralConversations)
}

/// Encodes a message of the user.
fn encode_input(wire: &mut Wire<'_>, message: &Message, report: &mut Report) {
    let native = is_native(message);
    if let Some(template) = message.template.as_ref().filter(|_| native) {
        let mut blocks = String::new();
        write_blocks(&mut blocks, message);
        let text = message.parts.first().and_then(text_of).map_or("\"\"", JsonStr::token);
        let mut entry = String::new();
        write_filled(&mut entry, template, &[(TemplateSlot::Parts, &blocks), (TemplateSlot::Part(0), text)]);
        write_sent(wire, entry, "");
        return;
    }
    let text = input_text(message, &CONTENT, report);
    if text.is_empty() {
        return;
    }
    let mut object = ObjectWriter::new(wire.begin());
    object.text("type", INPUT).text("role", "user");
    match text.single() {
        Some(single) => _ = object.token("content", single),
        None if native || message.role == Role::User => write_blocks(object.key("content"), message),
        None => _ = object.token("content", &text.joined()),
    }
    object.end();
}

/// Writes the content as a list, without the parts that the endpoint does not take.
fn write_blocks(out: &mut String, message: &Message) {
    let native = is_native(message);
    let is_block = |part: &Part| is_content_part(part, message.dialect, (&CONTENT, native));
    let mut list = ArrayWriter::new(out);
    for part in message.parts.iter().filter(|part| is_block(part)) {
        write_block(list.item(), part, native);
    }
    list.end();
}

/// Writes a chunk of the content of a message. `native`: in its original form, if it has one.
pub(super) fn write_block(out: &mut String, part: &Part, native: bool) {
    if let Some(template) = part.template.as_ref().filter(|_| native) {
        return write_part(out, part, template, &[]);
    }
    if let PartBody::Opaque(value) = &part.body {
        return out.push_str(value.as_str());
    }
    let mut block = ObjectWriter::new(out);
    match &part.body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => {
            block.text("type", "text").token("text", text);
        }
        PartBody::Image(media) => write_image(&mut block, media, image_detail(part)),
        PartBody::File(media) => write_document(&mut block, media),
        PartBody::Data { .. } | PartBody::ToolCall { .. } | PartBody::Opaque(_) => {}
    }
    block.end();
}

/// Writes the address of an image, in an object if there is a `detail`.
fn write_image(block: &mut ObjectWriter<'_>, media: &Media, detail: Option<&str>) {
    block.text("type", "image_url");
    match detail {
        Some(detail) => {
            block.object("image_url", |image| _ = image.raw("url", &media.address()).text("detail", detail));
        }
        None => _ = block.raw("image_url", &media.address()),
    }
}

fn write_document(block: &mut ObjectWriter<'_>, media: &Media) {
    block.text("type", "document_url").raw("document_url", &media.address());
    if let Some(name) = &media.name {
        block.text("document_name", name);
    }
}

/// Writes an entry in the form in which it is sent. Returns what has another form.
fn write_sent(wire: &mut Wire<'_>, entry: String, seed: &str) -> Option<&'static str> {
    let entry = Json::trusted(entry);
    let Some(form) = sent_form(entry.view(), seed) else {
        wire.begin().push_str(entry.as_str());
        return None;
    };
    form.entries.iter().for_each(|entry| wire.begin().push_str(entry));
    form.change
}

/// Writes the entries of an answer of this dialect.
fn encode_native_answer(wire: &mut Wire<'_>, item: &DraftMessage<'_>, ids: &[JsonStr], report: &mut Report) {
    for (at, parts) in grouped_by_item(&item.message.parts).into_iter().enumerate() {
        let Some(first) = parts.first() else { continue };
        let mut entry = String::new();
        match (&first.body, &first.template) {
            (PartBody::ToolCall { .. }, _) => {
                let place = item.call(&first.body).and_then(|call| place_of(item, call));
                if let Some((call, id)) = place.and_then(|at| item.calls.get(at).zip(ids.get(at))) {
                    write_call(&mut entry, call.invocation, id, true);
                }
            }
            // The first chunk of its message was removed.
            (_, Some(template)) if continues_item(first) => {
                write_item(&mut entry, parts, &output_of(template), false);
            }
            (_, Some(template)) => write_item(&mut entry, parts, template, false),
            (PartBody::Opaque(value), None) => entry.push_str(value.as_str()),
            (PartBody::Text(text) | PartBody::Refusal(text), None) if !text.is_empty() => {
                write_output(&mut entry, text)
            }
            _ => {}
        }
        if entry.is_empty() {
            continue;
        }
        if let Some(change) = write_sent(wire, entry, &format!("{} {at}", item.message.id)) {
            let finding = Finding::info(FindingCode::UnsupportedPart, change).of_message(&item.message.id);
            report.push(finding.with_action(Action::Rewritten));
        }
    }
}

/// Returns the template of a message of the model whose first chunk has the form of a further one.
fn output_of(further: &WireTemplate) -> WireTemplate {
    let raw = |text: &str| TemplateSlot::Raw(JsonStr::new(text).to_json());
    let mut members = vec![(JsonStr::new("type"), raw(OUTPUT)), (JsonStr::new("role"), raw("assistant"))];
    members.extend(further.0.get(1).map(|(_, slot)| (JsonStr::new("content"), slot.clone())));
    WireTemplate(members)
}

/// Returns the index of a call among those of its message.
fn place_of(item: &DraftMessage<'_>, call: &DraftCall<'_>) -> Option<usize> {
    item.calls.iter().position(|other| std::ptr::eq(other, call))
}

/// Writes the text and the calls of an answer of another dialect.
fn encode_foreign_answer(wire: &mut Wire<'_>, item: &DraftMessage<'_>, ids: &[JsonStr], report: &mut Report) {
    let text = MessageText::of(item.message, &CONTENT, report);
    if text.has_media {
        let what = NO_ASSISTANT_MEDIA;
        let finding = Finding::info(FindingCode::UnsupportedPart, what).of_message(&item.message.id);
        report.push(finding.with_action(Action::Dropped));
    }
    if let Some(text) = text.text() {
        write_output(wire.begin(), &text);
    }
    for (call, id) in item.calls.iter().zip(ids) {
        write_call(wire.begin(), call.invocation, id, false);
    }
}

fn write_output(out: &mut String, text: &JsonStr) {
    let mut object = ObjectWriter::new(out);
    object.text("type", OUTPUT).text("role", "assistant").token("content", text);
    object.end();
}

/// Writes a call. `native`: in its original form. Arguments that were an object are then sent as one.
fn write_call(out: &mut String, call: &ToolInvocation, id: &JsonStr, native: bool) {
    let name = JsonStr::new(&tool_name(call));
    let mut arguments = String::new();
    match &call.arguments {
        Arguments::Text(text) if text.is_empty() => arguments.push_str("\"{}\""),
        Arguments::Text(text) => arguments.push_str(text.token()),
        Arguments::Value(value) if native && value.view().is_object() => arguments.push_str(value.as_str()),
        Arguments::Value(value) => push_text(&mut arguments, value.as_str()),
    }
    let Some(template) = call.template.as_ref().filter(|_| native) else {
        let mut object = ObjectWriter::new(out);
        object.text("type", CALL).token(CALL_ID, id).token("name", &name).raw("arguments", &arguments);
        return object.end();
    };
    write_template(out, template, &mut |_, slot, out| {
        out.push_str(match slot {
            TemplateSlot::Raw(value) => value.as_str(),
            TemplateSlot::Id => id.token(),
            TemplateSlot::Name => name.token(),
            TemplateSlot::Arguments => &arguments,
            _ => return false,
        });
        true
    });
}

/// Writes the result of a call. Returns its images and files, which follow in a message of the user: a result is a
/// text.
fn encode_result(out: &mut String, call: &DraftCall<'_>, id: &JsonStr, context: &mut EncodeContext<'_>) -> Vec<Part> {
    if let Some(DraftResult::Stored(result)) = call.result
        && result.dialect == Some(Dialect::MistralConversations)
        && result.content.view().kind() == JsonKind::String
    {
        let values = [(TemplateSlot::Id, id.token()), (TemplateSlot::Content, result.content.as_str())];
        match &result.template {
            Some(template) => write_filled(out, template, &values),
            None => write_result(out, id, result.content.as_str()),
        }
        return Vec::new();
    }
    let content = result_text(&CONTENT, call, context.decode_result, context.report);
    match content.texts.as_slice() {
        [] if !content.media.is_empty() => write_result(out, id, JsonStr::new(SHOWN_NEXT).token()),
        texts => write_result(out, id, JsonStr::joined(&mut texts.iter(), "\\n").token()),
    }
    content.media
}

fn write_result(out: &mut String, id: &JsonStr, result: &str) {
    let mut object = ObjectWriter::new(out);
    object.text("type", RESULT).token(CALL_ID, id).raw("result", result);
    object.end();
}

/// Writes a message of the user with the images and files of results.
fn encode_result_media(out: &mut String, media: &[(&ToolInvocation, &JsonStr, Part)], report: &mut Report) {
    let mut message = ObjectWriter::new(out);
    message.text("type", INPUT).text("role", "user");
    message.array("content", |content| {
        for (call, id, part) in media {
            let note = JsonStr::new(&format!("Shown by the tool {} (call {}):", call.name, id.decode()));
            write_block(content.item(), &PartBody::Text(note).into(), false);
            write_block(content.item(), part, false);
            let what = "a result holds only text; the image or file follows in a user message";
            let finding = Finding::info(FindingCode::UnsupportedPart, what).of_call(&call.call_id);
            report.push(finding.with_action(Action::Moved));
        }
    });
    message.end();
}
