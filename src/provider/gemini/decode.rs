//! Decodes contents of Gemini generateContent.
//!
//! Gemini reads names in camel case and in snake case. Templates preserve the spelling.

use super::encode::{is_plain_call, is_plain_content, is_plain_result, plain_result_template, write_part};
use super::part::{CALL_NAMES, NamedPart, SIGNATURE_NAMES, object_member};
use crate::history::{Incoming, IncomingCall, IncomingMessage, IncomingPart, IncomingResult};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Media, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::wire_template::{template_of, template_with_slots, without_plain_template};
use crate::tool::{Arguments, ToolResult};

/// The only member of a `response` that is an envelope: `output` and `error` in Google's documentation, `result` in
/// clients.
const RESPONSE_ENVELOPES: [&str; 3] = ["output", "result", "error"];

/// Decodes the body's `systemInstruction`: a content, or a text, which some clients send.
pub(super) fn decode_system(body: JsonRef<'_>) -> Option<Incoming> {
    let system = body.find("systemInstruction").or_else(|| body.find("system_instruction"))?;
    let parts: Vec<IncomingPart> = match system.as_json_str() {
        Some(text) => vec![IncomingPart::Part(PartBody::Text(text).into())],
        None => parts_of(system).into_iter().map(|part| IncomingPart::Part(decode_part(part))).collect(),
    };
    (!parts.is_empty()).then(|| {
        let template = template_with_slots(system, &[("parts", TemplateSlot::Parts)]);
        let is_plain = !system.is_object() || matches!(template.0.as_slice(), [(_, TemplateSlot::Parts)]);
        message(Role::System, parts, (!is_plain).then_some(template))
    })
}

fn message(role: Role, parts: Vec<IncomingPart>, template: Option<WireTemplate>) -> Incoming {
    Incoming::Message(IncomingMessage { role, parts, dialect: Some(Dialect::Gemini), template })
}

/// Returns the parts of a content. Gemini accepts a single part without a list around it.
fn parts_of(content: JsonRef<'_>) -> Vec<JsonRef<'_>> {
    match content.find("parts") {
        Some(part) if part.kind() != JsonKind::Array => vec![part],
        parts => parts.unwrap_or_default().items().collect(),
    }
}

/// The parts of one content, separated.
#[derive(Default)]
struct DecodedParts {
    parts: Vec<IncomingPart>,
    results: Vec<IncomingResult>,
    /// For each result, how many of `parts` are before it.
    parts_before: Vec<usize>,
}

/// Decodes one content: its results, and a message with its other parts, if any.
pub(super) fn decode_content(wire: JsonRef<'_>, items: &mut Vec<Incoming>) {
    if let Some(text) = wire.as_json_str().filter(|text| !text.is_empty()) {
        return items.push(message(Role::User, vec![IncomingPart::Part(PartBody::Text(text).into())], None));
    }
    if !wire.is_object() {
        return items.push(Incoming::Unknown(wire.to_owned()));
    }
    let (role, is_role_standard) = decode_role(wire);
    let DecodedParts { parts, mut results, parts_before } = decode_parts(wire, role);
    let has_results = role == Role::User && !results.is_empty();
    let is_standard = is_role_standard && wire.get("parts").is_some_and(|parts| parts.kind() == JsonKind::Array);
    if has_results && parts.is_empty() && is_standard {
        record_content_template(wire, &mut results);
    }
    record_positions(&mut results);
    if has_results && parts.is_empty() {
        return items.extend(results.into_iter().map(Incoming::Result));
    }
    let slot = if has_results { TemplateSlot::ResultsThenParts } else { TemplateSlot::Parts };
    let mut template = template_with_slots(wire, &[("parts", slot)]);
    if has_results && parts_before.last().is_some_and(|count| *count > 0) {
        for count in parts_before {
            template.0.push((JsonStr::new(""), TemplateSlot::Part(u32::try_from(count).unwrap_or(0))));
        }
    }
    let is_plain = !is_standard || is_plain_content(role, &template);
    let message = message(role, parts, (!is_plain).then_some(template));
    let results = results.into_iter().map(Incoming::Result);
    if role == Role::Assistant {
        items.push(message);
        items.extend(results);
    } else {
        items.extend(results);
        items.push(message);
    }
}

/// Returns the role of a content, and whether it is written as Gemini's API specifies. Names of other formats are read
/// as the rules read them. "function" is sent back as "user", which all models accept.
fn decode_role(wire: JsonRef<'_>) -> (Role, bool) {
    let role = wire.find("role").map(|role| role.as_text().unwrap_or_default().to_ascii_lowercase());
    match role.as_deref() {
        None | Some("user" | "") => (Role::User, true),
        Some("model") => (Role::Assistant, true),
        Some("assistant" | "ai" | "bot" | "agent") => (Role::Assistant, false),
        Some("system" | "developer") => (Role::System, false),
        Some(_) => (Role::User, false),
    }
}

fn decode_parts(wire: JsonRef<'_>, role: Role) -> DecodedParts {
    let mut decoded = DecodedParts::default();
    for part in parts_of(wire) {
        if let Some(response) = NamedPart::with_response(part) {
            decoded.results.push(decode_result(response));
            decoded.parts_before.push(decoded.parts.len());
        } else if let Some(call) = NamedPart::with_call(part).filter(|_| role == Role::Assistant) {
            decoded.parts.push(IncomingPart::Call(decode_call(call)));
        } else {
            decoded.parts.push(IncomingPart::Part(decode_part(part)));
        }
    }
    decoded
}

/// Records the members of a content that holds only results. Such a content is not a message, so the template of its
/// first result records them, with the result's own template in the place of `parts`.
fn record_content_template(wire: JsonRef<'_>, results: &mut [IncomingResult]) {
    let Some(first) = results.first_mut() else { return };
    let content = template_with_slots(wire, &[("parts", TemplateSlot::Object(full_template(first)))]);
    if !is_plain_content(Role::User, &content) {
        first.template = Some(content);
    }
}

/// Records each result's position among the results of its content, and their number, in two slots without a key in
/// front of its template: the calls may have another order.
fn record_positions(results: &mut [IncomingResult]) {
    let count = u32::try_from(results.len()).unwrap_or(0);
    if count < 2 {
        return;
    }
    for (result, position) in results.iter_mut().zip(0..) {
        let mut template = full_template(result);
        let slots = [TemplateSlot::Part(position), TemplateSlot::Part(count)];
        template.0.splice(0..0, slots.map(|slot| (JsonStr::new(""), slot)));
        result.template = Some(template);
    }
}

/// Returns the template of a result, or the one that describes how it is encoded without a template.
fn full_template(result: &IncomingResult) -> WireTemplate {
    result.template.clone().unwrap_or_else(|| plain_result_template(result))
}

/// Decodes a part that is neither a call nor a response. A part without a neutral equivalent is kept as an opaque part.
pub(super) fn decode_part(part: JsonRef<'_>) -> Part {
    let is_signed = SIGNATURE_NAMES.iter().any(|name| part.find(name).is_some());
    let inline = object_member(part, ["inlineData", "inline_data"]);
    let file = object_member(part, ["fileData", "file_data"]).filter(|_| inline.is_none());
    let media = inline.or(file);
    let body = match (part.json_str("text"), media) {
        // Gemini may send a signature on an empty text, and expects both back.
        (Some(text), _) if text.is_empty() && is_signed => None,
        (Some(text), _) if part.get("thought").and_then(JsonRef::as_bool) == Some(true) => {
            Some(PartBody::Reasoning(text))
        }
        (Some(text), _) => Some(PartBody::Text(text)),
        (None, Some(media)) => Some(decode_media(media, inline.is_some())),
        (None, None) => None,
    };
    let Some(body) = body.filter(|_| object_member(part, CALL_NAMES).is_none()) else {
        return PartBody::Opaque(part.to_owned()).into();
    };
    let is_text = matches!(body, PartBody::Text(_) | PartBody::Reasoning(_));
    let template = template_of(part, &mut |key, value| match key {
        // Of duplicate members the last one counts.
        "text" if is_text && Some(value) == part.get("text") => Some(TemplateSlot::Text),
        _ if !is_text && Some(value) == media => Some(TemplateSlot::Object(media_template(value))),
        _ => None,
    });
    without_plain_template(&write_part, body, template)
}

fn media_template(media: JsonRef<'_>) -> WireTemplate {
    template_of(media, &mut |name, value| {
        (matches!(name, "data" | "fileUri" | "file_uri") && value.kind() == JsonKind::String)
            .then_some(TemplateSlot::Text)
    })
}

/// Decodes `inlineData` or `fileData`:
///
/// ```json
/// {"mimeType":"image/png","data":"iVBORw0…"}
/// {"mimeType":"application/pdf","fileUri":"https://example.com/a.pdf"}
/// ```
fn decode_media(media: JsonRef<'_>, is_inline: bool) -> PartBody {
    let string = |camel, snake| media.json_str(camel).or_else(|| media.json_str(snake));
    let decoded = |camel, snake| string(camel, snake).map(|token| token.decode().into_owned());
    let mut decoded = Media {
        media_type: decoded("mimeType", "mime_type"),
        name: decoded("displayName", "display_name"),
        ..Media::default()
    };
    match string("fileUri", "file_uri") {
        _ if is_inline => decoded.data = media.json_str("data"),
        Some(uri) if is_stored_by_google(&uri) => decoded.file_id = Some(uri),
        uri => decoded.url = uri,
    }
    if decoded.media_type.as_deref().is_some_and(|kind| kind.starts_with("image/")) {
        PartBody::Image(decoded)
    } else {
        PartBody::File(decoded)
    }
}

/// Returns true if a URI denotes a file that only Google can read: one of its Files API, or of a scheme like `gs:`.
fn is_stored_by_google(uri: &JsonStr) -> bool {
    let uri = uri.decode();
    !uri.starts_with("http") || uri.contains("generativelanguage.googleapis.com/")
}

/// Returns the id of a call or response. A number is read as its digits.
fn decode_id(named: JsonRef<'_>) -> String {
    match named.get("id") {
        Some(id) if id.kind() == JsonKind::Number => id.as_raw().to_owned(),
        _ => named.string("id"),
    }
}

fn decode_call(NamedPart { part, named: call }: NamedPart<'_>) -> IncomingCall {
    let call_template = || {
        template_of(call, &mut |key, value| match key {
            "id" => Some(TemplateSlot::Id),
            "name" => Some(TemplateSlot::Name),
            "args" if !value.is_null() => Some(TemplateSlot::Arguments),
            _ => None,
        })
    };
    let template = template_of(part, &mut |_, value| (value == call).then(|| TemplateSlot::Object(call_template())));
    let name = call.string("name");
    let call_id = decode_id(call);
    let is_plain = name.is_empty() || is_plain_call(&template, !call_id.is_empty());
    IncomingCall {
        id: None,
        is_async: false,
        template: (!is_plain).then_some(template),
        call_id,
        name,
        arguments: match call.find("args") {
            Some(args) => args.as_json_str().map_or_else(|| Arguments::Value(args.to_owned()), Arguments::Text),
            None => Arguments::Value(Json::trusted("{}".into())),
        },
    }
}

/// Returns the content of a `response`, and the name of the envelope around it, if any: `{"output":5}` has the content
/// `5` and the envelope `output`; `{"temperature":5}` is the content itself.
fn open_envelope(response: JsonRef<'_>) -> (JsonRef<'_>, Option<&'static str>) {
    let mut members = response.entries();
    if let (Some((key, value)), None) = (members.next(), members.next()) {
        let is_envelope = |name: &&str| key.is_text(name) && !(*name == "error" && value.is_null());
        if let Some(name) = RESPONSE_ENVELOPES.into_iter().find(is_envelope) {
            return (value, Some(name));
        }
    }
    (response, None)
}

fn decode_result(NamedPart { part, named }: NamedPart<'_>) -> IncomingResult {
    let response = named.find("response");
    let (content, envelope) = response.map_or((None, None), |response| {
        let (content, envelope) = open_envelope(response);
        (Some(content), envelope)
    });
    let content_slot = match (response, envelope) {
        (Some(response), Some(_)) => {
            TemplateSlot::Object(template_of(response, &mut |_, _| Some(TemplateSlot::Content)))
        }
        _ => TemplateSlot::Content,
    };
    let slots = [("id", TemplateSlot::Id), ("name", TemplateSlot::Name), ("response", content_slot)];
    let template = template_of(part, &mut |_, value| {
        (value == named).then(|| TemplateSlot::Object(template_with_slots(value, &slots)))
    });
    let is_error = envelope == Some("error");
    let is_complete = response.is_some_and(JsonRef::is_object) && named.get("name").is_some();
    let is_plain = !is_complete || is_plain_result(&template, is_error);
    IncomingResult {
        call_id: decode_id(named),
        name: Some(named.string("name")),
        content: content.map_or_else(|| JsonStr::new("").to_json(), JsonRef::to_owned),
        is_error,
        dialect: Some(Dialect::Gemini),
        template: (!is_plain).then_some(template),
        raw: part.to_owned(),
        stands_alone: false,
    }
}

/// Returns the images and files of a result that was decoded from Gemini's format. They are in
/// `functionResponse.parts`, which only the result's template records.
pub(crate) fn media_of_result(result: &ToolResult) -> Vec<Part> {
    let mut found = Vec::new();
    let mut templates: Vec<&WireTemplate> = result.template.iter().collect();
    while let Some(template) = templates.pop() {
        for (key, slot) in &template.0 {
            match slot {
                TemplateSlot::Object(inner) => templates.push(inner),
                TemplateSlot::Raw(value) if key.inside() == "parts" => {
                    let parts = value.view();
                    let is_media = |part: &Part| matches!(part.body, PartBody::Image(_) | PartBody::File(_));
                    found.extend(parts.items().map(decode_part).filter(is_media));
                }
                _ => {}
            }
        }
    }
    found
}
