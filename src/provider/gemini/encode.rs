//! Gemini generateContent: from drafts to contents, the results of a round in one content behind it.

use super::{Gemini, SIGNATURE, STRICT, THIRD};
use crate::finding::Report;
use crate::json::{Json, JsonStr, ObjectWriter, list_of};
use crate::message::{Dialect, Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{arguments_object, result_text};
use crate::provider::neutral::{kind_of, refused};
use crate::provider::request::Settings;
use crate::provider::template::{self, is_shape, write_filled};
use crate::provider::{Wire, call_id, tool_name};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::sorted::in_order;
use crate::tool::ToolInvocation;
use std::borrow::Cow;

/// Google's own stand-in for the signature of a call that another model made: `skip_thought_signature_validator`, in base64
/// as recorded requests have it. Gemini 3 refuses the first call of a step that has none.
pub const UNSIGNED: &str = "\"c2tpcF90aG91Z2h0X3NpZ25hdHVyZV92YWxpZGF0b3I=\"";

/// Writes a message and, behind it, the results of its calls. `before` are the messages whose results stand in this one, or
/// with its own.
pub fn encode(
    wire: &mut Wire<'_>,
    item: &DraftMessage<'_>,
    before: &[DraftMessage<'_>],
    settings: &Settings,
    report: &mut Report,
) {
    let message = item.message;
    let own = is_own(message);
    let mut answered = Vec::new();
    for item in before {
        add_answered(item, &mut answered);
    }
    let (mut parts, mut responses) = (Vec::new(), Vec::new());
    if message.role != Role::Assistant {
        responses = write_responses(&mut parts, std::mem::take(&mut answered), settings, report);
    }
    // What came here unsigned stays so, unless the model is known to want it.
    let mut signed = settings.version < THIRD && (own || settings.version > 0);
    for part in &message.parts {
        let mut text = String::new();
        let written = match &part.body {
            PartBody::ToolCall { .. } => item.call(&part.body).is_some_and(|call| {
                write_call(&mut text, call.invocation, own, !std::mem::replace(&mut signed, true), report);
                true
            }),
            _ => may_go(part, message, own, report) && write_part(&mut text, part, own),
        };
        if written {
            parts.push(text);
        }
    }
    if own && settings.version < STRICT {
        // In one content, each where it stood.
        let mut places = Vec::new();
        for (key, slot) in message.template.iter().flat_map(|template| &template.0) {
            if let (TemplateSlot::Part(place), true) = (slot, key.is_empty()) {
                places.push(*place as usize);
            }
        }
        while let Some(response) = responses.pop() {
            let place = places.get(responses.len()).copied().unwrap_or(0);
            parts.insert(place.min(parts.len()), response);
        }
    } else if !responses.is_empty() {
        write_around(wire.begin(), None, &responses);
    }
    if !parts.is_empty() {
        write_content(wire.begin(), message, own, &parts);
    }
    add_answered(item, &mut answered);
    if !item.results_go_on && !item.calls.is_empty() {
        let around = around_of(&answered);
        let mut shown = Vec::new();
        let responses = write_responses(&mut shown, answered, settings, report);
        write_around(wire.begin(), around, &responses);
        if !shown.is_empty() {
            write_around(wire.begin(), None, &shown);
        }
    }
}

fn is_own(message: &Message) -> bool {
    message.dialect == Some(Dialect::Gemini)
}

/// The parts of the `systemInstruction`.
pub fn system(messages: &[&Message]) -> Option<Json> {
    let mut parts = Vec::new();
    for message in messages {
        let own = is_own(message);
        for part in &message.parts {
            let mut text = String::new();
            if may_go(part, message, own, &mut Vec::new()) && write_part(&mut text, part, own) {
                parts.push(text);
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    let mut out = String::new();
    match messages {
        [only] if is_own(only) && only.template.is_some() => write_content(&mut out, only, true, &parts),
        _ => {
            let mut content = ObjectWriter::new(&mut out);
            content.list("parts", &parts);
            content.end();
        }
    }
    Some(Json::trusted(out))
}

fn write_content(out: &mut String, message: &Message, own: bool, parts: &[String]) {
    if let Some(template) = message.template.as_ref().filter(|_| own) {
        let list = list_of(parts);
        return write_filled(out, template, &[(TemplateSlot::Parts, &list), (TemplateSlot::ResultsThenParts, &list)]);
    }
    let mut content = ObjectWriter::new(out);
    content.text("role", if message.role == Role::Assistant { "model" } else { "user" }).list("parts", parts);
    content.end();
}

/// Whether a part may go to Gemini.
fn may_go(part: &Part, message: &Message, own: bool, report: &mut Report) -> bool {
    let finding = match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => return own || !text.is_empty(),
        PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
        _ if own => return true,
        // Said for every dialect where a message is encoded.
        PartBody::Reasoning(_) | PartBody::Opaque(_) => return false,
        PartBody::Image(_) | PartBody::File(_) => match refused(part, message.dialect, Dialect::Gemini) {
            Some(finding) => finding.of_message(&message.id),
            None => return true,
        },
    };
    report.push(finding);
    false
}

/// Writes a part, in its own shape if `own`; false where the dialect has none for it.
pub fn write_part(out: &mut String, part: &Part, own: bool) -> bool {
    if let Some(template) = part.template.as_ref().filter(|_| own) {
        template::write_part(out, part, template);
        return true;
    }
    let mut object = match &part.body {
        PartBody::Opaque(value) => {
            out.push_str(value.as_str());
            return true;
        }
        PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
        _ => ObjectWriter::new(out),
    };
    match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => _ = object.token("text", text),
        PartBody::Reasoning(text) => _ = object.token("text", text).bool("thought", true),
        PartBody::Image(media) => write_media(&mut object, media),
        PartBody::File(media) => write_media(&mut object, media),
        PartBody::Data { .. } | PartBody::ToolCall { .. } | PartBody::Opaque(_) => {}
    }
    object.end();
    true
}

fn write_media(part: &mut ObjectWriter<'_>, media: &Media) {
    if let Some((kind, data)) = media.inline() {
        part.object("inlineData", |inline| _ = inline.text("mimeType", &kind).token("data", &data));
    } else if let Some(address) = media.url.as_ref().or(media.file_id.as_ref()) {
        part.object("fileData", |file| {
            if let Some(kind) = media.media_type.as_deref().or_else(|| kind_of(&address.decode())) {
                file.text("mimeType", kind);
            }
            file.token("fileUri", address);
        });
    }
}

/// The name by which a call goes out: Gemini takes dots and colons, too, and makes such names itself.
fn name_of(call: &ToolInvocation) -> Cow<'_, str> {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if !call.name.is_empty() && call.name.len() <= 128 && call.name.chars().all(legal) {
        taken_name(&call.name)
    } else {
        Cow::Owned(taken_name(&tool_name(call)).into_owned())
    }
}

/// A name with a `_` in front where Gemini would not take its beginning: "Must start with a letter or an underscore".
pub fn taken_name(name: &str) -> Cow<'_, str> {
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("_{name}"))
    }
}

/// The id by which a call goes out. One that came without goes out without.
fn id_of(call: &ToolInvocation, own: bool) -> Option<JsonStr> {
    (!(own && call.call_id.is_empty())).then(|| call_id(&Gemini, call))
}

/// Writes a call or its result in its shape.
fn write_named(
    out: &mut String,
    template: &WireTemplate,
    id: &Option<JsonStr>,
    name: &JsonStr,
    value: (TemplateSlot, &str),
) {
    let named = (TemplateSlot::Name, name.token());
    match id {
        Some(id) => write_filled(out, template, &[named, value, (TemplateSlot::Id, id.token())]),
        None => write_filled(out, template, &[named, value]),
    }
}

fn write_call(out: &mut String, call: &ToolInvocation, own: bool, sign: bool, report: &mut Report) {
    let arguments = arguments_object(call, report);
    let (id, name) = (id_of(call, own), JsonStr::new(&name_of(call)));
    if let Some(template) = call.template.as_ref().filter(|_| own) {
        // An empty signature is none.
        let says = |slot: &TemplateSlot| !matches!(slot, TemplateSlot::Raw(value) if matches!(value.as_str(), "\"\"" | "null"));
        let mut template = Cow::Borrowed(template);
        if sign {
            template.to_mut().0.retain(|(key, slot)| !SIGNATURE.contains(&key.inside()) || says(slot));
        }
        write_named(out, &template, &id, &name, (TemplateSlot::Arguments, arguments.as_str()));
        if sign && !template.0.iter().any(|(key, _)| SIGNATURE.contains(&key.inside())) && out.pop().is_some() {
            out.push_str(&format!(",\"thoughtSignature\":{UNSIGNED}}}"));
        }
        return;
    }
    let mut part = ObjectWriter::new(out);
    part.object("functionCall", |inner| {
        if let Some(id) = &id {
            inner.token("id", id);
        }
        inner.token("name", &name).json("args", arguments.view());
    });
    if sign {
        part.raw("thoughtSignature", UNSIGNED);
    }
    part.end();
}

/// A call whose result is to be written, and whether the call came in this dialect.
type Answered<'d, 'h> = (&'d DraftCall<'h>, bool);

fn add_answered<'d, 'h>(item: &'d DraftMessage<'h>, answered: &mut Vec<Answered<'d, 'h>>) {
    for call in &item.calls {
        answered.push((call, is_own(item.message)));
    }
}

/// The shape that a result came in here.
fn shape_of_result<'h>(call: &DraftCall<'h>) -> Option<&'h WireTemplate> {
    match call.result {
        Some(DraftResult::Stored(result)) if result.dialect == Some(Dialect::Gemini) => result.template.as_ref(),
        _ => None,
    }
}

/// The place that a result had among those of its content, and how many these were.
fn place_of(call: &DraftCall<'_>) -> Option<(u32, u32)> {
    shape_of_result(call).and_then(WireTemplate::came_among)
}

/// What was around a content of results; the first of them knows.
fn around_of<'h>(answered: &[Answered<'_, 'h>]) -> Option<&'h WireTemplate> {
    let knows =
        |(key, slot): &(JsonStr, TemplateSlot)| key.inside() == "parts" && matches!(slot, TemplateSlot::Object(_));
    answered.iter().find_map(|(call, _)| shape_of_result(call).filter(|template| template.0.iter().any(knows)))
}

fn write_around(out: &mut String, around: Option<&WireTemplate>, parts: &[String]) {
    let mut content = ObjectWriter::new(out);
    let list = list_of(parts);
    match around {
        None => _ = content.text("role", "user").raw("parts", &list),
        Some(template) => {
            for (key, slot) in &template.0 {
                let value = match slot {
                    TemplateSlot::Raw(value) => value.as_str(),
                    TemplateSlot::Object(_) => &list,
                    _ => continue,
                };
                content.key_token(key.token()).push_str(value);
            }
        }
    }
    content.end();
}

/// The responses. What other dialects show in a result, and a response cannot hold, comes to `shown`: behind a response in its
/// own content newer models refuse it.
fn write_responses(
    shown: &mut Vec<String>,
    mut answered: Vec<Answered<'_, '_>>,
    settings: &Settings,
    report: &mut Report,
) -> Vec<String> {
    // As they stood, where all of them stood in one content; others as their calls.
    let among = answered.first().and_then(|(call, _)| place_of(call)).map(|(_, all)| all);
    if answered.iter().all(|(call, _)| place_of(call).map(|(_, all)| all) == among) {
        answered = in_order(answered, &|(a, _), (b, _)| place_of(a).cmp(&place_of(b)));
    }
    let mut responses = Vec::new();
    for (call, own) in answered {
        let mut text = String::new();
        for part in write_response(&mut text, call, own, settings, report) {
            let mut text = String::new();
            if write_part(&mut text, &part, false) {
                shown.push(text);
            }
        }
        responses.push(text);
    }
    responses
}

/// Writes a response; gives what it shows beside its words and has no place in it.
fn write_response(
    out: &mut String,
    call: &DraftCall<'_>,
    own: bool,
    settings: &Settings,
    report: &mut Report,
) -> Vec<Part> {
    let invocation = call.invocation;
    let (id, name) = (id_of(invocation, own), JsonStr::new(&name_of(invocation)));
    let stored = match call.result {
        Some(DraftResult::Stored(result)) => Some(result),
        _ => None,
    };
    if let Some((template, result)) = shape_of_result(call).zip(stored) {
        let inner = template.0.iter().find_map(|(key, slot)| match slot {
            TemplateSlot::Object(part) if key.inside() == "parts" => Some(part),
            _ => None,
        });
        let mut template = Cow::Borrowed(inner.unwrap_or(template));
        if settings.version >= STRICT {
            for (_, slot) in &mut template.to_mut().0 {
                if let TemplateSlot::Object(inner) = slot
                    && inner.0.iter().all(|(_, slot)| *slot != TemplateSlot::Id)
                {
                    inner.0.insert(0, (JsonStr::new("id"), TemplateSlot::Id));
                }
            }
        }
        write_named(out, &template, &id, &name, (TemplateSlot::Content, result.content.as_str()));
        return Vec::new();
    }
    let (mut shown, mut held) = (Vec::new(), Vec::new());
    // What a tool gave here, or what came in this dialect, is a value; of other dialects it is what they say.
    let value = stored.filter(|result| matches!(result.dialect, None | Some(Dialect::Gemini)));
    let (content, is_error) = match value {
        Some(result) => (result.content.clone(), result.is_error),
        None => {
            let mut words = result_text(Dialect::Gemini, call, report);
            for part in words.media {
                if fits_response(&part, settings) {
                    let mut text = String::new();
                    write_part(&mut text, &part, false);
                    held.push(text);
                } else {
                    shown.push(part);
                }
            }
            words.texts.retain(|text| !text.is_empty());
            (JsonStr::joined(&mut words.texts.iter(), "\\n\\n").to_json(), words.is_error)
        }
    };
    let mut part = ObjectWriter::new(out);
    part.object("functionResponse", |inner| {
        if let Some(id) = &id {
            inner.token("id", id);
        }
        inner.token("name", &name);
        let word = if is_error { "error" } else { "output" };
        inner.object("response", |response| _ = response.json(word, content.view()));
        if !held.is_empty() {
            inner.list("parts", &held);
        }
    });
    part.end();
    shown
}

/// Whether a response holds that itself. Models before version 3 take no parts in it; later ones an image's bytes, no address
/// ("Multimodal function responses" in Google's guide).
fn fits_response(part: &Part, settings: &Settings) -> bool {
    !(1..THIRD).contains(&settings.version) && matches!(&part.body, PartBody::Image(media) if media.inline().is_some())
}

// What is plain needs no shape of its own.

/// Whether a content of that shape is written the same without it.
pub fn is_plain_content(role: Role, template: &WireTemplate) -> bool {
    let name = if role == Role::Assistant { "\"model\"" } else { "\"user\"" };
    matches!(template.0.as_slice(), [(key, TemplateSlot::Raw(own)), (parts, TemplateSlot::Parts | TemplateSlot::Object(_))]
        if key.inside() == "role" && own.as_str() == name && parts.inside() == "parts")
}

/// Whether a call of that shape is written the same without it.
pub fn is_plain_call(template: &WireTemplate, has_id: bool) -> bool {
    let id = if has_id { r##""id":#id,"## } else { "" };
    is_shape(template, &format!(r##"{{"functionCall":{{{id}"name":#name,"args":#arguments}}}}"##))
}

/// The shape in which a result goes out that has none.
pub fn plain_shape(has_id: bool, is_error: bool) -> WireTemplate {
    let key = JsonStr::new;
    let mut members = Vec::new();
    if has_id {
        members.push((key("id"), TemplateSlot::Id));
    }
    members.push((key("name"), TemplateSlot::Name));
    let word = if is_error { "error" } else { "output" };
    members.push((key("response"), TemplateSlot::Object(WireTemplate(vec![(key(word), TemplateSlot::Content)]))));
    WireTemplate(vec![(key("functionResponse"), TemplateSlot::Object(WireTemplate(members)))])
}

/// Whether a result of that shape is written the same without it. One without an id keeps its shape: that says so.
pub fn is_plain_result(template: &WireTemplate, is_error: bool) -> bool {
    let word = if is_error { "error" } else { "output" };
    is_shape(
        template,
        &format!(r##"{{"functionResponse":{{"id":#id,"name":#name,"response":{{"{word}":#content}}}}}}"##),
    )
}
