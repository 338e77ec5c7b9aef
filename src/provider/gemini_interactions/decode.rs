//! Decodes steps.
//!
//! Consecutive steps of the model are one message: thoughts, texts, calls and the steps of Google's own tools are its
//! parts, in their order. A part has the template of its step (`listed_parts.rs`).

use super::media::decode_content;
use super::step::{StepKind, THOUGHT};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::listed_parts::decode_entries;
use crate::provider::wire_template::{matches_pattern, template_with_slots};
use crate::tool::Arguments;
use std::collections::BTreeSet;

/// Steps as they are encoded without a template. These need none.
const PLAIN_INPUT: &str = r##"{"type":"user_input","content":#parts}"##;
const PLAIN_CALL: &str = r##"{"type":"function_call","id":#id,"name":#name,"arguments":#arguments}"##;
const PLAIN_RESULT: &str = r##"{"type":"function_result","call_id":#id,"name":#name,"result":#content}"##;
const PLAIN_ERROR: &str =
    r##"{"type":"function_result","call_id":#id,"name":#name,"result":#content,"is_error":true}"##;

/// Decodes an `input` that is a string: a user message.
pub(super) fn decode_text(text: JsonStr) -> Incoming {
    user_message(vec![IncomingPart::Part(PartBody::Text(text).into())], None)
}

/// Decodes the `system_instruction` of a body.
pub(super) fn decode_system(body: JsonRef<'_>) -> Option<Incoming> {
    let text = body.find("system_instruction")?.as_json_str().filter(|text| !text.is_empty())?;
    let parts = vec![IncomingPart::Part(PartBody::Text(text).into())];
    Some(Incoming::Message(IncomingMessage {
        role: Role::System,
        parts,
        dialect: Some(Dialect::GeminiInteractions),
        template: None,
    }))
}

/// Decodes the steps of a list.
pub(super) fn decode(wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
    let mut decoder = StepDecoder { items, answer: Vec::new(), loose: Vec::new() };
    for wire in wires {
        decoder.step(*wire);
    }
    decoder.end_answer();
    decoder.end_loose();
}

/// Decodes the steps of an answer. A call with a result among them was run by the service: both are opaque parts, in
/// their places, so that no run executes the call again.
pub(super) fn decode_answer(wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
    let results = wires.iter().filter(|wire| StepKind::of(**wire) == StepKind::FunctionResult);
    let executed: BTreeSet<String> = results.map(|result| result.string("call_id")).collect();
    let mut decoder = StepDecoder { items, answer: Vec::new(), loose: Vec::new() };
    for wire in wires {
        match StepKind::of(*wire) {
            StepKind::FunctionResult => decoder.answer.push(opaque(*wire)),
            StepKind::FunctionCall if executed.contains(&wire.string("id")) => decoder.answer.push(opaque(*wire)),
            _ => decoder.step(*wire),
        }
    }
    decoder.end_answer();
    decoder.end_loose();
}

fn opaque(wire: JsonRef<'_>) -> IncomingPart {
    IncomingPart::Part(PartBody::Opaque(wire.to_owned()).into())
}

fn user_message(parts: Vec<IncomingPart>, template: Option<WireTemplate>) -> Incoming {
    Incoming::Message(IncomingMessage { role: Role::User, parts, dialect: Some(Dialect::GeminiInteractions), template })
}

struct StepDecoder<'i> {
    items: &'i mut Vec<Incoming>,
    /// The parts of the model since the last step of anybody else.
    answer: Vec<IncomingPart>,
    /// The contents without a step since the last step.
    loose: Vec<IncomingPart>,
}

impl StepDecoder<'_> {
    fn step(&mut self, wire: JsonRef<'_>) {
        let kind = if wire.is_object() { StepKind::of(wire) } else { StepKind::Unknown };
        if kind != StepKind::Content {
            self.end_loose();
        }
        match kind {
            StepKind::UserInput | StepKind::UserTurn => self.user_input(wire, kind),
            StepKind::ModelTurn => self.model_turn(wire),
            StepKind::FunctionResult => {
                self.end_answer();
                self.items.push(Incoming::Result(decode_result(wire)));
            }
            StepKind::Content => {
                self.end_answer();
                self.loose.push(IncomingPart::Part(decode_content(wire)));
            }
            StepKind::Unknown => {
                self.end_answer();
                self.items.push(Incoming::Unknown(wire.to_owned()));
            }
            StepKind::ModelOutput | StepKind::Thought | StepKind::FunctionCall | StepKind::Other => {
                decode_answer_step(wire, kind, &mut self.answer);
            }
        }
    }

    /// Decodes a step of the user. A turn of the older form may have results among its contents.
    fn user_input(&mut self, wire: JsonRef<'_>, kind: StepKind) {
        self.end_answer();
        let mut parts = Vec::new();
        for content in contents_of(wire) {
            if content.has_text("type", "function_result") {
                self.items.push(Incoming::Result(decode_result(content)));
            } else {
                parts.push(IncomingPart::Part(decode_content(content)));
            }
        }
        if let Some(text) = wire.json_str("content").filter(|text| !text.is_empty()) {
            parts.push(IncomingPart::Part(PartBody::Text(text).into()));
        }
        let template = template_with_slots(wire, &[("content", TemplateSlot::Parts)]);
        let is_plain = kind == StepKind::UserTurn
            || wire.get("content").is_none_or(|content| content.kind() != JsonKind::Array)
            || matches_pattern(&template, PLAIN_INPUT);
        if !parts.is_empty() {
            self.items.push(user_message(parts, (!is_plain).then_some(template)));
        }
    }

    /// Decodes a turn of the model in the older form: its contents are what steps are now.
    fn model_turn(&mut self, wire: JsonRef<'_>) {
        if let Some(text) = wire.json_str("content").filter(|text| !text.is_empty()) {
            self.answer.push(IncomingPart::Part(PartBody::Text(text).into()));
        }
        for content in contents_of(wire) {
            decode_output(content, &mut self.answer);
        }
    }

    /// Ends the message of the model: a step of somebody else follows.
    fn end_answer(&mut self) {
        if !self.answer.is_empty() {
            self.items.push(Incoming::Message(IncomingMessage {
                role: Role::Assistant,
                parts: std::mem::take(&mut self.answer),
                dialect: Some(Dialect::GeminiInteractions),
                template: None,
            }));
        }
    }

    /// Ends the message of the user that contents without a step are.
    fn end_loose(&mut self) {
        if !self.loose.is_empty() {
            self.items.push(user_message(std::mem::take(&mut self.loose), None));
        }
    }
}

/// Returns the objects in a step's `content`.
fn contents_of<'a>(step: JsonRef<'a>) -> impl Iterator<Item = JsonRef<'a>> {
    let content = step.get("content").unwrap_or_default();
    Some(content).filter(|content| content.is_object()).into_iter().chain(content.items()).filter(|it| it.is_object())
}

/// Decodes an output of the older form, which has a content in place of a step: `{"type":"text","text":"Hi"}`.
fn decode_output(output: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    match StepKind::of(output) {
        StepKind::Content => parts.push(IncomingPart::Part(decode_content(output))),
        kind => decode_answer_step(output, kind, parts),
    }
}

fn decode_answer_step(wire: JsonRef<'_>, kind: StepKind, parts: &mut Vec<IncomingPart>) {
    match kind {
        StepKind::ModelOutput if contents_of(wire).any(is_visible) => decode_model_output(wire, parts),
        StepKind::Thought => decode_thought(wire, parts),
        StepKind::FunctionCall => parts.push(IncomingPart::Call(decode_call(wire))),
        _ => parts.push(opaque(wire)),
    }
}

fn is_visible(content: JsonRef<'_>) -> bool {
    !content.has_text("type", "text") || !content.string("text").is_empty()
}

fn decode_model_output(step: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let content = step.get("content").unwrap_or_default();
    let has_other_members = step.entries().any(|(key, _)| !key.is_text("type") && !key.is_text("content"));
    let mut contents = content.items();
    // One content may stand in place of a list.
    let single = if content.is_object() { Some(content) } else { contents.next().filter(|_| !has_other_members) };
    if let Some(single) = single.filter(|_| contents.next().is_none())
        && let part = decode_content(single)
        && (content.is_object() || part.template.is_none() && matches!(part.body, PartBody::Text(_)))
    {
        return parts.push(IncomingPart::Part(part));
    }
    let body = |content: JsonRef<'_>| match decode_content(content).body {
        PartBody::Opaque(_) => None,
        body => {
            let slot = slot_of(&body);
            Some((body, slot))
        }
    };
    decode_entries(step, ("content", content), &body, parts);
}

/// Returns the member of a plain content that its part fills.
fn slot_of(body: &PartBody) -> &'static str {
    match body {
        PartBody::Image(media) | PartBody::File(media) if media.data.is_some() => "data",
        PartBody::Image(_) | PartBody::File(_) => "uri",
        _ => "text",
    }
}

/// Decodes a thought. Its readable text is its summary, if that has only texts.
fn decode_thought(step: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let text = |content: JsonRef<'_>| content.json_str("text").filter(|_| content.has_text("type", "text"));
    let summary = step.get("summary").filter(|list| list.items().next().is_some());
    match summary.filter(|list| list.items().all(|content| text(content).is_some())) {
        Some(list) => {
            let body = |content: JsonRef<'_>| Some((PartBody::Reasoning(text(content)?), "text"));
            decode_entries(step, ("summary", list), &body, parts);
        }
        None => parts.push(IncomingPart::Part(Part {
            body: PartBody::Reasoning(JsonStr::new("")),
            template: Some(template_with_slots(step, &[])),
            phase: None,
        })),
    }
}

fn decode_call(step: JsonRef<'_>) -> IncomingCall {
    let slots = [("id", TemplateSlot::Id), ("name", TemplateSlot::Name), ("arguments", TemplateSlot::Arguments)];
    let template = template_with_slots(step, &slots);
    let is_complete = slots.iter().all(|(name, _)| step.get(name).is_some());
    let is_plain = !is_complete || matches_pattern(&template, PLAIN_CALL);
    IncomingCall {
        id: None,
        is_async: false,
        call_id: step.string("id"),
        name: step.string("name"),
        arguments: match step.find("arguments") {
            Some(arguments) => {
                arguments.as_json_str().map_or_else(|| Arguments::Value(arguments.to_owned()), Arguments::Text)
            }
            None => Arguments::Value(Json::trusted("{}".into())),
        },
        template: (!is_plain).then_some(template),
    }
}

fn decode_result(step: JsonRef<'_>) -> IncomingResult {
    let slots = [("call_id", TemplateSlot::Id), ("name", TemplateSlot::Name), ("result", TemplateSlot::Content)];
    let template = template_with_slots(step, &slots);
    let is_error = step.get("is_error").and_then(JsonRef::as_bool) == Some(true);
    let result = step.get("result");
    let is_complete = result.is_some_and(|result| !result.is_null()) && step.get("call_id").is_some();
    let is_plain = !is_complete || matches_pattern(&template, if is_error { PLAIN_ERROR } else { PLAIN_RESULT });
    IncomingResult {
        call_id: step.string("call_id"),
        name: step.text("name").filter(|name| !name.is_empty()).map(Into::into),
        content: result.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error,
        dialect: Some(Dialect::GeminiInteractions),
        template: (!is_plain).then_some(template),
        raw: step.to_owned(),
        stands_alone: false,
    }
}

/// Returns true if a template is that of a thought.
pub(super) fn is_thought(template: &WireTemplate) -> bool {
    template.0.iter().any(|(key, slot)| {
        key.inside() == "type" && matches!(slot, TemplateSlot::Raw(value) if value.view().is_text(THOUGHT))
    })
}
