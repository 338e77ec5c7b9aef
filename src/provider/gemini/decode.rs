//! Gemini generateContent: from contents to neutral messages.
//!
//! Its API reads names in camel case and in snake case; either comes back as it came.

use super::{Gemini, encode};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonRef, JsonStr, Kind};
use crate::message::{Dialect, Media, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::dialect::without_plain_shape;
use crate::provider::template::{shape_of, shape_with};
use crate::text::has;
use crate::tool::{Arguments, ToolResult};

/// Members of a result's `response` that hold all of it: Google's own words, and what clients wrap a text in.
const WHOLE: [&str; 3] = ["output", "result", "error"];

/// The member of either name that is an object; of several the last.
fn object<'a>(part: JsonRef<'a>, camel: &str, snake: &str) -> Option<JsonRef<'a>> {
    part.get(camel).filter(|inner| inner.is_object()).or_else(|| part.get(snake).filter(|inner| inner.is_object()))
}

fn call_in(part: JsonRef<'_>) -> Option<JsonRef<'_>> {
    object(part, "functionCall", "function_call")
}

fn response_in(part: JsonRef<'_>) -> Option<JsonRef<'_>> {
    object(part, "functionResponse", "function_response")
}

/// Decodes the body's `systemInstruction`: a content, or what some clients take for one, a text.
pub fn decode_system(body: JsonRef<'_>, items: &mut Vec<Incoming>) {
    let Some(system) = body.find("systemInstruction").or_else(|| body.find("system_instruction")) else { return };
    let mut parts = Vec::new();
    match system.as_json_str() {
        Some(text) => parts.push(IncomingPart::Part(PartBody::Text(text).into())),
        None => {
            for part in parts_of(system) {
                parts.push(IncomingPart::Part(decode_part(part)));
            }
        }
    }
    if !parts.is_empty() {
        let template = shape_with(system, &[("parts", TemplateSlot::Parts)]);
        let plain = !system.is_object() || matches!(template.0.as_slice(), [(_, TemplateSlot::Parts)]);
        items.push(Incoming::Message(IncomingMessage {
            role: Role::System,
            parts,
            dialect: Some(Dialect::Gemini),
            template: (!plain).then_some(template),
        }));
    }
}

/// The parts of a content. One alone may stand without its list.
fn parts_of(content: JsonRef<'_>) -> Vec<JsonRef<'_>> {
    match content.find("parts") {
        Some(one) if one.kind() != Kind::Array => vec![one],
        parts => parts.unwrap_or_default().items().collect(),
    }
}

/// Decodes one content: results apart, then what else it says.
pub fn decode_content(wire: JsonRef<'_>, items: &mut Vec<Incoming>) {
    let message = |role, parts, template| {
        Incoming::Message(IncomingMessage { role, parts, dialect: Some(Dialect::Gemini), template })
    };
    if let Some(text) = wire.as_json_str().filter(|text| !text.is_empty()) {
        return items.push(message(Role::User, vec![IncomingPart::Part(PartBody::Text(text).into())], None));
    }
    if !wire.is_object() {
        return items.push(Incoming::Unknown(wire.to_owned()));
    }
    // The rules read other names than "user" and "model" so, too. "function" returns as "user", which every model takes.
    let given = wire.find("role").map(|role| role.as_text().unwrap_or_default().to_ascii_lowercase());
    let (role, known) = match given.as_deref() {
        None | Some("user" | "") => (Role::User, true),
        Some("model") => (Role::Assistant, true),
        Some("assistant" | "ai" | "bot" | "agent") => (Role::Assistant, false),
        Some("system" | "developer") => (Role::System, false),
        Some(_) => (Role::User, false),
    };
    let mut parts = Vec::new();
    let mut results = Vec::new();
    // How many of the other parts stand before each result.
    let mut before = Vec::new();
    for part in parts_of(wire) {
        if let Some(response) = response_in(part) {
            results.push(decode_result(part, response));
            before.push(parts.len());
        } else if let Some(call) = call_in(part).filter(|_| role == Role::Assistant) {
            parts.push(IncomingPart::Call(decode_call(part, call)));
        } else {
            parts.push(IncomingPart::Part(decode_part(part)));
        }
    }
    let answers = role == Role::User && !results.is_empty();
    let listed = known && wire.get("parts").is_some_and(|parts| parts.kind() == Kind::Array);
    if answers && parts.is_empty() {
        // A content of results is no message: the first of them knows what was around it.
        if let Some(first) = results.first_mut().filter(|_| listed) {
            let part = shape_in_full(first);
            let around = shape_with(wire, &[("parts", TemplateSlot::Object(part))]);
            if !encode::is_plain_content(Role::User, &around) {
                first.template = Some(around);
            }
        }
    }
    let all = u32::try_from(results.len()).unwrap_or(0);
    for (result, place) in results.iter_mut().zip(0..).filter(|_| all > 1) {
        let mut template = shape_in_full(result);
        template.0.insert(0, (JsonStr::new(""), TemplateSlot::Part(all)));
        template.0.insert(0, (JsonStr::new(""), TemplateSlot::Part(place)));
        result.template = Some(template);
    }
    if answers && parts.is_empty() {
        return add_results(results, items);
    }
    let slot = if answers { TemplateSlot::ResultsThenParts } else { TemplateSlot::Parts };
    let mut template = shape_with(wire, &[("parts", slot)]);
    if answers && before.last().is_some_and(|before| *before > 0) {
        for count in before {
            template.0.push((JsonStr::new(""), TemplateSlot::Part(u32::try_from(count).unwrap_or(0))));
        }
    }
    let plain = !listed || encode::is_plain_content(role, &template);
    let said = message(role, parts, (!plain).then_some(template));
    if role == Role::Assistant {
        items.push(said);
        add_results(results, items);
    } else {
        add_results(results, items);
        items.push(said);
    }
}

fn add_results(results: Vec<IncomingResult>, items: &mut Vec<Incoming>) {
    for result in results {
        items.push(Incoming::Result(result));
    }
}

fn shape_in_full(result: &IncomingResult) -> WireTemplate {
    result.template.clone().unwrap_or_else(|| encode::plain_shape(!result.call_id.is_empty(), result.is_error))
}

/// Decodes a part that is neither call nor result. One that has no neutral meaning stays opaque.
pub fn decode_part(part: JsonRef<'_>) -> Part {
    let signed = ["thoughtSignature", "thought_signature"].iter().any(|name| part.find(name).is_some());
    let inline = object(part, "inlineData", "inline_data");
    let file = object(part, "fileData", "file_data").filter(|_| inline.is_none());
    let media = inline.or(file);
    let body = match (part.json_str("text"), media) {
        // A signature may come on an empty text, and returns on it.
        (Some(text), _) if text.is_empty() && signed => None,
        (Some(text), _) if part.get("thought").and_then(JsonRef::as_bool) == Some(true) => {
            Some(PartBody::Reasoning(text))
        }
        (Some(text), _) => Some(PartBody::Text(text)),
        (None, Some(media)) => Some(medium(media, inline.is_some())),
        (None, None) => None,
    };
    let Some(body) = body.filter(|_| call_in(part).is_none()) else { return PartBody::Opaque(part.to_owned()).into() };
    let text = matches!(body, PartBody::Text(_) | PartBody::Reasoning(_));
    let template = shape_of(part, &mut |key, value| match key {
        // Of doubled members the last counts.
        "text" if text && Some(value) == part.get("text") => Some(TemplateSlot::Text),
        _ if !text && Some(value) == media => Some(TemplateSlot::Object(shape_of(value, &mut |name, value| {
            (matches!(name, "data" | "fileUri" | "file_uri") && value.kind() == Kind::String)
                .then_some(TemplateSlot::Text)
        }))),
        _ => None,
    });
    without_plain_shape(&Gemini, body, template)
}

fn medium(data: JsonRef<'_>, inline: bool) -> PartBody {
    let either = |camel, snake| data.json_str(camel).or_else(|| data.json_str(snake));
    let word = |camel, snake| either(camel, snake).map(|token| token.decode().into_owned());
    let mut media = Media {
        media_type: word("mimeType", "mime_type"),
        name: word("displayName", "display_name"),
        ..Media::default()
    };
    let address = either("fileUri", "file_uri");
    // What Google holds is an address for Google alone.
    let held = |address: &JsonStr| {
        let address = address.decode();
        !address.starts_with("http") || has(&address, "generativelanguage.googleapis.com/")
    };
    match address {
        _ if inline => media.data = data.json_str("data"),
        Some(address) if held(&address) => media.file_id = Some(address),
        address => media.url = address,
    }
    if media.media_type.as_deref().is_some_and(|kind| kind.starts_with("image/")) {
        PartBody::Image(media)
    } else {
        PartBody::File(media)
    }
}

/// An id, as text. A number is one, too.
fn id_of(inner: JsonRef<'_>) -> String {
    match inner.get("id") {
        Some(id) if id.kind() == Kind::Number => id.as_raw().to_owned(),
        _ => inner.string("id"),
    }
}

fn decode_call(part: JsonRef<'_>, call: JsonRef<'_>) -> IncomingCall {
    let template = shape_of(part, &mut |_, value| {
        let inner = |key: &str, value: JsonRef<'_>| match key {
            "id" => Some(TemplateSlot::Id),
            "name" => Some(TemplateSlot::Name),
            "args" if !value.is_null() => Some(TemplateSlot::Arguments),
            _ => None,
        };
        (value == call).then(|| TemplateSlot::Object(shape_of(value, &mut { inner })))
    });
    let name = call.string("name");
    let whole = !name.is_empty();
    let call_id = id_of(call);
    IncomingCall {
        template: (whole && !encode::is_plain_call(&template, !call_id.is_empty())).then_some(template),
        call_id,
        name,
        arguments: match call.find("args") {
            Some(args) => args.as_json_str().map_or_else(|| Arguments::Value(args.to_owned()), Arguments::Text),
            None => Arguments::Value(Json::trusted("{}".into())),
        },
    }
}

/// What a `response` says, by which member, and whether it is a failure.
fn said_by(response: JsonRef<'_>) -> (JsonRef<'_>, Option<&'static str>) {
    let mut members = response.entries();
    if let (Some((key, value)), None) = (members.next(), members.next()) {
        let name = WHOLE.into_iter().find(|name| key.is_text(name) && !(*name == "error" && value.is_null()));
        if name.is_some() {
            return (value, name);
        }
    }
    (response, None)
}

fn decode_result(part: JsonRef<'_>, inner: JsonRef<'_>) -> IncomingResult {
    let response = inner.find("response");
    let (content, member) = response.map_or((None, None), |response| {
        let (content, member) = said_by(response);
        (Some(content), member)
    });
    let hole = match (response, member) {
        (Some(response), Some(_)) => TemplateSlot::Object(shape_of(response, &mut |_, _| Some(TemplateSlot::Content))),
        _ => TemplateSlot::Content,
    };
    let holes = [("id", TemplateSlot::Id), ("name", TemplateSlot::Name), ("response", hole)];
    let template =
        shape_of(part, &mut |_, value| (value == inner).then(|| TemplateSlot::Object(shape_with(value, &holes))));
    let is_error = member == Some("error");
    let whole = response.is_some_and(JsonRef::is_object) && inner.get("name").is_some();
    let plain = !whole || encode::is_plain_result(&template, is_error);
    IncomingResult {
        call_id: id_of(inner),
        name: Some(inner.string("name")),
        content: content.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error,
        dialect: Some(Dialect::Gemini),
        template: (!plain).then_some(template),
        raw: part.to_owned(),
        apart: false,
    }
}

/// The images and files in the `parts` of a result that came in this dialect.
pub fn shown_by(result: &ToolResult) -> Vec<Part> {
    let mut shown = Vec::new();
    let mut templates: Vec<&WireTemplate> = result.template.iter().collect();
    while let Some(template) = templates.pop() {
        for (key, slot) in &template.0 {
            match slot {
                TemplateSlot::Object(inner) => templates.push(inner),
                TemplateSlot::Raw(value) if key.inside() == "parts" => {
                    for part in value.view().items() {
                        let part = decode_part(part);
                        if matches!(part.body, PartBody::Image(_) | PartBody::File(_)) {
                            shown.push(part);
                        }
                    }
                }
                _ => {}
            }
        }
    }
    shown
}
