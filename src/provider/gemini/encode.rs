//! Encodes messages for Gemini generateContent. The results of a round of calls are one user content after the calling
//! content.

use super::content::CONTENT;
use super::model_version::{GEMINI_3, GEMINI_3_6};
use super::part::SIGNATURE_NAMES;
use super::rules::PLACEHOLDER_SIGNATURE;
use crate::finding::Report;
use crate::history::IncomingResult;
use crate::json::{Json, JsonStr, ObjectWriter, list_of};
use crate::message::{Dialect, Media, Message, Part, PartBody, Role, TemplateSlot, WireTemplate};
use crate::provider::neutral::{arguments_object, is_system_text, media_type_of, rejected_media, result_text};
use crate::provider::request::Settings;
use crate::provider::spec::{DecodeResult, Wire, call_id, tool_name};
use crate::provider::wire_template::{self, matches_pattern, write_filled};
use crate::replay::{DraftCall, DraftMessage, DraftResult};
use crate::tool::{ToolInvocation, ToolResult};
use std::borrow::Cow;

/// Encodes the messages of one request.
pub(super) struct GeminiEncoder<'e> {
    pub settings: &'e Settings,
    pub decode_result: DecodeResult,
    pub report: &'e mut Report,
}

/// A call whose result is not written yet.
struct PendingResult<'d, 'h> {
    call: &'d DraftCall<'h>,
    /// The call was decoded from Gemini's format.
    is_native: bool,
}

/// Encoded results.
#[derive(Default)]
struct EncodedResponses {
    /// The `functionResponse` parts.
    responses: Vec<String>,
    /// Images and files that a `functionResponse` cannot hold. Newer models reject them after a response in the same
    /// content.
    media: Vec<String>,
}

/// The signature of a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CallSignature {
    /// The call is sent with the signature that it was received with, if any.
    AsReceived,
    /// Gemini requires a signature. A call without one gets the placeholder.
    Required,
}

/// The id and name with which a call and its result are sent.
struct CallNames {
    id: Option<JsonStr>,
    name: JsonStr,
}

impl CallNames {
    /// Writes a call or a result by its template, with `value` in the slot of its arguments or its content.
    fn fill_template(&self, out: &mut String, template: &WireTemplate, value: (TemplateSlot, &str)) {
        let name = (TemplateSlot::Name, self.name.token());
        match &self.id {
            Some(id) => write_filled(out, template, &[name, value, (TemplateSlot::Id, id.token())]),
            None => write_filled(out, template, &[name, value]),
        }
    }
}

impl GeminiEncoder<'_> {
    /// Writes a message and then the results of its calls. `deferred` are earlier messages whose results were not
    /// written after them: they are written with this message, or with the results of its own calls if it is the
    /// model's.
    pub fn encode(&mut self, wire: &mut Wire<'_>, item: &DraftMessage<'_>, deferred: &[DraftMessage<'_>]) {
        let message = item.message;
        let native = is_native(message);
        let mut pending = deferred.iter().flat_map(pending_results).collect::<Vec<_>>();
        let mut encoded = EncodedResponses::default();
        if message.role != Role::Assistant {
            encoded = self.encode_results(std::mem::take(&mut pending));
        }
        let mut parts = Vec::new();
        self.push_parts(item, &mut parts);
        if native && self.settings.version < GEMINI_3_6 {
            insert_responses(message, encoded, &mut parts);
        } else {
            let EncodedResponses { responses, media } = encoded;
            if !responses.is_empty() {
                write_result_content(wire.begin(), None, &responses);
            }
            parts.splice(..0, media);
        }
        if !parts.is_empty() {
            write_content(wire.begin(), message, &parts);
        }
        if !item.results_go_on && !item.calls.is_empty() {
            pending.extend(pending_results(item));
            let template = content_template(&pending);
            let EncodedResponses { responses, media } = self.encode_results(pending);
            write_result_content(wire.begin(), template, &responses);
            if !media.is_empty() {
                write_result_content(wire.begin(), None, &media);
            }
        }
    }

    /// Encodes the parts and calls of a message.
    fn push_parts(&mut self, item: &DraftMessage<'_>, parts: &mut Vec<String>) {
        let message = item.message;
        let native = is_native(message);
        // Gemini 3 requires a signature on the first call. If the model's version is unknown, calls of Gemini's own
        // format are sent as they were received.
        let version = self.settings.version;
        let needs_signature = version >= GEMINI_3 || version == 0 && !native;
        let mut signature = if needs_signature { CallSignature::Required } else { CallSignature::AsReceived };
        for part in &message.parts {
            let mut text = String::new();
            let is_written = if let PartBody::ToolCall { .. } = part.body {
                item.call(&part.body).is_some_and(|call| {
                    let signature = std::mem::replace(&mut signature, CallSignature::AsReceived);
                    self.write_call(&mut text, call.invocation, native, signature);
                    true
                })
            } else {
                accepts(part, message, self.report) && write_part(&mut text, part, native)
            };
            if is_written {
                parts.push(text);
            }
        }
    }

    /// Returns the id and name of a call. A call that Gemini sent without an id is sent back without one.
    fn names_of(&self, call: &ToolInvocation, native: bool) -> CallNames {
        let has_id = !(native && call.call_id.is_empty());
        CallNames { id: has_id.then(|| call_id(&CONTENT, call)), name: JsonStr::new(&call_name(call)) }
    }

    fn write_call(&mut self, out: &mut String, call: &ToolInvocation, native: bool, signature: CallSignature) {
        let sign = signature == CallSignature::Required;
        let arguments = arguments_object(call, self.report);
        let names = self.names_of(call, native);
        if let Some(template) = call.template.as_ref().filter(|_| native) {
            let is_signature = |key: &JsonStr| SIGNATURE_NAMES.contains(&key.inside());
            let is_empty = |slot: &TemplateSlot| matches!(slot, TemplateSlot::Raw(value) if matches!(value.as_str(), "\"\"" | "null"));
            let mut template = Cow::Borrowed(template);
            if sign {
                template.to_mut().0.retain(|(key, slot)| !(is_signature(key) && is_empty(slot)));
            }
            names.fill_template(out, &template, (TemplateSlot::Arguments, arguments.as_str()));
            let is_signed = template.0.iter().any(|(key, _)| is_signature(key));
            if sign && !is_signed && out.pop().is_some() {
                out.push_str(&format!(",\"thoughtSignature\":{PLACEHOLDER_SIGNATURE}}}"));
            }
            return;
        }
        let mut part = ObjectWriter::new(out);
        part.object("functionCall", |inner| {
            if let Some(id) = &names.id {
                inner.token("id", id);
            }
            inner.token("name", &names.name).json("args", arguments.view());
        });
        if sign {
            part.raw("thoughtSignature", PLACEHOLDER_SIGNATURE);
        }
        part.end();
    }

    /// Encodes results: in the order in which they were received if all of them came in one content, otherwise in the
    /// order of their calls.
    fn encode_results(&mut self, mut pending: Vec<PendingResult<'_, '_>>) -> EncodedResponses {
        let count = pending.first().and_then(result_position).map(|(_, count)| count);
        if pending.iter().all(|result| result_position(result).map(|(_, count)| count) == count) {
            pending.sort_by_cached_key(|result| result_position(result).map_or(0, |(place, _)| place as usize));
        }
        let mut encoded = EncodedResponses::default();
        for result in &pending {
            match native_result(result.call) {
                Some((result_of, template)) => {
                    encoded.responses.push(self.native_response(result, result_of, template));
                }
                None => self.push_response(result, &mut encoded),
            }
        }
        encoded
    }

    /// Returns the part of a result that was decoded from Gemini's format with a template.
    fn native_response(&self, pending: &PendingResult<'_, '_>, result: &ToolResult, template: &WireTemplate) -> String {
        let names = self.names_of(pending.call.invocation, pending.is_native);
        // The template of the first result of a content has the content's members around its own.
        let part_template = template.0.iter().find_map(|(key, slot)| match slot {
            TemplateSlot::Object(part) if key.inside() == "parts" => Some(part),
            _ => None,
        });
        let mut template = Cow::Borrowed(part_template.unwrap_or(template));
        if self.settings.version >= GEMINI_3_6 {
            for (_, slot) in &mut template.to_mut().0 {
                if let TemplateSlot::Object(response) = slot
                    && response.0.iter().all(|(_, slot)| *slot != TemplateSlot::Id)
                {
                    response.0.insert(0, (JsonStr::new("id"), TemplateSlot::Id));
                }
            }
        }
        let mut out = String::new();
        names.fill_template(&mut out, &template, (TemplateSlot::Content, result.content.as_str()));
        out
    }

    /// Adds the part of any other result, and the media that it cannot hold.
    fn push_response(&mut self, pending: &PendingResult<'_, '_>, encoded: &mut EncodedResponses) {
        let call = pending.call;
        let names = self.names_of(call.invocation, pending.is_native);
        let mut response_media = Vec::new();
        // Results of a tool, or of Gemini's format, are JSON values. Results of other dialects are text and media.
        let (content, is_error) = match stored_result(call) {
            Some(result) if matches!(result.dialect, None | Some(Dialect::Gemini)) => {
                (result.content.clone(), result.is_error)
            }
            _ => {
                let mut result = result_text(&CONTENT, call, self.decode_result, self.report);
                for part in result.media {
                    let target = if self.fits_response(&part) { &mut response_media } else { &mut encoded.media };
                    let mut text = String::new();
                    if write_part(&mut text, &part, false) {
                        target.push(text);
                    }
                }
                result.texts.retain(|text| !text.is_empty());
                (JsonStr::joined(&mut result.texts.iter(), "\\n\\n").to_json(), result.is_error)
            }
        };
        let mut out = String::new();
        let mut part = ObjectWriter::new(&mut out);
        part.object("functionResponse", |inner| {
            if let Some(id) = &names.id {
                inner.token("id", id);
            }
            inner.token("name", &names.name);
            inner.object("response", |response| _ = response.json(envelope(is_error), content.view()));
            if !response_media.is_empty() {
                inner.list("parts", &response_media);
            }
        });
        part.end();
        encoded.responses.push(out);
    }

    /// Returns true if `functionResponse.parts` can hold the part. Models before Gemini 3 accept no parts there; later
    /// ones accept images with their data, not by URL (Google's guide, "Multimodal function responses").
    fn fits_response(&self, part: &Part) -> bool {
        let is_old_model = (1..GEMINI_3).contains(&self.settings.version);
        !is_old_model && matches!(&part.body, PartBody::Image(media) if media.inline().is_some())
    }
}

/// Returns the `systemInstruction` of these messages, if they have content.
pub(super) fn system_instruction(messages: &[&Message], report: &mut Report) -> Option<Json> {
    let mut parts = Vec::new();
    for message in messages {
        for part in &message.parts {
            let mut text = String::new();
            let native = is_native(message);
            let is_accepted =
                if native { accepts(part, message, report) } else { is_system_text(part, message, report) };
            if is_accepted && write_part(&mut text, part, native) {
                parts.push(text);
            }
        }
    }
    if parts.is_empty() {
        return None;
    }
    let mut out = String::new();
    match messages {
        [only] if is_native(only) && only.template.is_some() => write_content(&mut out, only, &parts),
        _ => {
            let mut content = ObjectWriter::new(&mut out);
            content.list("parts", &parts);
            content.end();
        }
    }
    Some(Json::trusted(out))
}

fn is_native(message: &Message) -> bool {
    message.dialect == Some(Dialect::Gemini)
}

fn pending_results<'d, 'h>(item: &'d DraftMessage<'h>) -> impl Iterator<Item = PendingResult<'d, 'h>> {
    let is_native = is_native(item.message);
    item.calls.iter().map(move |call| PendingResult { call, is_native })
}

fn stored_result<'h>(call: &DraftCall<'h>) -> Option<&'h ToolResult> {
    match call.result {
        Some(DraftResult::Stored(result)) => Some(result),
        _ => None,
    }
}

/// Returns a call's result with its template if it was decoded from Gemini's format and has one.
fn native_result<'h>(call: &DraftCall<'h>) -> Option<(&'h ToolResult, &'h WireTemplate)> {
    let result = stored_result(call).filter(|result| result.dialect == Some(Dialect::Gemini))?;
    Some((result, result.template.as_ref()?))
}

/// Returns a result's position among the results of the content that it came in, and their number.
fn result_position(pending: &PendingResult<'_, '_>) -> Option<(u32, u32)> {
    native_result(pending.call).and_then(|(_, template)| template.place_among_results())
}

/// Returns the template of a content of results, which the first result of that content records.
fn content_template<'h>(pending: &[PendingResult<'_, 'h>]) -> Option<&'h WireTemplate> {
    let has_parts =
        |(key, slot): &(JsonStr, TemplateSlot)| key.inside() == "parts" && matches!(slot, TemplateSlot::Object(_));
    pending.iter().find_map(|result| {
        let (_, template) = native_result(result.call)?;
        template.0.iter().any(has_parts).then_some(template)
    })
}

/// Inserts responses among the parts of the content in which they were received, each at its position there.
fn insert_responses(message: &Message, encoded: EncodedResponses, parts: &mut Vec<String>) {
    let EncodedResponses { mut responses, media } = encoded;
    let mut positions = Vec::new();
    for (key, slot) in message.template.iter().flat_map(|template| &template.0) {
        if let (TemplateSlot::Part(position), true) = (slot, key.is_empty()) {
            positions.push((*position as usize).min(parts.len()));
        }
    }
    positions.truncate(responses.len());
    // Responses that were received elsewhere precede those of this content.
    positions.splice(..0, vec![0; responses.len() - positions.len()]);
    // The media follow the last response.
    let end = positions.last().copied().unwrap_or(0);
    parts.splice(end..end, media);
    while let (Some(response), Some(position)) = (responses.pop(), positions.pop()) {
        parts.insert(position, response);
    }
}

fn write_content(out: &mut String, message: &Message, parts: &[String]) {
    if let Some(template) = message.template.as_ref().filter(|_| is_native(message)) {
        let list = list_of(parts);
        return write_filled(out, template, &[(TemplateSlot::Parts, &list), (TemplateSlot::ResultsThenParts, &list)]);
    }
    let mut content = ObjectWriter::new(out);
    content.text("role", if message.role == Role::Assistant { "model" } else { "user" }).list("parts", parts);
    content.end();
}

/// Writes a content of results, by the template of the content in which they were received, if there is one.
fn write_result_content(out: &mut String, template: Option<&WireTemplate>, parts: &[String]) {
    let mut content = ObjectWriter::new(out);
    let list = list_of(parts);
    match template {
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

/// Returns true if Gemini accepts a part of this message; reports the loss otherwise.
fn accepts(part: &Part, message: &Message, report: &mut Report) -> bool {
    let native = is_native(message);
    let finding = match &part.body {
        PartBody::Text(text) | PartBody::Refusal(text) => return native || !text.is_empty(),
        PartBody::Data { .. } | PartBody::ToolCall { .. } => return false,
        _ if native => return true,
        // The renderer reports these, for every target.
        PartBody::Reasoning(_) | PartBody::Opaque(_) => return false,
        PartBody::Image(_) | PartBody::File(_) => match rejected_media(part, message.dialect, &CONTENT) {
            Some(finding) => finding.of_message(&message.id),
            None => return true,
        },
    };
    report.push(finding);
    false
}

/// Writes a part, by its template if `native` (the part was decoded from Gemini's format). Returns false if Gemini has
/// no part for it.
pub(super) fn write_part(out: &mut String, part: &Part, native: bool) -> bool {
    if let Some(template) = part.template.as_ref().filter(|_| native) {
        wire_template::write_part(out, part, template, &["fileUri", "file_uri"]);
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
        PartBody::Image(media) | PartBody::File(media) => write_media(&mut object, media),
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
            if let Some(kind) = media.media_type.as_deref().or_else(|| media_type_of(&address.decode())) {
                file.text("mimeType", kind);
            }
            file.token("fileUri", address);
        });
    }
}

/// Returns the name with which a call is sent. Gemini accepts dots and colons too, and its models generate such names.
fn call_name(call: &ToolInvocation) -> Cow<'_, str> {
    let is_accepted = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if !call.name.is_empty() && call.name.len() <= 128 && call.name.chars().all(is_accepted) {
        function_name(&call.name)
    } else {
        Cow::Owned(function_name(&tool_name(call)).into_owned())
    }
}

/// Returns a name, with a leading `_` if Gemini rejects its first character: "Must start with a letter or an
/// underscore".
pub(super) fn function_name(name: &str) -> Cow<'_, str> {
    if name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_') {
        Cow::Borrowed(name)
    } else {
        Cow::Owned(format!("_{name}"))
    }
}

/// Returns the member of a `response` that holds a result's content.
fn envelope(is_error: bool) -> &'static str {
    if is_error { "error" } else { "output" }
}

/// Returns true if a content with this template is encoded the same without it.
pub(super) fn is_plain_content(role: Role, template: &WireTemplate) -> bool {
    let role = if role == Role::Assistant { "\"model\"" } else { "\"user\"" };
    matches!(template.0.as_slice(),
        [(key, TemplateSlot::Raw(value)), (parts, TemplateSlot::Parts | TemplateSlot::Object(_))]
            if key.inside() == "role" && value.as_str() == role && parts.inside() == "parts")
}

/// Returns true if a call with this template is encoded the same without it.
pub(super) fn is_plain_call(template: &WireTemplate, has_id: bool) -> bool {
    let id = if has_id { r##""id":#id,"## } else { "" };
    matches_pattern(template, &format!(r##"{{"functionCall":{{{id}"name":#name,"args":#arguments}}}}"##))
}

/// Returns the template that describes how a result is encoded which has none.
pub(super) fn plain_result_template(result: &IncomingResult) -> WireTemplate {
    let key = JsonStr::new;
    let mut members = Vec::new();
    if !result.call_id.is_empty() {
        members.push((key("id"), TemplateSlot::Id));
    }
    members.push((key("name"), TemplateSlot::Name));
    let response = WireTemplate(vec![(key(envelope(result.is_error)), TemplateSlot::Content)]);
    members.push((key("response"), TemplateSlot::Object(response)));
    WireTemplate(vec![(key("functionResponse"), TemplateSlot::Object(WireTemplate(members)))])
}

/// Returns true if a result with this template is encoded the same without it. A result without an id keeps its
/// template: only that records the absence.
pub(super) fn is_plain_result(template: &WireTemplate, is_error: bool) -> bool {
    let envelope = envelope(is_error);
    matches_pattern(
        template,
        &format!(r##"{{"functionResponse":{{"id":#id,"name":#name,"response":{{"{envelope}":#content}}}}}}"##),
    )
}
