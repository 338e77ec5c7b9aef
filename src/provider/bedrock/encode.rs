//! Encodes messages for Converse. The results of a round of calls are one user message after the calling message.

use super::block::{REASONING, TOOL_RESULT, TOOL_USE};
use super::content::CONTENT;
use super::media::write_media;
use super::models::Vendor;
use super::rules::{DOCUMENT_TEXT, EMPTY_ERROR_TEXT, has_document_without_text};
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{Json, JsonStr, ObjectWriter, list_of};
use crate::message::{Dialect, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{
    NO_ASSISTANT_MEDIA, ResultText, arguments_object, is_system_text, rejected_media, result_text,
};
use crate::provider::request::Settings;
use crate::provider::spec::{DecodeResult, Wire, call_ids, tool_name};
use crate::provider::wire_template::{write_filled, write_part};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{ToolInvocation, ToolResult};

/// Encodes the messages of one request.
pub(super) struct BedrockEncoder<'e> {
    pub settings: &'e Settings,
    pub decode_result: DecodeResult,
    pub report: &'e mut Report,
}

impl BedrockEncoder<'_> {
    /// Writes a message and then the results of its calls. `deferred` are earlier messages whose results were not
    /// written after them: they are written at the start of this message, or with the results of its own calls if it is
    /// the assistant's.
    pub fn encode(&mut self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, deferred: &[DraftMessage<'_>]) {
        let message = item.message;
        let native = is_native(message);
        let mut blocks = Vec::new();
        if message.role != Role::Assistant {
            self.push_results(deferred, &mut blocks);
        }
        let ids = call_ids(&CONTENT, &item.calls);
        for part in &message.parts {
            if let PartBody::ToolCall { .. } = part.body {
                if let Some(call) = item.call(&part.body) {
                    let at = item.calls.iter().position(|other| std::ptr::eq(other, call));
                    let id = at.and_then(|at| ids.get(at));
                    blocks.extend(id.map(|id| self.call_block(call.invocation, id, native)));
                }
                continue;
            }
            let mut block = String::new();
            if self.accepts(part, message) && write_block(&mut block, part, native) {
                blocks.push(block);
            }
        }
        if !blocks.is_empty() {
            write_message(wire.begin(), message, blocks);
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

    fn push_results(&mut self, items: &[DraftMessage<'_>], blocks: &mut Vec<String>) {
        for item in items {
            let ids = call_ids(&CONTENT, &item.calls);
            for (call, id) in item.calls.iter().zip(&ids) {
                self.push_result(call, id, blocks);
            }
        }
    }

    fn call_block(&mut self, call: &ToolInvocation, id: &JsonStr, native: bool) -> String {
        let input = arguments_object(call, self.report);
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
        block.object(TOOL_USE, |inner| {
            inner.token("toolUseId", id).token("name", &name).json("input", input.view());
        });
        block.end();
        out
    }

    /// Adds the block of a result, and the cache point that followed it.
    fn push_result(&mut self, call: &DraftCall<'_>, id: &JsonStr, blocks: &mut Vec<String>) {
        if let Some(DraftResult::Stored(result)) = call.result
            && result.dialect == Some(Dialect::Bedrock)
            && result.content.view().kind() == crate::json::JsonKind::Array
        {
            return push_native_result(id, result, blocks);
        }
        let mut result = result_text(&CONTENT, call, self.decode_result, self.report);
        // Converse rejects blank texts, and an error without content.
        result.texts.retain(|text| !text.decode().trim().is_empty());
        if result.is_error && result.texts.is_empty() && result.media.is_empty() {
            result.texts.push(JsonStr::new(EMPTY_ERROR_TEXT));
        }
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        block.object(TOOL_RESULT, |inner| {
            inner.token("toolUseId", id).list("content", &result_blocks(&result));
            if result.is_error {
                inner.text("status", "error");
            }
        });
        block.end();
        blocks.push(out);
    }

    /// Returns true if Converse accepts a part in this message; reports the loss otherwise.
    fn accepts(&mut self, part: &Part, message: &Message) -> bool {
        let native = is_native(message);
        let finding = match &part.body {
            PartBody::Text(_) | PartBody::Refusal(_) => return has_visible_text(part) || keeps_blank(part, native),
            PartBody::Reasoning(_) if !native => return false,
            PartBody::Reasoning(_) if Vendor::of(self.settings.model) == Vendor::Claude && !is_signed(part) => {
                Finding::info(
                    FindingCode::UnsignedThinking,
                    "Claude rejects reasoning without a signature; it is left out",
                )
                .with_action(Action::Dropped)
            }
            PartBody::Reasoning(_) => return true,
            PartBody::Image(_) | PartBody::File(_) if message.role == Role::Assistant && !native => {
                let text = NO_ASSISTANT_MEDIA;
                Finding::info(FindingCode::UnsupportedPart, text).with_action(Action::Dropped)
            }
            PartBody::Image(_) | PartBody::File(_) => match rejected_media(part, message.dialect, &CONTENT) {
                Some(finding) => finding,
                None => return true,
            },
            // The renderer reports opaque parts of other dialects, for every target.
            PartBody::Opaque(_) => return native,
            PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
        };
        self.report.push(finding.of_message(&message.id));
        false
    }
}

/// Returns the blocks of the system messages outside of the list; none if there are none. Reports the parts that it
/// cannot hold.
pub(super) fn system_member(messages: &[&Message], report: &mut Report) -> Option<Json> {
    let mut blocks = Vec::new();
    for message in messages {
        let native = is_native(message);
        for part in &message.parts {
            let mut block = String::new();
            let is_accepted = match part.body {
                PartBody::Opaque(_) if native => true,
                _ => is_system_text(part, message, report) && has_visible_text(part),
            };
            if is_accepted && write_block(&mut block, part, native) {
                blocks.push(block);
            }
        }
    }
    (!blocks.is_empty()).then(|| Json::trusted(list_of(&blocks)))
}

fn is_native(message: &Message) -> bool {
    message.dialect == Some(Dialect::Bedrock)
}

/// Writes a message with these blocks. A document gets a text beside it.
fn write_message(out: &mut String, message: &Message, mut blocks: Vec<String>) {
    if message.role == Role::User && has_document_without_text(&blocks) {
        blocks.push(DOCUMENT_TEXT.to_owned());
    }
    let list = list_of(&blocks);
    if let Some(template) = message.template.as_ref().filter(|_| is_native(message)) {
        let values = [(TemplateSlot::Parts, list.as_str()), (TemplateSlot::ResultsThenParts, &list)];
        return write_filled(out, template, &values);
    }
    let role = match message.role {
        Role::Developer => "system",
        role => role.as_str(),
    };
    let mut object = ObjectWriter::new(out);
    object.text("role", role).raw("content", &list);
    object.end();
}

/// Returns true if the part is text with more than white space.
fn has_visible_text(part: &Part) -> bool {
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => !text.decode().trim().is_empty(),
        _ => false,
    }
}

/// Returns true if a blank text is inside another block, such as `citationsContent`, which is sent as it was received.
fn keeps_blank(part: &Part, native: bool) -> bool {
    native && part.template.as_ref().is_some_and(|template| template.0.iter().all(|(key, _)| key.inside() != "text"))
}

/// Returns true if reasoning has a signature: `{"reasoningText":{"text":"…","signature":"…"}}`.
fn is_signed(part: &Part) -> bool {
    fn has_signature(template: &WireTemplate) -> bool {
        template.0.iter().any(|(key, slot)| match slot {
            TemplateSlot::Object(inner) => has_signature(inner),
            TemplateSlot::Raw(value) => {
                key.inside() == "signature" && value.as_str().len() > 2 && value.as_str() != "null"
            }
            _ => false,
        })
    }
    part.template.as_ref().is_some_and(has_signature)
}

/// Writes a part as a block, by its template if `native` (the part was decoded from Converse). Returns false if
/// Converse has no block for it.
pub(super) fn write_block(out: &mut String, part: &Part, native: bool) -> bool {
    if let Some(template) = part.template.as_ref().filter(|_| native) {
        write_part(out, part, template, &["uri"]);
        return true;
    }
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => {
            let mut block = ObjectWriter::new(out);
            block.token("text", text);
            block.end();
        }
        PartBody::Reasoning(text) if native => {
            let mut block = ObjectWriter::new(out);
            block.object(REASONING, |inner| {
                inner.object("reasoningText", |inner| _ = inner.token("text", text));
            });
            block.end();
        }
        PartBody::Image(_) | PartBody::File(_) => return write_media(out, part),
        PartBody::Opaque(value) => out.push_str(value.as_str()),
        PartBody::Reasoning(_) | PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
    }
    true
}

/// Adds the block of a result that was decoded from Converse. Further members of its template are blocks of their own
/// that followed it.
fn push_native_result(id: &JsonStr, result: &ToolResult, blocks: &mut Vec<String>) {
    let values = [(TemplateSlot::Id, id.token()), (TemplateSlot::Content, result.content.as_str())];
    let Some(template) = &result.template else {
        let mut out = String::new();
        let mut block = ObjectWriter::new(&mut out);
        block.object(TOOL_RESULT, |inner| _ = inner.token("toolUseId", id).json("content", result.content.view()));
        block.end();
        return blocks.push(out);
    };
    for member in &template.0 {
        let mut out = String::new();
        write_filled(&mut out, &WireTemplate(vec![member.clone()]), &values);
        blocks.push(out);
    }
}

/// Returns the `content` of a result.
fn result_blocks(result: &ResultText) -> Vec<String> {
    let texts = result.texts.iter().map(|text| PartBody::Text(text.clone()).into());
    let mut blocks = Vec::new();
    for part in texts.chain(result.media.iter().cloned()) {
        let mut block = String::new();
        if write_block(&mut block, &part, false) {
            blocks.push(block);
        }
    }
    blocks
}
