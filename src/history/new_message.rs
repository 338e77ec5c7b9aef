//! Messages in the neutral format: no dialect, with the application's ids and times (R57).

use super::dialect_data::DataText;
use super::earlier_fields::{EarlierCall, EarlierFields, LateResultIds};
use super::entry::{HistoryEntry, ResultEntry};
use super::fold::History;
use super::incoming::{Incoming, IncomingCall, IncomingMessage, IncomingPart};
use super::join::{JoinBase, JoinedEntries, Origin, join};
use super::new_result::{AppendedResult, NewResult, join_appended_results, read_result, read_time};
use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::id::{IdMap, IdSource};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Media, Part, PartBody, Phase, Role};
use crate::tool::{Arguments, ToolResult};
use std::borrow::Cow;

/// One item of an append.
#[derive(Clone, Debug, PartialEq)]
pub enum NewItem {
    /// A message.
    Message(Box<NewMessage>),
    /// The results in a message of role "tool", and the message's `createdAt`. The message itself is not stored.
    Results(Vec<NewResult>, Option<Ms>),
}

/// A message to append, as the TypeScript type `NewMessage`.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct NewMessage {
    pub id: Option<String>,
    pub role: Role,
    pub created_at: Option<Ms>,
    pub metadata: Option<Json>,
    pub parts: Vec<NewPart>,
    /// What it had where it was stored before.
    pub earlier: EarlierFields,
    /// True if it was one message where it was stored before: it is not split into answers.
    pub is_one_answer: bool,
}

/// A part of a new message.
#[derive(Clone, Debug, PartialEq)]
pub enum NewPart {
    /// Any part but a call.
    Part(Part),
    /// A call, with its result where there is one.
    Call(NewCall),
    /// A part of type "step-start": the parts after it are another answer of the model.
    StepStart,
}

/// A call that was made outside of a run.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct NewCall {
    /// May be empty: then the call is sent with a synthesized id.
    pub call_id: String,
    pub name: String,
    pub arguments: Arguments,
    pub result: Option<ToolResult>,
    pub finished_at: Option<Ms>,
    /// What it had where it was stored before.
    pub earlier: EarlierCall,
}

/// Reads a part of type text, image, file, reasoning or data.
///
/// # Errors
/// `invalid_input`, which names the missing member.
pub fn read_part(part: JsonRef<'_>) -> Result<Part> {
    let text = |kind: &str| {
        part.json_str("text").ok_or_else(|| Error::invalid(format!("a part of type \"{kind}\" has a string `text`")))
    };
    let string = |key: &str| part.text(key).map(Cow::into_owned);
    let kind = part.text("type").unwrap_or_default();
    Ok(Part::from(match kind.as_ref() {
        "text" => PartBody::Text(text("text")?),
        "reasoning" => PartBody::Reasoning(text("reasoning")?),
        "refusal" => PartBody::Refusal(text("refusal")?),
        "image" | "file" => {
            let media = Media {
                url: part.json_str("url"),
                data: part.json_str("data"),
                file_id: part.json_str("fileId"),
                media_type: string("mediaType"),
                name: string("name"),
            };
            if media.url.is_none() && media.data.is_none() && media.file_id.is_none() {
                return Err(Error::invalid(format!("a part of type \"{kind}\" has `url`, `data` or `fileId`")));
            }
            if kind == "image" { PartBody::Image(media) } else { PartBody::File(media) }
        }
        "data" => PartBody::Data {
            name: string("name").ok_or_else(|| Error::invalid("a part of type \"data\" has a `name`"))?,
            value: part.get("value").map_or_else(|| Json::trusted("null".into()), JsonRef::to_owned),
        },
        other => {
            return Err(Error::invalid(format!(
                "a part is \"text\", \"image\", \"file\", \"reasoning\", \"refusal\", \"data\", \"tool\", \"tool_call\", \"opaque\" or \"step-start\", not \"{other}\""
            )));
        }
    }))
}

impl NewItem {
    /// Reads a list of items.
    ///
    /// # Errors
    /// `invalid_input`, which names the message by its index.
    pub fn read_all(list: JsonRef<'_>) -> Result<Vec<Self>> {
        if list.kind() != JsonKind::Array {
            return Err(Error::invalid("messages are a list; name the dialect to append a body of one"));
        }
        let mut items = Vec::new();
        for message in list.items() {
            items.push(Self::read(message).map_err(|mut error| {
                error.message = format!("message {}: {}", items.len(), error.message);
                error
            })?);
        }
        Ok(items)
    }

    fn read(message: JsonRef<'_>) -> Result<Self> {
        let Some(parts) = message.get("parts").filter(|parts| parts.kind() == JsonKind::Array) else {
            return Err(Error::invalid("`parts` is a list; name the dialect to append a body of one"));
        };
        if !message.get("role").is_some_and(|role| role.is_text("tool")) {
            return NewMessage::read(message, parts).map(|message| Self::Message(Box::new(message)));
        }
        let results = parts.items().map(NewResult::read).collect::<Result<Vec<_>>>()?;
        if results.is_empty() {
            return Err(Error::invalid("a message of role \"tool\" needs a part of type \"tool_result\""));
        }
        Ok(Self::Results(results, read_time(message, "createdAt")?))
    }
}

impl NewMessage {
    fn read(message: JsonRef<'_>, parts: JsonRef<'_>) -> Result<Self> {
        let role = message.text("role").and_then(|name| Role::from_name(&name)).ok_or_else(|| {
            Error::invalid("`role` is \"system\", \"developer\", \"user\", \"assistant\" or \"tool\"")
        })?;
        let id = message.text("id").map(Cow::into_owned);
        if id.as_deref() == Some("") {
            return Err(Error::invalid("`id` is empty; leave it out to be given one"));
        }
        let mut earlier = EarlierFields::read(message)?;
        if let Some(dialect) = dialect_of_opaque(parts)? {
            if earlier.data.dialect.is_some_and(|known| known != dialect) {
                return Err(two_dialects());
            }
            earlier.data.dialect = Some(dialect);
        }
        Ok(Self {
            is_one_answer: is_one_answer(id.as_deref(), parts),
            id,
            role,
            created_at: read_time(message, "createdAt")?,
            metadata: message.find("metadata").map(JsonRef::to_owned),
            parts: read_parts(parts, role)?,
            earlier,
        })
    }
}

fn two_dialects() -> Error {
    Error::invalid("the message has opaque parts of two dialects; each belongs to a message of its own")
}

/// Returns the dialect of the opaque parts of a message.
fn dialect_of_opaque(parts: JsonRef<'_>) -> Result<Option<Dialect>> {
    let mut found = None;
    for part in parts.items().filter(|part| part.has_text("type", "opaque")) {
        let dialect = part.text("dialect").and_then(|name| Dialect::from_name(&name)).ok_or_else(|| {
            Error::invalid("a part of type \"opaque\" has the `dialect` of its `value`; append a body to store blocks of a dialect")
        })?;
        if found.is_some_and(|known| known != dialect) {
            return Err(two_dialects());
        }
        found = Some(dialect);
    }
    Ok(found)
}

/// Returns true if the calls of a message say that they are of one answer: stored calls, and those that a view shows in
/// their message.
fn is_one_answer(id: Option<&str>, parts: JsonRef<'_>) -> bool {
    let is_of_message = |call: JsonRef<'_>| id.is_some_and(|id| call.has_text("messageId", id));
    let mut calls = parts.items().filter(|part| part.has_text("type", "tool") || part.has_text("type", "tool_call"));
    calls.all(|part| part.has_text("type", "tool_call") || part.get("call").is_some_and(is_of_message))
}

fn read_parts(list: JsonRef<'_>, role: Role) -> Result<Vec<NewPart>> {
    let mut parts = Vec::new();
    for part in list.items() {
        let kind = part.text("type").unwrap_or_default();
        if matches!(kind.as_ref(), "tool" | "tool_call" | "step-start") && role != Role::Assistant {
            return Err(Error::invalid(format!(
                "a part of type \"{kind}\" is allowed in a message of role \"assistant\" only"
            )));
        }
        parts.push(match kind.as_ref() {
            "tool" => NewPart::Call(read_call(part)?),
            "step-start" => NewPart::StepStart,
            "tool_call" => NewPart::Call(read_stored_call(part)?),
            "tool_result" => {
                return Err(Error::invalid(
                    "a part of type \"tool_result\" is allowed in a message of role \"tool\" only",
                ));
            }
            "text" | "refusal" if role == Role::Assistant => {
                NewPart::Part(completed(Part { phase: read_phase(part)?, ..read_part(part)? }, part)?)
            }
            "opaque" => {
                let value =
                    part.get("value").ok_or_else(|| Error::invalid("a part of type \"opaque\" has a `value`"))?;
                NewPart::Part(completed(Part::from(PartBody::Opaque(value.to_owned())), part)?)
            }
            _ => NewPart::Part(completed(read_part(part)?, part)?),
        });
    }
    Ok(parts)
}

/// Adds the data of the dialect to a part.
fn completed(mut part: Part, given: JsonRef<'_>) -> Result<Part> {
    if let Some(data) = DataText::of(given)? {
        data.complete_part(&mut part)?;
    }
    Ok(part)
}

/// Reads the phase of a text of the model.
fn read_phase(part: JsonRef<'_>) -> Result<Option<Phase>> {
    let Some(value) = part.find("phase") else { return Ok(None) };
    let phase = value.as_text().and_then(|name| Phase::from_name(&name));
    phase
        .map(Some)
        .ok_or_else(|| Error::invalid("`phase` is \"commentary\" or \"final_answer\"; leave it out otherwise"))
}

fn read_call(part: JsonRef<'_>) -> Result<NewCall> {
    if let Some(shown) = part.get("call") {
        let id = shown.text("id").map(Cow::into_owned);
        return read_shown_call(shown, EarlierCall::read(id, shown, part)?);
    }
    // An empty name is kept: a model may have written it.
    let name = part.text("name");
    Ok(NewCall {
        call_id: part.text("callId").unwrap_or_default().into_owned(),
        name: name.ok_or_else(|| Error::invalid("a part of type \"tool\" has a `name`"))?.into_owned(),
        arguments: read_arguments(part),
        result: read_result(part, "result"),
        finished_at: read_time(part, "finishedAt")?,
        earlier: EarlierCall::default(),
    })
}

/// Reads the member `arguments` of a call. A string is JSON text, as a model writes it.
fn read_arguments(call: JsonRef<'_>) -> Arguments {
    match call.find("arguments") {
        Some(given) => given.as_json_str().map_or_else(|| Arguments::Value(given.to_owned()), Arguments::Text),
        None => Arguments::Text(JsonStr::new("{}")),
    }
}

/// Reads a part that `messages` returned.
fn read_stored_call(part: JsonRef<'_>) -> Result<NewCall> {
    if part.text("name").is_none() {
        return Err(Error::invalid(
            "a part of type \"tool_call\" has no `name`, so the call itself is missing; append what `messages` or a view returned, or write the \
             call as a part of type \"tool\"",
        ));
    }
    let id = part.text("invocation").map(Cow::into_owned);
    read_shown_call(part, EarlierCall::read(id, part, part)?)
}

/// Reads the call of a view's part, or a stored one.
fn read_shown_call(call: JsonRef<'_>, earlier: EarlierCall) -> Result<NewCall> {
    let name = call.text("name");
    let written = call.json_str("argumentsText").map(Arguments::Text);
    // The input of a custom tool may be a string that is no JSON text.
    let value =
        || call.find("arguments").filter(|_| earlier.data.is_value).map(|value| Arguments::Value(value.to_owned()));
    let received = written.map(|text| earlier.data.exact(text)).or_else(value);
    let result = call.find("result").and_then(|result| read_result(result, "content"));
    Ok(NewCall {
        call_id: call.text("callId").unwrap_or_default().into_owned(),
        name: name.ok_or_else(|| Error::invalid("the `call` of a part of type \"tool\" has a `name`"))?.into_owned(),
        arguments: received.unwrap_or_else(|| earlier.data.exact(read_arguments(call))),
        result: result.map(|result| ToolResult {
            content: earlier.data.exact_result(result.content),
            dialect: earlier.data.result_dialect,
            template: earlier.data.result_template.clone(),
            ..result
        }),
        finished_at: read_time(call, "finishedAt")?,
        earlier,
    })
}

/// A call's result, when the call finished, and what it had where it was stored before.
type CallOutcome = (Option<ToolResult>, Option<Ms>, EarlierCall);

/// The input of a join, and the fields that the join does not set.
#[derive(Default)]
struct JoinInput {
    incoming: Vec<Incoming>,
    message_ids: Vec<String>,
    /// `createdAt`, `metadata`, and what it had where it was stored before, of each message, in order.
    message_fields: Vec<(Option<Ms>, Option<Json>, EarlierFields)>,
    /// The outcome of each call, in order.
    outcomes: Vec<CallOutcome>,
    /// Results of calls of other messages.
    results: Vec<AppendedResult>,
}

impl JoinInput {
    fn push(&mut self, mut message: NewMessage, id: &str) {
        let parts = std::mem::take(&mut message.parts);
        let answers = answers(parts, &message, &mut self.outcomes);
        let count = answers.len();
        for (at, parts) in answers.into_iter().enumerate() {
            self.message_ids.push(if at == 0 { id.to_owned() } else { format!("{id}.{}", at + 1) });
            let earlier = if count > 1 { message.earlier.of_a_part(at + 1 == count) } else { message.earlier.clone() };
            let (dialect, template) = (earlier.data.dialect, earlier.data.template.clone());
            self.message_fields.push((message.created_at, message.metadata.clone(), earlier));
            self.incoming.push(Incoming::Message(IncomingMessage { role: message.role, parts, dialect, template }));
        }
    }

    fn push_results(&mut self, results: Vec<NewResult>, sent_at: Option<Ms>) {
        let preceding_calls = self.outcomes.len();
        self.results.extend(results.into_iter().map(|result| AppendedResult { result, sent_at, preceding_calls }));
    }

    /// Joins the input. Results of other messages' calls answer calls of the input or of `answered`.
    fn join(
        self,
        base: JoinBase<'_>,
        answered: &History,
        origin: &Origin,
        ids: &dyn IdSource,
    ) -> Result<JoinedEntries> {
        let Self { incoming, message_ids, message_fields, outcomes, results } = self;
        let mut joined = join(base, incoming, &Origin { message_ids, ..origin.clone() }, ids);
        let (mut message_fields, mut outcomes) = (message_fields.into_iter(), outcomes.into_iter());
        let seed = base.history.seed();
        let mut late_ids = LateResultIds { history: base.history, appended: IdMap::with_seed(seed) };
        let mut late: IdMap<Option<ResultEntry>> = IdMap::with_seed(seed);
        for mut entry in std::mem::take(&mut joined.entries) {
            match &mut entry {
                HistoryEntry::Message(message) => {
                    let (created_at, metadata, earlier) = message_fields.next().unwrap_or_default();
                    message.created_at = created_at.unwrap_or(message.created_at);
                    message.metadata = metadata;
                    earlier.apply(message, origin, &late_ids);
                    let placed = message.late_results.iter().filter_map(|id| late.get_mut(id)?.take());
                    joined.entries.extend(placed.map(HistoryEntry::Result));
                }
                HistoryEntry::Invocation(call) => {
                    let (result, at, earlier) = outcomes.next().unwrap_or_default();
                    earlier.apply(call, origin);
                    if let Some(id) = &earlier.id {
                        late_ids.appended.insert(id.clone(), call.id.clone());
                    }
                    if let Some(result) = result {
                        let status = earlier.status_with_result(result.is_error);
                        let finished_at = Some(at.unwrap_or(origin.at));
                        if call.is_deferred {
                            let entry = ResultEntry {
                                finished_at,
                                result: Some(result),
                                status,
                                ..ResultEntry::interrupted(call.id.clone())
                            };
                            late.insert(call.id.clone(), Some(entry));
                        } else {
                            (call.status, call.finished_at, call.result) = (status, finished_at, Some(result));
                        }
                    } else if earlier.id.is_some() {
                        call.finished_at = at;
                    }
                }
                HistoryEntry::Result(_) | HistoryEntry::SetAside(_) => {}
            }
            joined.entries.push(entry);
        }
        joined.entries.extend(late.values_mut().filter_map(Option::take).map(HistoryEntry::Result));
        join_appended_results(answered, &mut joined, results, origin)?;
        Ok(joined)
    }
}

/// Joins messages in the neutral format to `history`. Content after a result or a "step-start" is another answer of the
/// model and becomes a message of its own: `m`, then `m.2`.
///
/// # Errors
/// `invalid_input` for an id that the session has already; else as [`join_results`](super::join_results).
pub fn join_new(history: &History, items: Vec<NewItem>, origin: &Origin, ids: &dyn IdSource) -> Result<JoinedEntries> {
    let mut input = JoinInput::default();
    let mut new_ids: IdMap<()> = IdMap::with_seed(history.seed());
    let mut caller_ids = Vec::new();
    for item in items {
        let message = match item {
            NewItem::Message(message) => *message,
            NewItem::Results(results, at) => {
                input.push_results(results, at);
                continue;
            }
        };
        let id = match &message.id {
            Some(id) => {
                if history.message(id).is_some() || new_ids.insert(id.clone(), ()).is_some() {
                    return Err(Error::invalid(format!(
                        "the session has a message with the id \"{id}\" already; use another id"
                    )));
                }
                caller_ids.push(id.clone());
                id.clone()
            }
            None => ids.new_id(),
        };
        input.push(message, &id);
    }
    let mut joined = input.join(JoinBase::history(history), history, origin, ids)?;
    joined.caller_ids = caller_ids;
    Ok(joined)
}

/// Joins messages as [`join_new`], under new ids, and their results to their own calls only.
///
/// # Errors
/// As [`join_results`](super::join_results).
pub(super) fn join_apart(
    base: JoinBase<'_>,
    items: Vec<NewItem>,
    origin: &Origin,
    ids: &dyn IdSource,
) -> Result<JoinedEntries> {
    let mut input = JoinInput::default();
    for item in items {
        match item {
            NewItem::Message(message) => input.push(*message, &ids.new_id()),
            NewItem::Results(results, at) => input.push_results(results, at),
        }
    }
    input.join(base, &History::new(base.history.seed()), origin, ids)
}

/// Splits parts into answers, in order. An answer ends at a "step-start" and before content that follows a result.
/// The content of a message that was one answer stays together.
fn answers(parts: Vec<NewPart>, message: &NewMessage, outcomes: &mut Vec<CallOutcome>) -> Vec<Vec<IncomingPart>> {
    let mut answers: Vec<Vec<IncomingPart>> = vec![Vec::new()];
    // True if the last answer has content; true if it has a result.
    let (mut has_content, mut answered) = (false, false);
    let mut starts_step = false;
    for part in parts {
        let part = match part {
            NewPart::StepStart => {
                starts_step = has_content;
                continue;
            }
            NewPart::Part(part) => IncomingPart::Part(part),
            NewPart::Call(call) => {
                let is_stored = call.earlier.id.is_some() && call.result.is_none();
                let finished_at = call.finished_at.or(message.created_at.filter(|_| !is_stored));
                let incoming = IncomingCall {
                    id: call.earlier.id.clone(),
                    is_async: call.earlier.data.is_deferred,
                    call_id: call.call_id,
                    name: call.name,
                    arguments: call.arguments,
                    template: call.earlier.data.template.clone(),
                };
                outcomes.push((call.result, finished_at, call.earlier));
                IncomingPart::Call(incoming)
            }
        };
        // A data part is never sent, so it does not end an answer.
        let is_data = matches!(&part, IncomingPart::Part(part) if matches!(part.body, PartBody::Data { .. }));
        let is_call = matches!(part, IncomingPart::Call(_));
        if starts_step || answered && !is_call && !is_data && !message.is_one_answer {
            answers.push(Vec::new());
            (has_content, answered, starts_step) = (false, false, false);
        }
        has_content |= !is_data;
        answered |= is_call && outcomes.last().is_some_and(|(result, ..)| result.is_some());
        if let Some(last) = answers.last_mut() {
            last.push(part);
        }
    }
    answers
}

#[cfg(test)]
mod tests;
