//! Decodes bodies and answers of any dialect.

use super::foreign_format::{ForeignFormat, body_format, refused, reject_foreign};
use super::neutral::text_or_json;
use super::registry::{named, spec};
use super::rules::Fields;
use crate::error::{Error, Result};
use crate::history::{Incoming, IncomingMessage};
use crate::json::{Json, JsonKind, JsonRef, JsonStr};
use crate::message::{Dialect, Message, Part, Role};
use crate::replay::ExtraContent;
use crate::tool::ToolResult;

/// Decodes a body, or a bare list of its messages.
///
/// # Errors
/// `invalid_input` when it is neither, and when an item is none of the dialect's.
pub fn decode_body(dialect: Dialect, body: JsonRef<'_>) -> Result<Vec<Incoming>> {
    let named = named(dialect);
    let spec = named.spec;
    let name = spec.items.list;
    let own = spec.sdk_request.and_then(|api_request| api_request(body));
    let body = own.as_ref().map_or(body, Json::view);
    let mut items = Vec::new();
    let list = if body.kind() == JsonKind::Array { Some(body) } else { body.get(name) };
    items.extend(spec.system.as_ref().and_then(|system| (system.decode)(body)));
    if let (Some(decode_text), Some(text)) = (spec.items.decode_text, list.and_then(JsonRef::as_json_str)) {
        items.push(decode_text(text));
        return Ok(items);
    }
    let alone = list.filter(|list| spec.items.takes_single_item && list.is_object());
    let Some(list) = list.filter(|list| alone.is_some() || list.kind() == JsonKind::Array) else {
        if body.get(name).is_none() && (spec.body.may_lack_list)(body) {
            return Ok(items);
        }
        if let Some(format) = body_format(&named.formats, &Fields::of(body)) {
            return Err(refused(&spec.items, format, "The body"));
        }
        return Err(Error::invalid(format!(
            "a body of the dialect \"{}\" is an object with a list `{name}`",
            dialect.as_str()
        )));
    };
    let mut wires: Vec<JsonRef<'_>> = list.items().collect();
    wires.extend(alone);
    reject_foreign(&named.formats, &wires)?;
    spec.messages.decode(&wires, &mut items);
    if let Some(Incoming::Unknown(item)) = items.iter().find(|item| matches!(item, Incoming::Unknown(_))) {
        let at = wires.iter().position(|wire| wire.as_raw() == item.as_str()).unwrap_or_default();
        return Err(refused(&spec.items, ForeignFormat::Unknown, &format!("{name}[{at}]")));
    }
    Ok(items)
}

/// Converts a request in the shape of a provider's SDK to the shape of its API; none if it has that shape already.
#[must_use]
pub fn api_request(dialect: Dialect, body: JsonRef<'_>) -> Option<Json> {
    spec(dialect).sdk_request.and_then(|api_request| api_request(body))
}

/// Decodes an answer of a dialect: what an assembler made, one wire message or a list of items.
#[must_use]
pub fn decode_answer(dialect: Dialect, wire: JsonRef<'_>) -> Option<IncomingMessage> {
    let codec = spec(dialect).messages;
    let mut items = Vec::new();
    match wire.kind() {
        JsonKind::Array => codec.decode_answer(&wire.items().collect::<Vec<_>>(), &mut items),
        _ => codec.decode_answer(&[wire], &mut items),
    }
    items.into_iter().find_map(|item| match item {
        Incoming::Message(message) if message.role == Role::Assistant => Some(message),
        _ => None,
    })
}

/// Returns what an answer contains in a form that only its own dialect has, if that dialect accepts an answer of
/// nothing else.
#[must_use]
pub fn extra_content(message: &Message) -> ExtraContent {
    let dialect = message.dialect.filter(|_| message.role == Role::Assistant);
    dialect.map_or(ExtraContent::None, |dialect| spec(dialect).messages.extra_content(message))
}

/// Decodes the blocks of a message's or a result's content; one that is an object is a block itself.
#[must_use]
pub fn blocks_of(dialect: Dialect, content: JsonRef<'_>) -> Vec<Part> {
    let codec = spec(dialect).messages;
    if content.is_object() {
        return vec![codec.decode_block(content)];
    }
    content.items().map(|block| codec.decode_block(block)).collect()
}

/// Decodes the content of a result for any dialect: texts, and images and files. A result of no dialect is one text.
pub(crate) fn decode_result(result: &ToolResult) -> (Vec<JsonStr>, Vec<Part>) {
    match result.dialect {
        Some(dialect) => spec(dialect).messages.decode_result(result),
        None => (vec![text_or_json(&result.content)], Vec::new()),
    }
}
