//! OpenAI Chat Completions: drafts to wire messages. A message with calls is followed by one tool message a call.

use super::blocks::write_block;
use super::decode::{REASONING_MEMBERS, is_text_only, names_reasoning};
use super::variant::ChatVariant;
use crate::finding::{Action, Finding, FindingCode, Report};
use crate::json::{ArrayWriter, JsonKind, JsonStr, ObjectWriter};
use crate::message::{Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{MessageText, NO_ASSISTANT_MEDIA, input_text, rejected_media, result_text, text_of};
use crate::provider::request::{ReasoningField, Settings};
use crate::provider::spec::{DecodeResult, EncodeContext, Wire, call_ids, tool_name};
use crate::provider::wire_template::{write_filled, write_template};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{Arguments, ToolInvocation, ToolResult};
use std::borrow::Cow;

/// Encodes one draft message with the results of its calls.
pub(super) struct ChatEncoder<'e, 'h> {
    variant: &'e ChatVariant,
    item: &'e DraftMessage<'h>,
    settings: &'e Settings,
    decode_result: DecodeResult,
    /// The ids of the message's calls, in their order.
    ids: Vec<JsonStr>,
}

impl<'e, 'h> ChatEncoder<'e, 'h> {
    pub(super) fn new(variant: &'e ChatVariant, item: &'e DraftMessage<'h>, context: &EncodeContext<'e>) -> Self {
        let EncodeContext { settings, decode_result, .. } = *context;
        Self { variant, item, settings, decode_result, ids: call_ids(&variant.content, &item.calls) }
    }

    /// Writes the message and the results of its calls. An empty message is omitted.
    pub(super) fn encode(&self, wire: &mut Wire<'_>, report: &mut Report) {
        match (&self.item.message.template, self.is_own_dialect()) {
            (Some(template), true) if self.item.is_sendable(self.settings.reasoning != ReasoningField::Drop) => {
                self.write_template(wire.begin(), template);
            }
            (Some(_), true) => {}
            _ if self.item.message.role == Role::Assistant => self.encode_assistant(wire, report),
            _ => self.encode_input(wire, report),
        }
        self.encode_results(wire, report);
    }

    /// Returns true if the message was decoded from the dialect that it is encoded for.
    fn is_own_dialect(&self) -> bool {
        self.item.message.dialect == Some(self.variant.content.dialect)
    }

    /// Writes a message in its original form, with its reasoning in the member that the server wants.
    fn write_template(&self, out: &mut String, template: &WireTemplate) {
        // Mistral has reasoning in the content. Servers that send two members send the same text in both.
        let field = match self.settings.reasoning {
            ReasoningField::Named(field) if !self.variant.content_chunks => field,
            _ => "",
        };
        let is_sent = |part: &&Part| !field.is_empty() && matches!(part.body, PartBody::Reasoning(_));
        let mut reasoning = self.item.message.parts.iter().find(is_sent).and_then(text_of);
        write_template(out, template, &mut |name, slot, out| {
            if names_reasoning(name) && self.settings.reasoning == ReasoningField::Drop {
                return false;
            }
            if !field.is_empty() && REASONING_MEMBERS.contains(&name) {
                if name != field {
                    return false;
                }
                if let Some(text) = reasoning.take() {
                    out.push_str(text.token());
                    return true;
                }
            }
            self.fill_slot(out, name, slot)
        });
        if let Some(text) = reasoning {
            // The template has no such member: it is added before the closing brace.
            out.pop();
            for piece in [",\"", field, "\":", text.token(), "}"] {
                out.push_str(piece);
            }
        }
    }

    /// Writes the value of a template's member; returns false if the member is omitted.
    fn fill_slot(&self, out: &mut String, name: &str, slot: &TemplateSlot) -> bool {
        let message = self.item.message;
        match slot {
            TemplateSlot::Raw(_) if name == "role" => {
                out.push('"');
                out.push_str(self.role_name());
                out.push('"');
            }
            TemplateSlot::Raw(value) => out.push_str(value.as_str()),
            TemplateSlot::Part(index) => {
                let part = usize::try_from(*index).ok().and_then(|index| message.parts.get(index));
                let Some(text) = part.and_then(text_of) else { return false };
                out.push_str(text.token());
            }
            TemplateSlot::Parts | TemplateSlot::ResultsThenParts => self.write_blocks(out),
            TemplateSlot::Calls => return self.write_calls(out),
            TemplateSlot::Text
            | TemplateSlot::Id
            | TemplateSlot::Name
            | TemplateSlot::Arguments
            | TemplateSlot::Content
            | TemplateSlot::Object(_) => return false,
        }
        true
    }

    fn role_name(&self) -> &'static str {
        match self.item.message.role {
            Role::System | Role::Developer if self.variant.content_chunks => Role::System.as_str(),
            role @ (Role::System | Role::Developer) => self.settings.system_role.unwrap_or(role).as_str(),
            role => role.as_str(),
        }
    }

    /// Writes the content as a list, without the parts that the dialect does not take.
    fn write_blocks(&self, out: &mut String) {
        let (message, variant, own) = (self.item.message, self.variant, self.is_own_dialect());
        let is_block = |part: &Part| match &part.body {
            PartBody::Text(_) | PartBody::Refusal(_) => true,
            PartBody::Image(_) | PartBody::File(_) => rejected_media(part, message.dialect, &variant.content).is_none(),
            PartBody::Opaque(_) => own,
            PartBody::Reasoning(_) => own && variant.content_chunks,
            PartBody::Data { .. } | PartBody::ToolCall { .. } => false,
        };
        let mut list = ArrayWriter::new(out);
        for part in message.parts.iter().filter(|part| is_block(part)) {
            write_block(variant, list.item(), part, own);
        }
        list.end();
    }

    /// Encodes a message of the user or the system that has no template.
    fn encode_input(&self, wire: &mut Wire<'_>, report: &mut Report) {
        let message = self.item.message;
        let text = input_text(message, &self.variant.content, report);
        if text.is_empty() {
            return;
        }
        let has_user_media = text.has_media && message.role == Role::User;
        let mut object = ObjectWriter::new(wire.begin());
        object.text("role", self.role_name());
        match text.single() {
            Some(single) => _ = object.token("content", single),
            None if has_user_media || self.is_own_dialect() => self.write_blocks(object.key("content")),
            None => _ = object.token("content", &text.joined()),
        }
        object.end();
    }

    /// Encodes an answer that has no template.
    fn encode_assistant(&self, wire: &mut Wire<'_>, report: &mut Report) {
        let message = self.item.message;
        let words = MessageText::of(message, &self.variant.content, report);
        if words.has_media && !self.is_own_dialect() {
            report.push(
                Finding::info(FindingCode::UnsupportedPart, NO_ASSISTANT_MEDIA)
                    .of_message(&message.id)
                    .with_action(Action::Dropped),
            );
        }
        let (text, has_calls) = (words.text(), !self.item.calls.is_empty());
        if text.is_none() && words.refusal.is_none() && !has_calls {
            return;
        }
        let mut object = ObjectWriter::new(wire.begin());
        object.text("role", self.role_name());
        if let (ReasoningField::Named(field), Some(reasoning)) = (self.settings.reasoning, words.reasoning()) {
            object.token(field, &reasoning);
        }
        match &text {
            Some(text) => object.token("content", text),
            None => object.raw("content", if has_calls { self.variant.empty_content } else { "null" }),
        };
        if let Some(refusal) = words.refusal {
            object.token("refusal", refusal);
        }
        if has_calls {
            self.write_calls(object.key("tool_calls"));
        }
        object.end();
    }

    /// Writes the list of calls; returns false if there are none.
    fn write_calls(&self, out: &mut String) -> bool {
        if self.item.calls.is_empty() {
            return false;
        }
        let mut list = ArrayWriter::new(out);
        for (call, id) in self.item.calls.iter().zip(&self.ids) {
            self.write_call(list.item(), call.invocation, id);
        }
        list.end();
        true
    }

    fn write_call(&self, out: &mut String, call: &ToolInvocation, id: &JsonStr) {
        let template = call.template.as_ref().filter(|_| self.is_own_dialect());
        // The names of Kimi's built-in tools begin with `$`. In a call that is none of these, the rules replace it.
        let keeps_name = template.is_some() && call.name.starts_with('$');
        let name = JsonStr::new(&if keeps_name { Cow::Borrowed(call.name.as_str()) } else { tool_name(call) });
        // Arguments that were an object are sent as one, if the dialect accepts it.
        let arguments = arguments_json(&call.arguments, self.is_own_dialect() && self.variant.content_chunks);
        let Some(template) = template else {
            let mut object = ObjectWriter::new(out);
            object.token("id", id).text("type", "function").object("function", |function| {
                function.token("name", &name).raw("arguments", &arguments);
            });
            return object.end();
        };
        write_template(out, template, &mut |member, slot, out| {
            out.push_str(match (slot, &call.arguments) {
                (TemplateSlot::Raw(value), _) => value.as_str(),
                (TemplateSlot::Id, _) => id.token(),
                (TemplateSlot::Name, _) => name.token(),
                (TemplateSlot::Arguments, Arguments::Value(text))
                    if member == "input" && text.view().kind() == JsonKind::String =>
                {
                    text.as_str()
                }
                (TemplateSlot::Arguments, _) => &arguments,
                _ => return false,
            });
            true
        });
    }

    fn encode_results(&self, wire: &mut Wire<'_>, report: &mut Report) {
        let mut media: Vec<ResultMedia<'_>> = Vec::new();
        for (call, id) in self.item.calls.iter().zip(&self.ids) {
            let parts = self.encode_result(wire.begin(), call, id, report);
            media.extend(parts.into_iter().map(|part| ResultMedia { call: call.invocation, id, part }));
        }
        if !media.is_empty() {
            self.encode_result_media(wire, &media, report);
        }
    }

    /// Writes a user message with the images and files of results: a tool message holds only text.
    fn encode_result_media(&self, wire: &mut Wire<'_>, media: &[ResultMedia<'_>], report: &mut Report) {
        let mut message = ObjectWriter::new(wire.begin());
        let mut content = ArrayWriter::new(message.text("role", "user").key("content"));
        for ResultMedia { call, id, part } in media {
            let note = JsonStr::new(&format!("Shown by the tool {} (call {}):", call.name, id.decode()));
            write_block(self.variant, content.item(), &PartBody::Text(note).into(), false);
            write_block(self.variant, content.item(), part, false);
            report.push(
                Finding::info(
                    FindingCode::UnsupportedPart,
                    "a tool message holds only text; the image or file follows in a user message",
                )
                .of_call(&call.call_id)
                .with_action(Action::Moved),
            );
        }
        content.end();
        message.end();
    }

    /// Writes the tool message for a call. Returns the images and files of the result, which follow in a user message.
    fn encode_result(&self, out: &mut String, call: &DraftCall<'_>, id: &JsonStr, report: &mut Report) -> Vec<Part> {
        if let Some(DraftResult::Stored(result)) = call.result
            && self.keeps_form(result)
        {
            write_own_result(out, result, id);
            return Vec::new();
        }
        let content = result_text(&self.variant.content, call, self.decode_result, report);
        let mut object = ObjectWriter::new(out);
        object.text("role", "tool").token("tool_call_id", id);
        match content.texts.as_slice() {
            [] if content.media.is_empty() => object.text("content", ""),
            [] => object.text("content", "The result is shown in the next message."),
            [text] => object.token("content", text),
            texts => object.array("content", |list| {
                for text in texts {
                    write_block(self.variant, list.item(), &PartBody::Text(text.clone()).into(), false);
                }
            }),
        };
        object.end();
        content.media
    }

    /// Returns true if a result can be sent in its original form.
    fn keeps_form(&self, result: &ToolResult) -> bool {
        let is_text =
            || result.content.view().kind() == JsonKind::String || is_text_only(self.variant, &result.content);
        result.dialect == Some(self.variant.content.dialect) && (self.variant.content_chunks || is_text())
    }
}

/// An image or a file of a result, with the call and the id that it is sent by.
struct ResultMedia<'r> {
    call: &'r ToolInvocation,
    id: &'r JsonStr,
    part: Part,
}

fn write_own_result(out: &mut String, result: &ToolResult, id: &JsonStr) {
    if let Some(template) = &result.template {
        let values = [(TemplateSlot::Id, id.token()), (TemplateSlot::Content, result.content.as_str())];
        return write_filled(out, template, &values);
    }
    let mut object = ObjectWriter::new(out);
    object.text("role", "tool").token("tool_call_id", id).json("content", result.content.view());
    object.end();
}

/// Returns a call's arguments as a string of JSON text, or as an object if they are one and `as_object` is set. Empty
/// text becomes `"{}"`.
fn arguments_json(arguments: &Arguments, as_object: bool) -> Cow<'_, str> {
    match arguments {
        Arguments::Value(value) if as_object && value.view().is_object() => value.as_str().into(),
        Arguments::Text(text) if text.is_empty() => "\"{}\"".into(),
        Arguments::Text(text) => text.token().into(),
        Arguments::Value(value) => JsonStr::new(value.as_str()).token().to_owned().into(),
    }
}
