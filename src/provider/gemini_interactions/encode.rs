//! Encodes messages as steps. The results of a message's calls follow its steps.

use super::content::CONTENT;
use super::decode::is_thought;
use super::media::write_content;
use super::step::{FUNCTION_CALL, FUNCTION_RESULT, MODEL_OUTPUT, USER_INPUT};
use crate::finding::Report;
use crate::json::{ArrayWriter, JsonKind, JsonRef, JsonStr, ObjectWriter, list_of};
use crate::message::{Dialect, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{arguments_object, is_system_text, rejected_media, result_text, text_of};
use crate::provider::spec::{EncodeContext, Wire, call_ids, tool_name};
use crate::provider::wire_template::{write_filled, write_part};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{ToolInvocation, ToolResult};

/// Writes the steps of a message, and the results of its calls. An empty message is omitted.
pub(super) fn encode(wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
    let native = is_native(item.message);
    let ids = call_ids(&CONTENT, &item.calls);
    match item.message.role {
        _ if item.is_acknowledged => {}
        Role::Assistant => AnswerEncoder { item, native, ids: &ids }.write(wire, context.report),
        _ => write_input(wire, item.message, context.report),
    }
    for (call, id) in item.calls.iter().zip(&ids).filter(|(call, _)| call.result.is_some()) {
        write_result(wire.begin(), call, id, context);
    }
}

pub(super) fn is_native(message: &Message) -> bool {
    message.dialect == Some(Dialect::GeminiInteractions)
}

/// Returns true if a part can be a content of a message; reports the loss otherwise.
fn accepts(part: &Part, message: &Message, report: &mut Report) -> bool {
    let native = is_native(message);
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => native || !text.is_empty(),
        PartBody::Image(_) | PartBody::File(_) => match rejected_media(part, message.dialect, &CONTENT) {
            Some(finding) => {
                report.push(finding.of_message(&message.id));
                false
            }
            None => true,
        },
        PartBody::Opaque(_) => native,
        PartBody::Data { .. } | PartBody::Reasoning(_) | PartBody::ToolCall { .. } => false,
    }
}

/// Writes what the user says, or a system message that is not in `system_instruction`.
fn write_input(wire: &mut Wire<'_>, message: &Message, report: &mut Report) {
    let native = is_native(message);
    let mut contents = Vec::new();
    for part in &message.parts {
        let mut content = String::new();
        let is_system = message.role != Role::User && !native;
        let is_accepted = !is_system || is_system_text(part, message, report);
        if is_accepted && accepts(part, message, report) && write_content(&mut content, part, native) {
            contents.push(content);
        }
    }
    if contents.is_empty() {
        return;
    }
    let list = list_of(&contents);
    if let Some(template) = message.template.as_ref().filter(|_| native) {
        return write_filled(wire.begin(), template, &[(TemplateSlot::Parts, &list)]);
    }
    let mut object = ObjectWriter::new(wire.begin());
    object.text("type", USER_INPUT).raw("content", &list);
    object.end();
}

/// Writes an answer.
struct AnswerEncoder<'e, 'd> {
    item: &'e DraftMessage<'d>,
    native: bool,
    /// The ids of the calls, in their order.
    ids: &'e [JsonStr],
}

impl AnswerEncoder<'_, '_> {
    fn write(&self, wire: &mut Wire<'_>, report: &mut Report) {
        let parts = &self.item.message.parts;
        let mut at = 0;
        while let Some(part) = parts.get(at) {
            let more = parts.iter().skip(at + 1).take_while(|part| self.native && continues_step(part)).count();
            let entries = parts.get(at..=at + more).unwrap_or_default();
            at += 1 + more;
            self.write_step(wire, part, entries, report);
        }
    }

    /// Writes the step that begins with a part; `entries` are the parts in its list.
    fn write_step(&self, wire: &mut Wire<'_>, part: &Part, entries: &[Part], report: &mut Report) {
        if let PartBody::ToolCall { .. } = part.body {
            let place = self
                .item
                .call(&part.body)
                .and_then(|call| self.item.calls.iter().zip(self.ids).find(|(other, _)| std::ptr::eq(*other, call)));
            if let Some((call, id)) = place {
                self.write_call(wire.begin(), call.invocation, id, report);
            }
            return;
        }
        let template = part.template.as_ref().filter(|_| self.native && !continues_step(part));
        match (&part.body, template) {
            (PartBody::Data { .. }, _) | (PartBody::Reasoning(_), None) => {}
            (PartBody::Opaque(step), None) if self.native => wire.begin().push_str(step.as_str()),
            (_, Some(template)) if is_step(template) => write_native_step(wire.begin(), entries, template),
            // A content of an answer in the older form, which had no step around it, or one of another dialect.
            _ => {
                let mut content = String::new();
                let is_blank = text_of(part).is_some_and(JsonStr::is_empty);
                let is_accepted = !is_blank && accepts(part, self.item.message, report);
                if is_accepted && write_content(&mut content, part, self.native && !continues_step(part)) {
                    let mut step = ObjectWriter::new(wire.begin());
                    step.text("type", MODEL_OUTPUT).list("content", &[content]);
                    step.end();
                }
            }
        }
    }

    fn write_call(&self, out: &mut String, call: &ToolInvocation, id: &JsonStr, report: &mut Report) {
        let arguments = arguments_object(call, report);
        let name = JsonStr::new(&tool_name(call));
        if let Some(template) = call.template.as_ref().filter(|_| self.native) {
            let values = [
                (TemplateSlot::Id, id.token()),
                (TemplateSlot::Name, name.token()),
                (TemplateSlot::Arguments, arguments.as_str()),
            ];
            return write_filled(out, template, &values);
        }
        let mut step = ObjectWriter::new(out);
        step.text("type", FUNCTION_CALL).token("id", id).token("name", &name).json("arguments", arguments.view());
        step.end();
    }
}

/// Returns true if a part is a further entry in the list of the step before it (see `decode.rs`).
fn continues_step(part: &Part) -> bool {
    part.template.as_ref().is_some_and(|template| matches!(template.0.first(), Some((_, TemplateSlot::Parts))))
}

/// Returns true for the template of a step, not of a content alone.
fn is_step(template: &WireTemplate) -> bool {
    is_thought(template)
        || template.0.iter().any(|(_, slot)| matches!(slot, TemplateSlot::Object(_) | TemplateSlot::Content))
}

/// Writes a step in its original form.
fn write_native_step(out: &mut String, entries: &[Part], template: &WireTemplate) {
    let mut object = ObjectWriter::new(out);
    for (key, slot) in &template.0 {
        let out = object.key_token(key.token());
        match slot {
            TemplateSlot::Raw(value) => out.push_str(value.as_str()),
            _ => write_entries(out, entries, slot),
        }
    }
    object.end();
}

/// Writes the list of a step. `first_slot` is the form of its first entry; further entries have it in their template.
fn write_entries(out: &mut String, entries: &[Part], first_slot: &TemplateSlot) {
    let mut list = ArrayWriter::new(out);
    for (at, part) in entries.iter().enumerate() {
        let own = part.template.as_ref().and_then(|template| template.0.get(1)).map(|(_, slot)| slot);
        let slot = own.filter(|_| at > 0).unwrap_or(first_slot);
        match (slot, &part.body) {
            (TemplateSlot::Object(template), _) => write_part(list.item(), part, template, &["uri"]),
            (_, PartBody::Opaque(value)) => list.item().push_str(value.as_str()),
            _ => {}
        }
    }
    list.end();
}

/// Writes the result of a call with the call's id.
fn write_result(out: &mut String, call: &DraftCall<'_>, id: &JsonStr, context: &mut EncodeContext<'_>) {
    let name = JsonStr::new(&tool_name(call.invocation));
    if let Some(DraftResult::Stored(result)) = call.result
        && result.dialect == Some(Dialect::GeminiInteractions)
        && is_result(result.content.view())
    {
        return write_native_result(out, result, (id, &name));
    }
    let result = result_text(&CONTENT, call, context.decode_result, context.report);
    let mut step = ObjectWriter::new(out);
    step.text("type", FUNCTION_RESULT).token("call_id", id).token("name", &name);
    match result.texts.as_slice() {
        [] if result.media.is_empty() => _ = step.text("result", ""),
        [text] if result.media.is_empty() => _ = step.token("result", text),
        texts => {
            let texts = texts.iter().map(|text| PartBody::Text(text.clone()).into());
            let mut contents = Vec::new();
            for part in texts.chain(result.media.iter().cloned()) {
                let mut content = String::new();
                if write_content(&mut content, &part, false) {
                    contents.push(content);
                }
            }
            step.list("result", &contents);
        }
    }
    if result.is_error {
        step.bool("is_error", true);
    }
    step.end();
}

/// Returns true for a result as the API has it: a text, an object of the application, or a list of contents.
fn is_result(result: JsonRef<'_>) -> bool {
    let is_content = |content: JsonRef<'_>| content.is_object() && content.text("type").is_some();
    match result.kind() {
        JsonKind::String | JsonKind::Object => true,
        JsonKind::Array => result.items().all(is_content),
        _ => false,
    }
}

fn write_native_result(out: &mut String, result: &ToolResult, (id, name): (&JsonStr, &JsonStr)) {
    let values = [
        (TemplateSlot::Id, id.token()),
        (TemplateSlot::Name, name.token()),
        (TemplateSlot::Content, result.content.as_str()),
    ];
    if let Some(template) = &result.template {
        return write_filled(out, template, &values);
    }
    let mut step = ObjectWriter::new(out);
    step.text("type", FUNCTION_RESULT).token("call_id", id).token("name", name);
    step.json("result", result.content.view());
    if result.is_error {
        step.bool("is_error", true);
    }
    step.end();
}
