//! Messages in an application's own words: no dialect, its own ids and times (R57).

use super::{Entry, History, Incoming, IncomingCall, IncomingMessage, IncomingPart, Joined, Origin, join};
use crate::clock::Ms;
use crate::error::{Error, Result};
use crate::id::{IdMap, IdSource};
use crate::json::{Json, JsonRef, JsonStr, Kind};
use crate::message::{Media, Part, PartBody, Role};
use crate::tool::{Arguments, InvocationStatus, ToolResult};
use std::borrow::Cow;

/// One message to be appended, in the shape of the TypeScript type of that name.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct NewMessage {
    pub id: Option<String>,
    pub role: Role,
    pub created_at: Option<Ms>,
    pub metadata: Option<Json>,
    pub parts: Vec<NewPart>,
}

/// A piece of it.
#[derive(Clone, Debug, PartialEq)]
pub enum NewPart {
    /// Anything but a call.
    Part(Part),
    /// A call, with its result where there is one.
    Call(NewCall),
}

/// A call that was made elsewhere.
#[derive(Clone, Debug, PartialEq)]
#[allow(missing_docs)]
pub struct NewCall {
    /// May be empty: then the call gets an id of its own when it goes out.
    pub call_id: String,
    pub name: String,
    pub arguments: Arguments,
    pub result: Option<ToolResult>,
    pub finished_at: Option<Ms>,
}

/// Reads a part that is text, an image, a file, reasoning or an application's own data.
///
/// # Errors
/// `invalid_input`, saying what is missing.
pub fn read_part(part: JsonRef<'_>) -> Result<Part> {
    let text = |kind: &str| {
        part.json_str("text").ok_or_else(|| Error::invalid(format!("a part of type \"{kind}\" has a string `text`")))
    };
    let word = |key: &str| part.text(key).map(Cow::into_owned);
    let kind = part.text("type").unwrap_or_default();
    Ok(Part::from(match kind.as_ref() {
        "text" => PartBody::Text(text("text")?),
        "reasoning" => PartBody::Reasoning(text("reasoning")?),
        "image" | "file" => {
            let media = Media {
                url: part.json_str("url"),
                data: part.json_str("data"),
                file_id: part.json_str("fileId"),
                media_type: word("mediaType"),
                name: word("name"),
            };
            if media.url.is_none() && media.data.is_none() && media.file_id.is_none() {
                return Err(Error::invalid(format!("a part of type \"{kind}\" has `url`, `data` or `fileId`")));
            }
            if kind == "image" { PartBody::Image(media) } else { PartBody::File(media) }
        }
        "data" => PartBody::Data {
            name: word("name").ok_or_else(|| Error::invalid("a part of type \"data\" has a `name`"))?,
            value: part.get("value").map_or_else(|| Json::trusted("null".into()), JsonRef::to_owned),
        },
        other => {
            return Err(Error::invalid(format!(
                "a part is \"text\", \"image\", \"file\", \"reasoning\", \"data\" or \"tool\", not \"{other}\""
            )));
        }
    }))
}

impl NewMessage {
    /// Reads a list of them.
    ///
    /// # Errors
    /// `invalid_input`, naming the message by its place.
    pub fn read_all(list: JsonRef<'_>) -> Result<Vec<Self>> {
        if list.kind() != Kind::Array {
            return Err(Error::invalid("messages are a list; name the dialect to append a body of one"));
        }
        let mut messages = Vec::new();
        for message in list.items() {
            messages.push(Self::read(message).map_err(|mut error| {
                error.message = format!("message {}: {}", messages.len(), error.message);
                error
            })?);
        }
        Ok(messages)
    }

    fn read(message: JsonRef<'_>) -> Result<Self> {
        let role = message
            .text("role")
            .and_then(|name| Role::from_name(&name))
            .ok_or_else(|| Error::invalid("`role` is \"system\", \"developer\", \"user\" or \"assistant\""))?;
        let Some(list) = message.get("parts").filter(|parts| parts.kind() == Kind::Array) else {
            return Err(Error::invalid("`parts` is a list; name the dialect to append a body of one"));
        };
        let id = message.text("id").map(Cow::into_owned);
        if id.as_deref() == Some("") {
            return Err(Error::invalid("`id` is empty; leave it out to be given one"));
        }
        Ok(Self {
            id,
            role,
            created_at: time(message, "createdAt")?,
            metadata: message.find("metadata").map(JsonRef::to_owned),
            parts: read_parts(list, role)?,
        })
    }
}

fn read_parts(list: JsonRef<'_>, role: Role) -> Result<Vec<NewPart>> {
    let mut parts = Vec::new();
    for part in list.items() {
        let is_call = part.get("type").is_some_and(|kind| kind.is_text("tool"));
        if is_call && role != Role::Assistant {
            return Err(Error::invalid("a part of type \"tool\" is the assistant's"));
        }
        parts.push(if is_call { NewPart::Call(read_call(part)?) } else { NewPart::Part(read_part(part)?) });
    }
    Ok(parts)
}

fn read_call(part: JsonRef<'_>) -> Result<NewCall> {
    let name = part.text("name").filter(|name| !name.is_empty());
    let result = part.get("result").map(|content| ToolResult {
        content: content.to_owned(),
        is_error: part.get("isError").and_then(JsonRef::as_bool).unwrap_or(false),
        dialect: None,
        shape: None,
    });
    Ok(NewCall {
        call_id: part.text("callId").unwrap_or_default().into_owned(),
        name: name.ok_or_else(|| Error::invalid("a part of type \"tool\" has a `name`"))?.into_owned(),
        arguments: match part.find("arguments") {
            // JSON text, as a model writes it.
            Some(arguments) => {
                arguments.as_json_str().map_or_else(|| Arguments::Value(arguments.to_owned()), Arguments::Text)
            }
            None => Arguments::Text(JsonStr::new("{}")),
        },
        result,
        finished_at: time(part, "finishedAt")?,
    })
}

fn time(object: JsonRef<'_>, key: &str) -> Result<Option<Ms>> {
    match object.find(key) {
        None => Ok(None),
        Some(value) => value
            .as_u64()
            .map(Some)
            .ok_or_else(|| Error::invalid(format!("`{key}` is whole milliseconds since the epoch"))),
    }
}

/// Joins messages in an application's own words to `history`. What follows a result is another answer of the model, and
/// becomes a message of its own: `m`, then `m.2`.
///
/// # Errors
/// `invalid_input` for an id that the session has already: nothing is appended twice.
pub fn join_new(history: &History, messages: Vec<NewMessage>, origin: &Origin, ids: &dyn IdSource) -> Result<Joined> {
    let mut origin = origin.clone();
    let mut incoming = Vec::new();
    // In the order of the messages and of their calls: what the join does not know of.
    let mut facts = Vec::new();
    let mut outcomes = Vec::new();
    let mut given: IdMap<()> = IdMap::with_hasher(history.seed());
    for message in messages {
        let id = match message.id {
            Some(id) => {
                if history.message(&id).is_some() || given.insert(id.clone(), ()).is_some() {
                    return Err(Error::invalid(format!("the session has a message of the id \"{id}\" already")));
                }
                id
            }
            None => ids.new_id(),
        };
        for (at, parts) in answers(message.parts, &mut outcomes).into_iter().enumerate() {
            origin.message_ids.push(if at == 0 { id.clone() } else { format!("{id}.{}", at + 1) });
            facts.push((message.created_at, message.metadata.clone()));
            incoming.push(Incoming::Message(IncomingMessage { role: message.role, parts, dialect: None, shape: None }));
        }
    }
    let mut joined = join(None, history, incoming, &origin, ids);
    let (mut facts, mut outcomes) = (facts.into_iter(), outcomes.into_iter());
    for entry in &mut joined.entries {
        match entry {
            Entry::Message(message) => {
                let (created_at, metadata) = facts.next().unwrap_or_default();
                message.created_at = created_at.unwrap_or(message.created_at);
                message.metadata = metadata;
            }
            Entry::Invocation(call) => {
                let Some((Some(result), at)) = outcomes.next() else { continue };
                call.status = if result.is_error { InvocationStatus::Error } else { InvocationStatus::Ok };
                call.finished_at = Some(at.unwrap_or(origin.at));
                call.result = Some(result);
            }
            Entry::Result(_) | Entry::SetAside(_) => {}
        }
    }
    Ok(joined)
}

/// The parts of each answer, in order. An answer ends before what is said after a result.
fn answers(parts: Vec<NewPart>, outcomes: &mut Vec<(Option<ToolResult>, Option<Ms>)>) -> Vec<Vec<IncomingPart>> {
    let mut answers: Vec<Vec<IncomingPart>> = vec![Vec::new()];
    let mut answered = false;
    for part in parts {
        let part = match part {
            NewPart::Part(part) => {
                // What is only shown has no place in the order of the wire.
                if answered && !matches!(part.body, PartBody::Data { .. }) {
                    answers.push(Vec::new());
                    answered = false;
                }
                IncomingPart::Part(part)
            }
            NewPart::Call(call) => {
                answered |= call.result.is_some();
                outcomes.push((call.result, call.finished_at));
                IncomingPart::Call(IncomingCall {
                    call_id: call.call_id,
                    name: call.name,
                    arguments: call.arguments,
                    shape: None,
                })
            }
        };
        if let Some(last) = answers.last_mut() {
            last.push(part);
        }
    }
    answers
}

#[cfg(test)]
mod tests;
