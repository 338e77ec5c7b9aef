//! OpenAI Responses: items to neutral messages.
//!
//! Consecutive items of the model are one message: reasoning, text, calls and the items of server tools are its parts,
//! in their order. A part has the template of its item (`listed_parts.rs`).

use super::encode::write_block;
use super::kinds::{ASYNC, CallKind, FUNCTION, kind_of, runs_on_server};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::id::{IdMap, Seed};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Media, Message, Part, PartBody, Phase, Role, TemplateSlot, WireTemplate};
use crate::provider::listed_parts::decode_entries;
use crate::provider::neutral::text_of;
use crate::provider::wire_template::{matches_pattern, template_of, template_with_slots, without_plain_template};
use crate::tool::Arguments;
use std::borrow::Cow;

/// A message of the model, a call and an output as they are encoded without a template. These need none.
const PLAIN_MESSAGE: &str = r##"{"role":"assistant","content":#text}"##;
const PLAIN_CALL: &str = r##"{"type":"function_call","call_id":#id,"name":#name,"arguments":#arguments}"##;
const PLAIN_OUTPUT: &str = r##"{"type":"function_call_output","call_id":#id,"output":#content}"##;

/// Decodes the `instructions` of a body: a system message, which its template marks.
pub(super) fn decode_instructions(instructions: JsonRef<'_>) -> Option<Incoming> {
    let text = instructions.as_json_str().filter(|text| !text.is_empty())?;
    Some(Incoming::Message(IncomingMessage {
        role: Role::System,
        parts: vec![IncomingPart::Part(PartBody::Text(text).into())],
        dialect: Some(Dialect::OpenAiResponses),
        template: Some(WireTemplate(vec![(JsonStr::new("instructions"), TemplateSlot::Part(0))])),
    }))
}

/// Returns true if a message was decoded from `instructions`.
pub(super) fn is_instructions(message: &Message) -> bool {
    let is_mark = |template: &WireTemplate| matches!(template.0.as_slice(), [(key, TemplateSlot::Part(0))] if key.inside() == "instructions");
    message.dialect == Some(Dialect::OpenAiResponses) && message.template.as_ref().is_some_and(is_mark)
}

/// Decodes an `input` that is a string: a user message.
pub(super) fn decode_text(text: JsonStr) -> Incoming {
    Incoming::Message(IncomingMessage {
        role: Role::User,
        parts: vec![IncomingPart::Part(PartBody::Text(text).into())],
        dialect: Some(Dialect::OpenAiResponses),
        template: None,
    })
}

/// Decodes the items of an `input` or `output`. A value that is no item is returned as unknown.
pub(super) fn decode(wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
    let mut decoder = ItemDecoder {
        items,
        answer: Vec::new(),
        calls: CallIndex::of(wires),
        has_references: wires.iter().any(|wire| kind_of(*wire) == "item_reference"),
    };
    for wire in wires {
        decoder.item(*wire);
    }
    decoder.end_answer();
}

/// The ids of some calls, each with the kinds of its calls.
struct CallIdSet(IdMap<Vec<&'static str>>);

impl CallIdSet {
    fn empty() -> Self {
        Self(IdMap::with_seed(Seed::default()))
    }

    fn add(&mut self, kind: &'static str, id: &str) {
        let kinds = self.0.get_or_insert(id, Vec::new());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }

    fn contains(&self, kind: &str, id: Option<&str>) -> bool {
        id.and_then(|id| self.0.get(id)).is_some_and(|kinds| kinds.contains(&kind))
    }
}

/// The calls among some items, by who answers them. Sets that are not by kind have the kind `""`.
struct CallIndex {
    /// Calls of OpenAI's own tools (shell, computer, …) that have an output of their kind among the items.
    hosted_with_output: CallIdSet,
    /// Those of them that a client answered: they are decoded as calls.
    answered_hosted: CallIdSet,
    /// Calls that stay opaque parts. So do their outputs, whatever their type (recorded: `function_call_output`).
    opaque: CallIdSet,
    /// Calls of functions and of custom tools.
    functions: CallIdSet,
}

impl CallIndex {
    fn of(wires: &[JsonRef<'_>]) -> Self {
        let mut index = Self {
            hosted_with_output: CallIdSet::empty(),
            answered_hosted: CallIdSet::empty(),
            opaque: CallIdSet::empty(),
            functions: CallIdSet::empty(),
        };
        for wire in wires {
            let kind = CallKind::of_output(&kind_of(*wire)).filter(|kind| kind.is_hosted());
            if let (Some(kind), Some(id)) = (kind, wire.text("call_id")) {
                index.hosted_with_output.add(kind.kind, &id);
            }
        }
        for wire in wires {
            let kind = kind_of(*wire);
            let Some(id) = wire.text("call_id").filter(|_| kind.ends_with("_call")) else { continue };
            match CallKind::of(&kind) {
                Some(own) if !own.is_hosted() => index.functions.add("", &id),
                Some(own) if index.is_client_call(*wire, own) => index.answered_hosted.add(own.kind, &id),
                _ => index.opaque.add("", &id),
            }
        }
        index
    }

    /// Returns true if an item is a call that is decoded as one: of a function or custom tool, or of one of OpenAI's
    /// own tools that a client answered. A call that the server ran, or that has no output or no id, stays opaque: no
    /// other output of its kind could be made.
    fn is_client_call(&self, wire: JsonRef<'_>, kind: &CallKind) -> bool {
        if !kind.is_hosted() {
            return true;
        }
        let id = wire.text("call_id").filter(|id| !id.is_empty());
        self.hosted_with_output.contains(kind.kind, id.as_deref()) && !runs_on_server(wire)
    }

    /// Returns true if an output is decoded as the result of a call.
    fn is_client_output(&self, wire: JsonRef<'_>, kind: &CallKind) -> bool {
        let call_id = wire.text("call_id");
        if kind.is_hosted() {
            self.answered_hosted.contains(kind.kind, call_id.as_deref())
        } else {
            !self.opaque.contains("", call_id.as_deref())
        }
    }
}

struct ItemDecoder<'i> {
    items: &'i mut Vec<Incoming>,
    /// The parts of the model since the last item of anybody else.
    answer: Vec<IncomingPart>,
    calls: CallIndex,
    /// Some items are references to items that the server stores.
    has_references: bool,
}

impl ItemDecoder<'_> {
    fn item(&mut self, wire: JsonRef<'_>) {
        let kind = kind_of(wire);
        if !wire.is_object() || kind.is_empty() {
            return self.items.push(Incoming::Unknown(wire.to_owned()));
        }
        if kind == "message" {
            return self.message(wire);
        }
        if kind == "reasoning" {
            return decode_reasoning(wire, &mut self.answer);
        }
        match (CallKind::of(&kind), CallKind::of_output(&kind)) {
            (Some(call), _) if self.calls.is_client_call(wire, call) => {
                self.answer.push(IncomingPart::Call(decode_call(wire, call)));
            }
            (None, Some(call)) if self.calls.is_client_output(wire, call) => {
                // Beside references, the call may be one that the server stores.
                let is_known = self.calls.functions.contains("", wire.text("call_id").as_deref());
                let result = decode_output(wire, call);
                let stands_alone = self.has_references && !is_known || result.name.is_some();
                self.end_answer();
                self.items.push(Incoming::Result(IncomingResult { stands_alone, ..result }));
            }
            _ => self.answer.push(IncomingPart::Part(PartBody::Opaque(wire.to_owned()).into())),
        }
    }

    fn message(&mut self, wire: JsonRef<'_>) {
        match wire.text("role").as_deref() {
            Some("assistant") => decode_answer_message(wire, &mut self.answer),
            Some("user") => self.input(wire, Role::User),
            Some("system") => self.input(wire, Role::System),
            Some("developer") => self.input(wire, Role::Developer),
            _ => self.items.push(Incoming::Unknown(wire.to_owned())),
        }
    }

    /// Decodes a message of the user or the system.
    fn input(&mut self, wire: JsonRef<'_>, role: Role) {
        self.end_answer();
        let mut parts = Vec::new();
        let template = template_of(wire, &mut |key, value| {
            if key == "content" { decode_content(value, &mut parts) } else { None }
        });
        let is_plain = is_plain_message(role, &parts, &template);
        self.items.push(Incoming::Message(IncomingMessage {
            role,
            parts,
            dialect: Some(Dialect::OpenAiResponses),
            template: (!is_plain).then_some(template),
        }));
    }

    /// Ends the message of the model: an item of somebody else follows.
    fn end_answer(&mut self) {
        if !self.answer.is_empty() {
            self.items.push(Incoming::Message(IncomingMessage {
                role: Role::Assistant,
                parts: std::mem::take(&mut self.answer),
                dialect: Some(Dialect::OpenAiResponses),
                template: None,
            }));
        }
    }
}

/// Decodes the content of a message and returns its slot. Of a repeated member the last one counts.
fn decode_content(content: JsonRef<'_>, parts: &mut Vec<IncomingPart>) -> Option<TemplateSlot> {
    match content.kind() {
        JsonKind::String => {
            let text = content.as_json_str().filter(|text| !text.is_empty())?;
            parts.clear();
            parts.push(IncomingPart::Part(PartBody::Text(text).into()));
            Some(TemplateSlot::Part(0))
        }
        JsonKind::Array => {
            parts.clear();
            parts.extend(content.items().map(|block| IncomingPart::Part(decode_block(block))));
            Some(TemplateSlot::Parts)
        }
        _ => None,
    }
}

/// Decodes a part of a user's message, or of an output. One of a type without a neutral meaning stays opaque.
pub(super) fn decode_block(block: JsonRef<'_>) -> Part {
    // The part, and the member that is its slot.
    let text = |name: &'static str| block.json_str(name).map(|text| (text, name));
    let decoded = match block.text("type").as_deref() {
        Some("input_text" | "output_text" | "text") => text("text").map(|(text, name)| (PartBody::Text(text), name)),
        Some("refusal") => text("refusal").map(|(text, name)| (PartBody::Refusal(text), name)),
        Some("input_image" | "computer_screenshot") => {
            decode_media(block, "image_url").map(|(media, slot)| (PartBody::Image(media), slot))
        }
        Some("input_file") => {
            let url_member = if block.find("file_data").is_some() { "file_data" } else { "file_url" };
            decode_media(block, url_member).map(|(media, slot)| (PartBody::File(media), slot))
        }
        _ => None,
    };
    let Some((body, slot_member)) = decoded else { return PartBody::Opaque(block.to_owned()).into() };
    let template = template_of(block, &mut |key, value| {
        (key == slot_member && value.kind() == JsonKind::String).then_some(TemplateSlot::Text)
    });
    let write = |out: &mut String, part: &Part, native| {
        write_block(out, part, native);
        true
    };
    without_plain_template(&write, body, template)
}

/// Decodes an image or a file, with the member that is its slot: `url_member`, or none for a file that has only an id.
fn decode_media(block: JsonRef<'_>, url_member: &'static str) -> Option<(Media, &'static str)> {
    let slot = if block.find(url_member).is_some() { url_member } else { "" };
    let media = Media {
        url: block.find(url_member).and_then(JsonRef::as_json_str),
        file_id: block.json_str("file_id"),
        name: block.text("filename").map(Cow::into_owned),
        ..Media::default()
    };
    (media.url.is_some() || media.file_id.is_some()).then_some((media, slot))
}

/// Decodes a message of the model. Each of its texts is a part, with the phase of the message.
fn decode_answer_message(item: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let first = parts.len();
    decode_answer_texts(item, parts);
    let Some(phase) = item.text("phase").and_then(|name| Phase::from_name(&name)) else { return };
    for part in parts.iter_mut().skip(first) {
        if let IncomingPart::Part(part) = part
            && matches!(part.body, PartBody::Text(_) | PartBody::Refusal(_))
        {
            part.phase = Some(phase);
        }
    }
}

fn decode_answer_texts(item: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let content = item.get("content");
    if let Some(text) = content.and_then(JsonRef::as_json_str).filter(|text| !text.is_empty()) {
        let template = template_with_slots(item, &[("content", TemplateSlot::Text)]);
        let is_plain = matches_pattern(&template, PLAIN_MESSAGE);
        let template = (!is_plain).then_some(template);
        return parts.push(IncomingPart::Part(Part { body: PartBody::Text(text), template, phase: None }));
    }
    let body = |block: JsonRef<'_>| match block.text("type").as_deref() {
        Some("refusal") => block.json_str("refusal").map(|text| (PartBody::Refusal(text), "refusal")),
        Some("output_text" | "text" | "input_text") => {
            block.json_str("text").map(|text| (PartBody::Text(text), "text"))
        }
        _ => None,
    };
    let has_content = |block| {
        body(block)
            .is_none_or(|(body, _)| !matches!(body, PartBody::Text(text) | PartBody::Refusal(text) if text.is_empty()))
    };
    match content.filter(|content| content.items().any(has_content)) {
        Some(content) => decode_entries(item, ("content", content), &body, parts),
        // A message without text stays as received.
        None => parts.push(IncomingPart::Part(PartBody::Opaque(item.to_owned()).into())),
    }
}

/// Decodes reasoning. Its readable text is its `summary`, or else its `content`.
fn decode_reasoning(item: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let body = |block: JsonRef<'_>| Some((PartBody::Reasoning(block.json_str("text")?), "text"));
    let list = ["summary", "content"].into_iter().find_map(|name| {
        let list = item.get(name)?;
        let is_readable = list.items().next().is_some() && list.items().all(|block| body(block).is_some());
        is_readable.then_some((name, list))
    });
    match list {
        Some(list) => decode_entries(item, list, &body, parts),
        None => parts.push(IncomingPart::Part(Part {
            body: PartBody::Reasoning(JsonStr::new("")),
            template: Some(template_with_slots(item, &[])),
            phase: None,
        })),
    }
}

fn decode_call(item: JsonRef<'_>, kind: &CallKind) -> IncomingCall {
    // A computer call has one `action`, or a list of `actions` (SDK).
    let has_actions = kind.arguments == "action" && item.find("action").is_none() && item.find("actions").is_some();
    let arguments_member = if has_actions { "actions" } else { kind.arguments };
    let value = item.find(arguments_member);
    let mut slots = vec![("call_id", TemplateSlot::Id)];
    if !kind.is_hosted() {
        slots.push(("name", TemplateSlot::Name));
    }
    // Only the arguments of a function or custom tool can be written if there were none.
    if !kind.is_hosted() || value.is_some() {
        slots.push((arguments_member, TemplateSlot::Arguments));
    }
    let mut template = template_with_slots(item, &slots);
    for (key, slot) in slots {
        if item.get(key).is_none() {
            template.0.push((JsonStr::new(key), slot));
        }
    }
    let arguments = match value {
        None if kind == FUNCTION => Arguments::Text(JsonStr::new("")),
        None => Arguments::Value(JsonStr::new("").to_json()),
        Some(value) => match value.as_json_str() {
            Some(text) if kind == FUNCTION => Arguments::Text(text),
            // The input of a custom tool is free text, not JSON in a string.
            _ => Arguments::Value(value.to_owned()),
        },
    };
    let name = kind.name.map_or_else(|| item.text("name").unwrap_or_default(), Cow::Borrowed);
    let is_plain = item.get("type").is_none() || matches_pattern(&template, PLAIN_CALL);
    IncomingCall {
        id: None,
        is_async: item.get(ASYNC).and_then(JsonRef::as_bool) == Some(true),
        call_id: item.string("call_id"),
        name: name.into_owned(),
        arguments,
        template: (!is_plain).then_some(template),
    }
}

/// Decodes the output of a call of that kind.
fn decode_output(item: JsonRef<'_>, kind: &CallKind) -> IncomingResult {
    let mut template = template_with_slots(item, &[("call_id", TemplateSlot::Id), ("output", TemplateSlot::Content)]);
    let output = item.get("output");
    if output.is_none() && !kind.is_hosted() {
        template.0.push((JsonStr::new("output"), TemplateSlot::Content));
    }
    let is_plain =
        item.get("type").is_none() || item.get("call_id").is_none() || matches_pattern(&template, PLAIN_OUTPUT);
    let call_id = item.string("call_id");
    // Without a call's id, an output names its tool (openai 7.57.0, `FunctionCallOutput`).
    let name = item.text("name").filter(|name| call_id.is_empty() && !kind.is_hosted() && !name.is_empty());
    IncomingResult {
        name: name.map(Cow::into_owned),
        call_id,
        content: output.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error: item.has_text("status", "failed"),
        dialect: Some(Dialect::OpenAiResponses),
        template: (!is_plain).then_some(template),
        raw: item.to_owned(),
        stands_alone: false,
    }
}

/// Returns true if a message of the user or the system is encoded to the same JSON without its template.
fn is_plain_message(role: Role, parts: &[IncomingPart], template: &WireTemplate) -> bool {
    let is_single_text = matches!(parts, [IncomingPart::Part(Part { body: PartBody::Text(_), .. })]);
    let is_empty = parts
        .iter()
        .all(|part| !matches!(part, IncomingPart::Part(part) if text_of(part).is_none_or(|text| !text.is_empty())));
    let slot = if is_single_text { "part" } else { "parts" };
    (is_single_text || !is_empty)
        && matches_pattern(template, &format!(r##"{{"role":"{}","content":#{slot}}}"##, role.as_str()))
}

/// Returns the value of a template's member that is no slot.
pub(super) fn raw_member<'s>(template: &'s WireTemplate, name: &str) -> Option<&'s Json> {
    template.0.iter().find_map(|(key, slot)| match slot {
        TemplateSlot::Raw(value) if key.inside() == name => Some(value),
        _ => None,
    })
}
