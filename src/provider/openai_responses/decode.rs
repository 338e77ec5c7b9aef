//! OpenAI Responses: from items to neutral messages.
//!
//! What the model says in a row is one message: reasoning, words, calls and the items of server tools are its parts, in
//! their order. A part has the shape of its item; where an item holds a list of texts, each is a part, and the first has
//! the item's shape. In that shape the list is a hole:
//!
//! | slot | the list |
//! |---|---|
//! | `WireTemplate` | its first entry has that shape, further parts follow |
//! | `Content` | its first entry is the part's opaque value, further parts follow |
//! | `Text` | it is no list: the text itself |
//!
//! The shape of a further part is two members: `Parts` for a mark, then its own `WireTemplate` or `Content`.

use super::kinds::{CallKind, FUNCTION, kind_of, runs_there};
use super::{Responses, encode};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonRef, JsonStr, Kind};
use crate::message::{Dialect, Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::dialect::Codec;
use crate::provider::template::{is_shape, shape_of, shape_with, without_plain_shape};
use crate::sorted::in_order;
use crate::tool::Arguments;
use std::borrow::Cow;

/// What is written of the model's words, of a call and of an output that have no shape.
const PLAIN_SAID: &str = r##"{"role":"assistant","content":#text}"##;
const PLAIN_CALL: &str = r##"{"type":"function_call","call_id":#id,"name":#name,"arguments":#arguments}"##;
const PLAIN_RESULT: &str = r##"{"type":"function_call_output","call_id":#id,"output":#content}"##;

/// The text of a body beside its items: a system message, marked by its shape.
pub fn decode_instructions(instructions: JsonRef<'_>) -> Option<Incoming> {
    let text = instructions.as_json_str().filter(|text| !text.is_empty())?;
    Some(Incoming::Message(IncomingMessage {
        role: Role::System,
        parts: vec![IncomingPart::Part(PartBody::Text(text).into())],
        dialect: Some(Dialect::OpenAiResponses),
        template: Some(WireTemplate(vec![(JsonStr::new("instructions"), TemplateSlot::Part(0))])),
    }))
}

/// Whether a message came as `instructions`.
pub fn is_instructions(message: &Message) -> bool {
    message.dialect == Some(Dialect::OpenAiResponses)
        && message
            .template
            .as_ref()
            .is_some_and(|template| matches!(template.0.as_slice(), [(key, TemplateSlot::Part(0))] if key.inside() == "instructions"))
}

/// An `input` that is one text: the user says it.
pub fn decode_text(text: JsonStr) -> Incoming {
    Incoming::Message(IncomingMessage {
        role: Role::User,
        parts: vec![IncomingPart::Part(PartBody::Text(text).into())],
        dialect: Some(Dialect::OpenAiResponses),
        template: None,
    })
}

/// Decodes items. What is no item comes back as it is.
pub fn decode(wires: &[JsonRef<'_>], items: &mut Vec<Incoming>) {
    let mut work = Decoding {
        items,
        answer: Vec::new(),
        answered: Ids::default(),
        asked: Ids::default(),
        held: Ids::default(),
        told: Ids::default(),
        refers: false,
    };
    for wire in wires {
        work.refers |= kind_of(*wire) == "item_reference";
        if let Some(kind) = CallKind::of_output(&kind_of(*wire)).filter(|kind| kind.is_hosted()) {
            work.answered.0.extend(wire.text("call_id").map(|id| (kind.kind, id)));
        }
    }
    work.answered.sort();
    for wire in wires {
        let kind = kind_of(*wire);
        let own = CallKind::of(&kind);
        let Some(id) = wire.text("call_id").filter(|_| kind.ends_with("_call")) else { continue };
        match own {
            Some(own) if !own.is_hosted() => work.told.0.push(("", id)),
            Some(own) if work.is_asked(*wire, own) => work.asked.0.push((own.kind, id)),
            _ => work.held.0.push(("", id)),
        }
    }
    work.told.sort();
    work.asked.sort();
    work.held.sort();
    for wire in wires {
        work.item(*wire);
    }
    work.end_answer();
}

/// Call ids with their kind of call, sorted.
#[derive(Default)]
struct Ids<'w>(Vec<(&'static str, Cow<'w, str>)>);

impl Ids<'_> {
    fn sort(&mut self) {
        self.0 = in_order(std::mem::take(&mut self.0), &Ord::cmp);
    }

    fn have(&self, kind: &str, id: Option<&str>) -> bool {
        id.is_some_and(|id| self.0.binary_search_by(|(own, own_id)| (*own, &**own_id).cmp(&(kind, id))).is_ok())
    }
}

struct Decoding<'i, 'w> {
    items: &'i mut Vec<Incoming>,
    /// What the model has said since anybody else spoke.
    answer: Vec<IncomingPart>,
    /// Calls that have an output of one of OpenAI's own tools among these items.
    answered: Ids<'w>,
    /// Of these, the calls that a client answered.
    asked: Ids<'w>,
    /// Calls that are kept as they are, and so are their outputs, whatever they are (recorded: a function's).
    held: Ids<'w>,
    /// Calls of functions and of custom tools.
    told: Ids<'w>,
    /// Some items are references.
    refers: bool,
}

impl<'w> Decoding<'_, 'w> {
    /// Whether a call is one of OpenAI's own tools, and the client has answered it. One that the server ran, or whose
    /// output is not there or has no id to name it by, is kept as it is: nobody else could word an output of its kind.
    fn is_asked(&self, wire: JsonRef<'_>, kind: &CallKind) -> bool {
        let id = wire.text("call_id").filter(|id| !id.is_empty());
        id.is_some() && self.answered.have(kind.kind, id.as_deref()) && !runs_there(wire)
    }

    fn item(&mut self, wire: JsonRef<'w>) {
        let kind = kind_of(wire);
        if !wire.is_object() || kind.is_empty() {
            return self.items.push(Incoming::Unknown(wire.to_owned()));
        }
        if kind == "message" {
            return match wire.text("role").as_deref() {
                Some("assistant") => decode_said(wire, &mut self.answer),
                Some("user") => self.input(wire, Role::User),
                Some("system") => self.input(wire, Role::System),
                Some("developer") => self.input(wire, Role::Developer),
                _ => self.items.push(Incoming::Unknown(wire.to_owned())),
            };
        }
        if kind == "reasoning" {
            return decode_reasoning(wire, &mut self.answer);
        }
        if let Some(own) = CallKind::of(&kind) {
            if !own.is_hosted() || self.is_asked(wire, own) {
                return self.answer.push(IncomingPart::Call(decode_call(wire, own)));
            }
        } else if let Some(own) = CallKind::of_output(&kind) {
            let call_id = wire.text("call_id");
            let call_id = call_id.as_deref();
            let ours = match own.is_hosted() {
                true => self.asked.have(own.kind, call_id),
                false => !self.held.have("", call_id),
            };
            if ours {
                // Beside references to what the server holds, the call may be there.
                let apart = self.refers && !self.told.have("", call_id);
                self.end_answer();
                return self.items.push(Incoming::Result(IncomingResult { apart, ..decode_result(wire, own) }));
            }
        }
        self.answer.push(IncomingPart::Part(PartBody::Opaque(wire.to_owned()).into()));
    }

    fn input(&mut self, wire: JsonRef<'_>, role: Role) {
        self.end_answer();
        let mut parts = Vec::new();
        let template =
            shape_of(wire, &mut |key, value| if key == "content" { decode_content(value, &mut parts) } else { None });
        let plain = encode::is_plain_message(role, &parts, &template);
        self.items.push(Incoming::Message(IncomingMessage {
            role,
            parts,
            dialect: Some(Dialect::OpenAiResponses),
            template: (!plain).then_some(template),
        }));
    }

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

fn decode_content(content: JsonRef<'_>, parts: &mut Vec<IncomingPart>) -> Option<TemplateSlot> {
    match content.kind() {
        Kind::String => {
            let text = content.as_json_str().filter(|text| !text.is_empty())?;
            parts.clear();
            parts.push(IncomingPart::Part(PartBody::Text(text).into()));
            Some(TemplateSlot::Part(0))
        }
        Kind::Array => {
            parts.clear();
            for block in content.items() {
                parts.push(IncomingPart::Part(decode_block(block)));
            }
            Some(TemplateSlot::Parts)
        }
        _ => None,
    }
}

/// Decodes a part of a user's message, or of an output. One that has no neutral meaning stays opaque.
pub fn decode_block(block: JsonRef<'_>) -> Part {
    let media = |url: &'static str| {
        let url = block.find(url).is_some().then_some(url);
        let media = Media {
            url: url.and_then(|url| block.json_str(url)),
            file_id: block.json_str("file_id"),
            name: block.text("filename").map(Cow::into_owned),
            ..Media::default()
        };
        (media, url.unwrap_or_default())
    };
    let text = |name| block.json_str(name).map(|text| (text, name));
    let found = match block.text("type").as_deref() {
        Some("input_text" | "output_text" | "text") => text("text").map(|(text, name)| (PartBody::Text(text), name)),
        Some("refusal") => text("refusal").map(|(text, name)| (PartBody::Refusal(text), name)),
        Some("input_image" | "computer_screenshot") => {
            let (media, hole) = media("image_url");
            (media.url.is_some() || media.file_id.is_some()).then_some((PartBody::Image(media), hole))
        }
        Some("input_file") => {
            let (media, hole) = media(if block.find("file_data").is_some() { "file_data" } else { "file_url" });
            (media.url.is_some() || media.file_id.is_some()).then_some((PartBody::File(media), hole))
        }
        _ => None,
    };
    let Some((body, hole)) = found else { return PartBody::Opaque(block.to_owned()).into() };
    let template =
        shape_of(block, &mut |key, value| (key == hole && value.kind() == Kind::String).then_some(TemplateSlot::Text));
    without_plain_shape(&|out, part, native| Responses.write_block(out, part, native), body, template)
}

/// A message of the model: each of its texts is a part.
fn decode_said(item: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let content = item.get("content");
    if let Some(text) = content.and_then(JsonRef::as_json_str).filter(|text| !text.is_empty()) {
        let template = shape_with(item, &[("content", TemplateSlot::Text)]);
        let plain = is_shape(&template, PLAIN_SAID);
        return parts
            .push(IncomingPart::Part(Part { body: PartBody::Text(text), template: (!plain).then_some(template) }));
    }
    let body = |block: JsonRef<'_>| match block.text("type").as_deref() {
        Some("refusal") => block.json_str("refusal").map(|text| (PartBody::Refusal(text), "refusal")),
        Some("output_text" | "text" | "input_text") => {
            block.json_str("text").map(|text| (PartBody::Text(text), "text"))
        }
        _ => None,
    };
    let says = |block| {
        body(block)
            .is_none_or(|(body, _)| !matches!(body, PartBody::Text(text) | PartBody::Refusal(text) if text.is_empty()))
    };
    match content.filter(|content| content.items().any(says)) {
        Some(content) => decode_entries(item, "content", content, &body, parts),
        // One that says nothing stays whole.
        None => parts.push(IncomingPart::Part(PartBody::Opaque(item.to_owned()).into())),
    }
}

/// Its summary, or else its text, is what can be read of reasoning.
fn decode_reasoning(item: JsonRef<'_>, parts: &mut Vec<IncomingPart>) {
    let body = |block: JsonRef<'_>| Some((PartBody::Reasoning(block.json_str("text")?), "text"));
    let list = ["summary", "content"].into_iter().find_map(|name| {
        let list = item.get(name)?;
        list.items().all(|block| body(block).is_some()).then_some(())?;
        list.items().next().map(|_| (name, list))
    });
    match list {
        Some((name, list)) => decode_entries(item, name, list, &body, parts),
        None => parts.push(IncomingPart::Part(Part {
            body: PartBody::Reasoning(JsonStr::new("")),
            template: Some(shape_with(item, &[])),
        })),
    }
}

/// An item with a list: each entry becomes a part. `body` reads one and names the member that is its text.
fn decode_entries(
    item: JsonRef<'_>,
    member: &str,
    list: JsonRef<'_>,
    body: &dyn Fn(JsonRef<'_>) -> Option<(PartBody, &'static str)>,
    parts: &mut Vec<IncomingPart>,
) {
    for (at, entry) in list.items().enumerate() {
        let (body, slot) = match body(entry) {
            Some((body, hole)) => (body, TemplateSlot::Object(shape_with(entry, &[(hole, TemplateSlot::Text)]))),
            None => (PartBody::Opaque(entry.to_owned()), TemplateSlot::Content),
        };
        let template = match at {
            0 => shape_with(item, &[(member, slot)]),
            _ => WireTemplate(vec![(JsonStr::new(""), TemplateSlot::Parts), (JsonStr::new(""), slot)]),
        };
        parts.push(IncomingPart::Part(Part { body, template: Some(template) }));
    }
}

fn decode_call(item: JsonRef<'_>, kind: &CallKind) -> IncomingCall {
    // A computer is told one action, or several (SDK: `actions`).
    let several = kind.arguments == "action" && item.find("action").is_none() && item.find("actions").is_some();
    let asked = if several { "actions" } else { kind.arguments };
    let given = item.find(asked);
    let mut holes = vec![("call_id", TemplateSlot::Id), ("name", TemplateSlot::Name), (asked, TemplateSlot::Arguments)];
    if kind.is_hosted() {
        holes.remove(1);
        // What is not there is no hole: only a function's arguments can be written where none were.
        holes.truncate(1 + usize::from(given.is_some()));
    }
    let mut template = shape_with(item, &holes);
    for (key, slot) in holes {
        if item.get(key).is_none() {
            template.0.push((JsonStr::new(key), slot));
        }
    }
    let arguments = match given {
        None if kind == FUNCTION => Arguments::Text(JsonStr::new("")),
        None => Arguments::Value(JsonStr::new("").to_json()),
        Some(value) => match value.as_json_str() {
            Some(text) if kind == FUNCTION => Arguments::Text(text),
            // Free text is a value, and no text that holds one.
            _ => Arguments::Value(value.to_owned()),
        },
    };
    let named = kind.name.map_or_else(|| item.text("name").unwrap_or_default(), Cow::Borrowed);
    let plain = item.get("type").is_none() || is_shape(&template, PLAIN_CALL);
    IncomingCall {
        call_id: item.string("call_id"),
        name: named.into_owned(),
        arguments,
        template: (!plain).then_some(template),
    }
}

fn decode_result(item: JsonRef<'_>, kind: &CallKind) -> IncomingResult {
    let mut template = shape_with(item, &[("call_id", TemplateSlot::Id), ("output", TemplateSlot::Content)]);
    let output = item.get("output");
    if output.is_none() && !kind.is_hosted() {
        template.0.push((JsonStr::new("output"), TemplateSlot::Content));
    }
    let plain = item.get("type").is_none() || item.get("call_id").is_none() || is_shape(&template, PLAIN_RESULT);
    IncomingResult {
        call_id: item.string("call_id"),
        name: None,
        content: output.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error: item.says("status", "failed"),
        dialect: Some(Dialect::OpenAiResponses),
        template: (!plain).then_some(template),
        raw: item.to_owned(),
        apart: false,
    }
}

/// The value of a member that is kept as it came.
pub fn raw<'s>(template: &'s WireTemplate, name: &str) -> Option<&'s Json> {
    template.0.iter().find_map(|(key, slot)| match slot {
        TemplateSlot::Raw(value) if key.inside() == name => Some(value),
        _ => None,
    })
}
