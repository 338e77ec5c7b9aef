//! Encodes messages as steps. The results of a message's calls follow its steps.

use super::content::CONTENT;
use super::decode::is_thought;
use super::media::write_content;
use super::results::accepts_lists;
use super::step::{FUNCTION_CALL, FUNCTION_RESULT, MODEL_OUTPUT, USER_INPUT};
use crate::finding::Report;
use crate::json::{JsonKind, JsonRef, JsonStr, ObjectWriter, list_of};
use crate::message::{Dialect, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::listed_parts::{continues_item, grouped_by_item, write_item};
use crate::provider::neutral::{arguments_object, is_system_text, rejected_media, result_text, text_of};
use crate::provider::spec::{EncodeContext, Wire, call_ids, id_of_service, tool_name};
use crate::provider::wire_template::write_filled;
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{ToolInvocation, ToolResult};

/// Writes the steps of a message, and the results of its calls. An empty message is omitted.
pub(super) fn encode(wire: &mut Wire<'_>, item: &DraftMessage<'_>, context: &mut EncodeContext<'_>) {
    let native = is_native(item.message);
    let ids: Vec<JsonStr> = if item.is_acknowledged {
        item.calls.iter().map(|call| id_of_service(&CONTENT, call.invocation)).collect()
    } else {
        call_ids(&CONTENT, &item.calls)
    };
    match item.message.role {
        _ if item.is_acknowledged => {}
        Role::Assistant => AnswerEncoder { item, native, ids: &ids }.write(wire, context.report),
        _ => write_input(wire, item.message, context.report),
    }
    let mut media = Vec::new();
    for (call, id) in item.calls.iter().zip(&ids).filter(|(call, _)| call.result.is_some()) {
        write_result(wire.begin(), (call, id), &mut media, context);
    }
    if !media.is_empty() {
        let mut step = ObjectWriter::new(wire.begin());
        step.text("type", USER_INPUT).list("content", &media);
        step.end();
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

/// Writes a message of the user, or a system message that is not in `system_instruction`.
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
        let groups = if self.native { grouped_by_item(parts) } else { parts.chunks(1).collect() };
        for group in groups {
            self.write_step(wire, group, report);
        }
    }

    /// Writes the step that a part is, with the further parts in its list.
    fn write_step(&self, wire: &mut Wire<'_>, group: &[Part], report: &mut Report) {
        let Some(part) = group.first() else { return };
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
        let is_native_step = self.native && !continues_item(part);
        match (&part.body, part.template.as_ref().filter(|_| is_native_step)) {
            (PartBody::Data { .. }, _) | (PartBody::Reasoning(_), None) => {}
            (PartBody::Opaque(step), None) if is_native_step => wire.begin().push_str(step.as_str()),
            (_, Some(template)) if is_step(template) => write_item(wire.begin(), group, template, false),
            // Contents of an answer in the older form, which had no step around them, of another dialect, or of a step
            // whose first content was removed.
            _ => self.write_contents(wire, group, report),
        }
    }

    /// Writes a step with these parts as its contents.
    fn write_contents(&self, wire: &mut Wire<'_>, parts: &[Part], report: &mut Report) {
        let mut contents = Vec::new();
        for part in parts {
            let mut content = String::new();
            let is_blank = text_of(part).is_some_and(JsonStr::is_empty);
            let is_accepted = !is_blank && accepts(part, self.item.message, report);
            if is_accepted && write_content(&mut content, part, self.native && !continues_item(part)) {
                contents.push(content);
            }
        }
        if !contents.is_empty() {
            let mut step = ObjectWriter::new(wire.begin());
            step.text("type", MODEL_OUTPUT).list("content", &contents);
            step.end();
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

/// Returns true for the template of a step, not of a content alone.
fn is_step(template: &WireTemplate) -> bool {
    is_thought(template)
        || template.0.iter().any(|(_, slot)| matches!(slot, TemplateSlot::Object(_) | TemplateSlot::Content))
}

/// Writes the result of a call with the call's id. Models before Gemini 3 accept no list as a result: its media are
/// added to `media`, which follows the results.
fn write_result(
    out: &mut String,
    (call, id): (&DraftCall<'_>, &JsonStr),
    media: &mut Vec<String>,
    context: &mut EncodeContext<'_>,
) {
    let name = JsonStr::new(&tool_name(call.invocation));
    let accepts_lists = accepts_lists(context.settings.version);
    if let Some(DraftResult::Stored(result)) = call.result
        && result.dialect == Some(Dialect::GeminiInteractions)
        && is_result(result.content.view(), accepts_lists)
    {
        return write_native_result(out, result, (id, &name));
    }
    let result = result_text(&CONTENT, call, context.decode_result, context.report);
    let mut contents = Vec::new();
    for part in &result.media {
        let mut content = String::new();
        if write_content(&mut content, part, false) {
            contents.push(content);
        }
    }
    let text = JsonStr::joined(&mut result.texts.iter().filter(|text| !text.is_empty()), "\\n\\n");
    let mut step = ObjectWriter::new(out);
    step.text("type", FUNCTION_RESULT).token("call_id", id).token("name", &name);
    if contents.is_empty() || !accepts_lists {
        step.token("result", &text);
        media.append(&mut contents);
    } else {
        if !text.is_empty() {
            let mut content = String::new();
            write_content(&mut content, &PartBody::Text(text).into(), false);
            contents.insert(0, content);
        }
        step.list("result", &contents);
    }
    if result.is_error {
        step.bool("is_error", true);
    }
    step.end();
}

/// Returns true for a result as the API has it: a text, an object of the application, or a list of contents.
fn is_result(result: JsonRef<'_>, accepts_lists: bool) -> bool {
    let is_content = |content: JsonRef<'_>| content.is_object() && content.text("type").is_some();
    match result.kind() {
        JsonKind::String | JsonKind::Object => true,
        JsonKind::Array => accepts_lists && result.items().all(is_content),
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
