//! `dialectData`: what is stored of a message, a part or a call and has no member of its own in the public types, as
//! JSON text (R57). With it a message that `messages` or a view returned can be appended elsewhere without loss. As
//! text it passes through JavaScript unchanged.
//!
//! Example, of a part: `{"template":[["type",0,"thinking"],["thinking",5],["signature",0,"c2ln"]]}`.

use crate::error::{Error, Result};
use crate::json::{ArrayWriter, Json, JsonRef, JsonStr, ObjectWriter};
use crate::message::{
    AnswerMaker, AnswerMeta, Dialect, Media, Message, Part, PartBody, PrefixMark, TemplateSlot, WireTemplate,
};
use crate::tool::{Arguments, ToolInvocation, Window};
use std::borrow::Cow;

/// Maximum nesting depth of a template. The deepest one of a dialect has three levels.
const MAX_TEMPLATE_DEPTH: u32 = 16;

/// The data of a message.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub(super) struct MessageData {
    pub dialect: Option<Dialect>,
    pub template: Option<WireTemplate>,
    pub response_id: Option<String>,
    pub maker: Option<AnswerMaker>,
    pub prefix: Option<PrefixMark>,
    pub late_results: Vec<String>,
}

/// The data of a call.
#[derive(Clone, Debug, Default, PartialEq)]
#[allow(missing_docs)]
pub(super) struct CallData {
    pub template: Option<WireTemplate>,
    /// True if the arguments were received as a value, not as text.
    pub is_value: bool,
    pub exact_arguments: Option<JsonStr>,
    pub result_dialect: Option<Dialect>,
    pub result_template: Option<WireTemplate>,
    pub exact_content: Option<Json>,
    pub freshness: Option<Window>,
    pub append_freshness: Option<Window>,
    pub stored_at: Option<u64>,
    pub stored_during_run: bool,
    pub is_deferred: bool,
    pub has_persist: bool,
    pub is_async: bool,
    pub has_redacted_result: bool,
    /// True if the call is redacted beside its result.
    pub is_redacted: bool,
}

/// Writes the data of a message as the member `dialectData`, if it has any.
pub(super) fn write_message_data(out: &mut ObjectWriter<'_>, message: &Message) {
    let answer = message.answer.as_deref();
    write_data(out, |data| {
        write_dialect(data, "dialect", message.dialect);
        write_template(data, "template", message.template.as_ref());
        if let Some(id) = answer.and_then(|answer| answer.response_id.as_deref()) {
            data.text("responseId", id);
        }
        if let Some(maker) = answer.and_then(|answer| answer.maker.as_ref()) {
            data.object("maker", |out| {
                out.text_or_null("host", maker.host.as_deref()).text_or_null("model", maker.model.as_deref());
            });
        }
        if let Some(prefix) = answer.and_then(|answer| answer.prefix.as_ref()) {
            data.object("prefix", |out| {
                out.number("instructions", prefix.instructions)
                    .number("tools", prefix.tools)
                    .number("items", prefix.items)
                    .bool("isFiltered", prefix.is_filtered)
                    .bool("hasProvided", prefix.has_provided);
            });
        }
        if !message.late_results.is_empty() {
            data.array("lateResults", |list| message.late_results.iter().for_each(|id| list.text(id)));
        }
    });
}

/// Writes the data of a part that is no call, if it has any.
pub(super) fn write_part_data(out: &mut ObjectWriter<'_>, part: &Part) {
    write_data(out, |data| {
        write_template(data, "template", part.template.as_ref());
        write_exact_body(data, &part.body);
    });
}

/// Writes the data of a call, if it has any.
pub(super) fn write_call_data(out: &mut ObjectWriter<'_>, call: &ToolInvocation) {
    write_data(out, |data| {
        write_template(data, "template", call.template.as_ref());
        match &call.arguments {
            Arguments::Value(_) => drop(data.bool("isValue", true)),
            Arguments::Text(text) if !text.is_kept_by_javascript() => drop(data.token("exactArguments", text)),
            Arguments::Text(_) => {}
        }
        if let Some(result) = &call.result {
            write_dialect(data, "resultDialect", result.dialect);
            write_template(data, "resultTemplate", result.template.as_ref());
            if !result.content.view().javascript_form().is_kept {
                data.json("exactContent", result.content.view());
            }
        }
        write_window(data, "freshness", call.freshness);
        write_window(data, "appendFreshness", call.append_freshness);
        if call.finished_at.or(call.started_at).is_none() {
            data.number("storedAt", call.stored_at);
        }
        let flags = [
            ("storedDuringRun", call.stored_during_run),
            ("isDeferred", call.is_deferred),
            ("hasPersist", call.has_persist),
            ("isAsync", call.is_async),
            ("hasRedactedResult", call.has_redacted_result),
            ("isRedacted", call.redacted && call.has_redacted_result),
        ];
        for (key, _) in flags.into_iter().filter(|(_, value)| *value) {
            data.bool(key, true);
        }
    });
}

fn write_data(out: &mut ObjectWriter<'_>, fill: impl FnOnce(&mut ObjectWriter<'_>)) {
    let data = ObjectWriter::build(fill);
    if data.as_str() != "{}" {
        out.text("dialectData", data.as_str());
    }
}

fn write_dialect(data: &mut ObjectWriter<'_>, key: &str, dialect: Option<Dialect>) {
    if let Some(dialect) = dialect {
        data.text(key, dialect.as_str());
    }
}

fn write_window(data: &mut ObjectWriter<'_>, key: &str, window: Option<Window>) {
    match window {
        Some(Window::Millis(millis)) => drop(data.number(key, millis)),
        Some(Window::Always) => drop(data.text(key, "always")),
        None => {}
    }
}

/// Writes a text that JavaScript would write differently, such as one with the escape `\u00e9`: reasoning is bound to
/// what was sent.
fn write_exact_body(data: &mut ObjectWriter<'_>, body: &PartBody) {
    match body {
        PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) if !text.is_kept_by_javascript() => {
            data.token("exact", text);
        }
        PartBody::Opaque(value) | PartBody::Data { value, .. } if !value.view().javascript_form().is_kept => {
            data.json("exact", value.view());
        }
        PartBody::Image(media) | PartBody::File(media) => {
            let members = [("exactUrl", &media.url), ("exactData", &media.data), ("exactFileId", &media.file_id)];
            for (key, text) in members {
                if let Some(text) = text.as_ref().filter(|text| !text.is_kept_by_javascript()) {
                    data.token(key, text);
                }
            }
        }
        _ => {}
    }
}

/// Writes a template as a list of members: the key, the number of the slot's kind, and what the slot contains.
fn write_template(data: &mut ObjectWriter<'_>, key: &str, template: Option<&WireTemplate>) {
    if let Some(template) = template {
        data.array(key, |list| write_members(list, template));
    }
}

fn write_members(list: &mut ArrayWriter<'_>, template: &WireTemplate) {
    for (key, slot) in &template.0 {
        let mut member = ArrayWriter::new(list.item());
        member.item().push_str(key.token());
        let (kind, value) = match slot {
            TemplateSlot::Raw(value) => ("0", Some(Cow::Borrowed(value.as_str()))),
            TemplateSlot::Part(index) => ("1", Some(Cow::Owned(index.to_string()))),
            TemplateSlot::Parts => ("2", None),
            TemplateSlot::ResultsThenParts => ("3", None),
            TemplateSlot::Calls => ("4", None),
            TemplateSlot::Text => ("5", None),
            TemplateSlot::Id => ("6", None),
            TemplateSlot::Name => ("7", None),
            TemplateSlot::Arguments => ("8", None),
            TemplateSlot::Content => ("9", None),
            TemplateSlot::Object(inner) => {
                member.item().push_str("10");
                let mut members = ArrayWriter::new(member.item());
                write_members(&mut members, inner);
                members.end();
                member.end();
                continue;
            }
        };
        member.item().push_str(kind);
        if let Some(value) = value {
            member.item().push_str(&value);
        }
        member.end();
    }
}

fn invalid() -> Error {
    Error::invalid("`dialectData` is not what `messages` or a view has returned; pass it unchanged, or leave it out")
}

/// The text of a member `dialectData`, which is JSON.
pub(super) struct DataText<'a>(Cow<'a, str>);

impl<'a> DataText<'a> {
    /// Returns the data of a message, a part or a call; `None` if it has none.
    ///
    /// # Errors
    /// `invalid_input`.
    pub fn of(object: JsonRef<'a>) -> Result<Option<Self>> {
        let Some(value) = object.find("dialectData") else { return Ok(None) };
        value.as_text().map(|text| Some(Self(text))).ok_or_else(invalid)
    }

    fn parse(&self) -> Result<JsonRef<'_>> {
        JsonRef::parse(&self.0).ok().filter(|data| data.is_object()).ok_or_else(invalid)
    }

    /// Reads the data of a message.
    ///
    /// # Errors
    /// `invalid_input`.
    pub fn read_message(&self) -> Result<MessageData> {
        let data = self.parse()?;
        let text = |object: JsonRef<'_>, key: &str| object.text(key).map(Cow::into_owned);
        let hash = |prefix: JsonRef<'_>, key: &str| prefix.find(key).and_then(JsonRef::as_u64).ok_or_else(invalid);
        let flag = |prefix: JsonRef<'_>, key: &str| prefix.find(key).and_then(JsonRef::as_bool).unwrap_or(false);
        let prefix = data.find("prefix").map(|prefix| {
            Ok::<_, Error>(PrefixMark {
                instructions: hash(prefix, "instructions")?,
                tools: hash(prefix, "tools")?,
                items: hash(prefix, "items")?,
                is_filtered: flag(prefix, "isFiltered"),
                has_provided: flag(prefix, "hasProvided"),
            })
        });
        let late_results = data.find("lateResults").into_iter().flat_map(JsonRef::items);
        Ok(MessageData {
            dialect: read_dialect(data, "dialect")?,
            template: read_template(data, "template")?,
            response_id: text(data, "responseId"),
            maker: data
                .find("maker")
                .map(|maker| AnswerMaker { host: text(maker, "host"), model: text(maker, "model") }),
            prefix: prefix.transpose()?,
            late_results: late_results.filter_map(|id| id.as_text().map(Cow::into_owned)).collect(),
        })
    }

    /// Adds the data to a part that was read from the public members. An exact text that is another one than the part's
    /// is left out: the part was changed.
    ///
    /// # Errors
    /// `invalid_input`.
    pub fn complete_part(&self, part: &mut Part) -> Result<()> {
        let data = self.parse()?;
        part.template = read_template(data, "template")?;
        match &mut part.body {
            PartBody::Text(text) | PartBody::Reasoning(text) | PartBody::Refusal(text) => restore(text, data, "exact"),
            PartBody::Opaque(value) | PartBody::Data { value, .. } => {
                if let Some(exact) = data
                    .get("exact")
                    .filter(|exact| exact.javascript_form().hash == value.view().javascript_form().hash)
                {
                    *value = exact.to_owned();
                }
            }
            PartBody::Image(Media { url, data: bytes, file_id, .. })
            | PartBody::File(Media { url, data: bytes, file_id, .. }) => {
                for (text, key) in [(url, "exactUrl"), (bytes, "exactData"), (file_id, "exactFileId")] {
                    text.as_mut().into_iter().for_each(|text| restore(text, data, key));
                }
            }
            PartBody::ToolCall { .. } => {}
        }
        Ok(())
    }

    /// Reads the data of a call.
    ///
    /// # Errors
    /// `invalid_input`.
    pub fn read_call(&self) -> Result<CallData> {
        let data = self.parse()?;
        let flag = |key: &str| data.find(key).and_then(JsonRef::as_bool).unwrap_or(false);
        Ok(CallData {
            template: read_template(data, "template")?,
            is_value: flag("isValue"),
            exact_arguments: data.json_str("exactArguments"),
            result_dialect: read_dialect(data, "resultDialect")?,
            result_template: read_template(data, "resultTemplate")?,
            exact_content: data.get("exactContent").map(JsonRef::to_owned),
            freshness: read_window(data, "freshness")?,
            append_freshness: read_window(data, "appendFreshness")?,
            stored_at: data.find("storedAt").and_then(JsonRef::as_u64),
            stored_during_run: flag("storedDuringRun"),
            is_deferred: flag("isDeferred"),
            has_persist: flag("hasPersist"),
            is_async: flag("isAsync"),
            has_redacted_result: flag("hasRedactedResult"),
            is_redacted: flag("isRedacted"),
        })
    }
}

impl CallData {
    /// Returns the arguments as they were received, if `arguments` has the same text.
    pub fn exact(&self, arguments: Arguments) -> Arguments {
        let text = arguments.text();
        if self.is_value {
            return Json::parse(&text).map_or(arguments.clone(), Arguments::Value);
        }
        match &self.exact_arguments {
            Some(exact) if exact.decode() == text => Arguments::Text(exact.clone()),
            _ => arguments,
        }
    }

    /// Returns the content as it was received, if JavaScript shows it as `content`.
    pub fn exact_result(&self, content: Json) -> Json {
        match &self.exact_content {
            Some(exact) if exact.view().javascript_form().hash == content.view().javascript_form().hash => {
                exact.clone()
            }
            _ => content,
        }
    }
}

impl MessageData {
    /// Returns the metadata of an answer, completed; `None` if there is none.
    pub fn complete_answer(&self, answer: AnswerMeta) -> Option<Box<AnswerMeta>> {
        let Self { response_id, maker, prefix, .. } = self.clone();
        let answer = AnswerMeta { response_id, maker, prefix, ..answer };
        (answer != AnswerMeta::default()).then(|| Box::new(answer))
    }
}

fn restore(text: &mut JsonStr, data: JsonRef<'_>, key: &str) {
    if let Some(exact) = data.json_str(key).filter(|exact| exact.decode() == text.decode()) {
        *text = exact;
    }
}

fn read_dialect(data: JsonRef<'_>, key: &str) -> Result<Option<Dialect>> {
    let name = data.text(key);
    name.map(|name| Dialect::from_name(&name).ok_or_else(invalid)).transpose()
}

fn read_window(data: JsonRef<'_>, key: &str) -> Result<Option<Window>> {
    let Some(value) = data.find(key) else { return Ok(None) };
    match value.as_u64() {
        Some(millis) => Ok(Some(Window::Millis(millis))),
        None if value.is_text("always") => Ok(Some(Window::Always)),
        None => Err(invalid()),
    }
}

fn read_template(data: JsonRef<'_>, key: &str) -> Result<Option<WireTemplate>> {
    data.find(key).map(|members| read_members(members, 0)).transpose()
}

fn read_members(members: JsonRef<'_>, depth: u32) -> Result<WireTemplate> {
    if depth > MAX_TEMPLATE_DEPTH {
        return Err(invalid());
    }
    let read = |member: JsonRef<'_>| {
        let mut items = member.items();
        let key = items.next().and_then(JsonRef::as_json_str).ok_or_else(invalid)?;
        let kind = items.next().and_then(JsonRef::as_u64).ok_or_else(invalid)?;
        let mut value = || items.next().ok_or_else(invalid);
        let slot = match kind {
            0 => TemplateSlot::Raw(value()?.to_owned()),
            1 => TemplateSlot::Part(value()?.as_u64().and_then(|index| u32::try_from(index).ok()).ok_or_else(invalid)?),
            2 => TemplateSlot::Parts,
            3 => TemplateSlot::ResultsThenParts,
            4 => TemplateSlot::Calls,
            5 => TemplateSlot::Text,
            6 => TemplateSlot::Id,
            7 => TemplateSlot::Name,
            8 => TemplateSlot::Arguments,
            9 => TemplateSlot::Content,
            10 => TemplateSlot::Object(read_members(value()?, depth + 1)?),
            _ => return Err(invalid()),
        };
        Ok((key, slot))
    };
    Ok(WireTemplate(members.items().map(read).collect::<Result<_>>()?))
}

#[cfg(test)]
mod tests;
