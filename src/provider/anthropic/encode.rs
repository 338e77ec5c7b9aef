//! Encodes messages for Anthropic Messages. The results of a round of calls are one user message after the calling
//! message.

use super::content::CONTENT;
use super::rules::{EMPTY_ERROR_TEXT, TOOLSET_NAME};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{JsonStr, ObjectWriter, list_of};
use crate::message::{Dialect, Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{
    NO_ASSISTANT_MEDIA, ResultText, arguments_object, is_system_text, rejected_media, result_text,
    write_document_context,
};
use crate::provider::spec::{DecodeResult, Wire, call_id, id_of_service, tool_name};
use crate::provider::wire_template::{write_filled, write_part};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{ToolInvocation, ToolResult};

/// Encodes the messages of one request.
pub(super) struct AnthropicEncoder<'e> {
    pub decode_result: DecodeResult,
    pub report: &'e mut Report,
}

impl AnthropicEncoder<'_> {
    /// Writes a message and then the results of its calls. `deferred` are earlier messages whose results were not
    /// written after them: they are written at the start of this message, or with the results of its own calls if it is
    /// the assistant's.
    pub fn encode(&mut self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, deferred: &[DraftMessage<'_>]) {
        if item.is_acknowledged {
            return self.encode_results(wire, item);
        }
        let message = item.message;
        let native = is_native(message);
        let mut blocks = Vec::new();
        if message.role != Role::Assistant {
            self.push_results(deferred, &mut blocks);
        }
        let has_results = !blocks.is_empty();
        let keeps_blank_text = native && (!item.calls.is_empty() || message.parts.iter().any(has_visible_text));
        for part in &message.parts {
            if let PartBody::ToolCall { .. } = part.body {
                if let Some(call) = item.call(&part.body) {
                    blocks.push(self.call_block(call.invocation, native));
                }
                continue;
            }
            let mut block = String::new();
            if accepts(part, message, keeps_blank_text, self.report) && write_block(&mut block, part, native) {
                blocks.push(block);
            }
        }
        // A system message of Anthropic's may have instructions in other members than its content.
        let is_empty_system = message.role == Role::System && native && message.parts.is_empty();
        if !blocks.is_empty() || is_empty_system {
            write_message(wire.begin(), message, &blocks, has_results);
        }
        if !item.results_go_on && !item.calls.is_empty() {
            let mut results = Vec::new();
            self.push_results(deferred, &mut results);
            self.push_results(std::slice::from_ref(item), &mut results);
            let mut object = ObjectWriter::new(wire.begin());
            object.text("role", "user").list("content", &results);
            object.end();
        }
    }

    /// Writes the results of calls that the service has.
    fn encode_results(&mut self, wire: &mut Wire<'_>, item: &DraftMessage<'_>) {
        let mut results = Vec::new();
        self.push_results(std::slice::from_ref(item), &mut results);
        if !results.is_empty() {
            let mut object = ObjectWriter::new(wire.begin());
            object.text("role", "user").list("content", &results);
            object.end();
        }
    }

    fn push_results(&mut self, items: &[DraftMessage<'_>], blocks: &mut Vec<String>) {
        for item in items {
            let id_in = if item.is_acknowledged { id_of_service } else { call_id };
            for call in &item.calls {
                blocks.push(self.result_block(call, &id_in(&CONTENT, call.invocation)));
            }
        }
    }

    fn call_block(&mut self, call: &ToolInvocation, native: bool) -> String {
        let input = arguments_object(call, self.report);
        let id = call_id(&CONTENT, call);
        let name = JsonStr::new(&tool_name(call));
        let mut out = String::new();
        if let Some(template) = call.template.as_ref().filter(|_| native) {
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

    fn result_block(&mut self, call: &DraftCall<'_>, id: &JsonStr) -> String {
        if let Some(DraftResult::Stored(result)) = call.result
            && result.dialect == Some(Dialect::Anthropic)
        {
            return native_result_block(id, result);
        }
        let mut result = result_text(&CONTENT, call, self.decode_result, self.report);
        // Anthropic rejects empty text blocks, and an error without content.
        result.texts.retain(|text| !text.is_empty());
        if result.is_error && result.texts.is_empty() {
            result.texts.push(JsonStr::new(EMPTY_ERROR_TEXT));
        }
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        block.text("type", "tool_result").token("tool_use_id", id);
        write_result_content(&mut block, &result);
        if result.is_error {
            block.bool("is_error", true);
        }
        if let Some(template) = &call.invocation.template {
            for (key, slot) in template.0.iter().filter(|(key, _)| key.inside() == TOOLSET_NAME) {
                if let TemplateSlot::Raw(name) = slot {
                    block.raw(key.inside(), name.as_str());
                }
            }
        }
        block.end();
        out
    }
}

/// Returns true if Anthropic accepts a part in this message; reports the loss otherwise. Anthropic rejects blank text,
/// unless `keeps_blank_text`: it stands in an Anthropic message with other text or a call.
fn accepts(part: &Part, message: &Message, keeps_blank_text: bool, report: &mut Report) -> bool {
    let native = is_native(message);
    let finding = match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => {
            return keeps_blank_text && !text.is_empty() || has_visible_text(part);
        }
        PartBody::Reasoning(_) if !native => return false,
        PartBody::Reasoning(_) if is_signed(part.template.as_ref()) => return true,
        PartBody::Reasoning(_) => Finding::info(
            FindingCode::UnsignedThinking,
            "Anthropic rejects thinking without a signature; it is left out",
        )
        .with_action(Action::Dropped),
        PartBody::Image(_) | PartBody::File(_)
            if message.role == Role::Assistant && !(native && matches!(part.body, PartBody::File(_))) =>
        {
            Finding::info(FindingCode::UnsupportedPart, NO_ASSISTANT_MEDIA).with_action(Action::Dropped)
        }
        PartBody::Image(_) | PartBody::File(_) => match rejected_media(part, message.dialect, &CONTENT) {
            Some(finding) => finding,
            None => return true,
        },
        // The renderer reports opaque parts of other dialects, for every target.
        PartBody::Opaque(_) => return native,
        PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
    };
    report.push(finding.of_message(&message.id));
    false
}

/// Returns the blocks of a system message, for the top-level `system`. Reports the parts that it cannot hold.
pub(super) fn system_blocks(message: &Message, report: &mut Report) -> Vec<String> {
    let native = is_native(message);
    let mut blocks = Vec::new();
    for part in &message.parts {
        let mut block = String::new();
        let is_accepted = if native {
            accepts(part, message, native, report)
        } else {
            is_system_text(part, message, report) && has_visible_text(part)
        };
        if is_accepted && write_block(&mut block, part, native) {
            blocks.push(block);
        }
    }
    blocks
}

fn is_native(message: &Message) -> bool {
    message.dialect == Some(Dialect::Anthropic)
}

/// Writes a message with these blocks. `has_results`: the first of them are results, not parts of the message.
fn write_message(out: &mut String, message: &Message, blocks: &[String], has_results: bool) {
    let native = is_native(message);
    let plain_text = match message.parts.as_slice() {
        [Part { body: PartBody::Text(text), template, .. }] if !(native && template.is_some()) => Some(text),
        _ => None,
    };
    let list = list_of(blocks);
    let content = match plain_text.filter(|_| blocks.len() == 1 && !has_results) {
        Some(text) => text.token(),
        None => list.as_str(),
    };
    if let Some(template) = message.template.as_ref().filter(|_| native) {
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

/// Returns true if the part is text with more than white space.
fn has_visible_text(part: &Part) -> bool {
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => !text.decode().trim().is_empty(),
        _ => false,
    }
}

/// Returns true if a thinking block with this template has a signature. Anthropic rejects thinking without one.
fn is_signed(template: Option<&WireTemplate>) -> bool {
    template.is_some_and(|template| {
        template.0.iter().any(|(key, slot)| {
            key.inside() == "signature"
                && matches!(slot, TemplateSlot::Raw(value) if value.as_str().len() > 2 && value.as_str() != "null")
        })
    })
}

/// Writes a part as a block, by its template if `native` (the part was decoded from Anthropic's format). Returns false
/// if Anthropic has no block for it.
pub(super) fn write_block(out: &mut String, part: &Part, native: bool) -> bool {
    if let Some(template) = part.template.as_ref().filter(|_| native) {
        write_part(out, part, template, &["file_id"]);
        return true;
    }
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => {
            let mut block = ObjectWriter::new(out);
            block.text("type", "text").token("text", text);
            block.end();
        }
        PartBody::Image(media) => return write_media(out, "image", (media, part)),
        PartBody::File(media) => return write_media(out, "document", (media, part)),
        PartBody::Opaque(value) => out.push_str(value.as_str()),
        PartBody::Reasoning(_) | PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
    }
    true
}

/// Writes an image or document block. Returns false if the media has neither data, URL nor file id.
fn write_media(out: &mut String, block_type: &str, (media, part): (&Media, &Part)) -> bool {
    let inline = media.inline();
    if inline.is_none() && media.url.is_none() && media.file_id.is_none() {
        return false;
    }
    let mut block = ObjectWriter::new(out);
    block.text("type", block_type).object("source", |source| match (inline, &media.url, &media.file_id) {
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
    if block_type == "document" {
        if let Some(name) = &media.name {
            block.text("title", name);
        }
        write_document_context(&mut block, part);
    }
    block.end();
    true
}

/// Returns the block of a result that was decoded from Anthropic's format.
fn native_result_block(id: &JsonStr, result: &ToolResult) -> String {
    let mut out = String::new();
    match &result.template {
        Some(template) => {
            let values = [(TemplateSlot::Id, id.token()), (TemplateSlot::Content, result.content.as_str())];
            write_filled(&mut out, template, &values);
        }
        None => {
            let mut block = ObjectWriter::new(&mut out);
            block.text("type", "tool_result").token("tool_use_id", id).json("content", result.content.view());
            block.end();
        }
    }
    out
}

/// Writes the `content` of a result: one text as a string, otherwise a list of blocks; nothing for an empty result.
fn write_result_content(block: &mut ObjectWriter<'_>, result: &ResultText) {
    match result.texts.as_slice() {
        [] if result.media.is_empty() => {}
        [text] if result.media.is_empty() => _ = block.token("content", text),
        texts => {
            let texts = texts.iter().map(|text| PartBody::Text(text.clone()).into());
            let mut blocks = Vec::new();
            for part in texts.chain(result.media.iter().cloned()) {
                let mut content_block = String::new();
                if write_block(&mut content_block, &part, false) {
                    blocks.push(content_block);
                }
            }
            block.list("content", &blocks);
        }
    }
}
