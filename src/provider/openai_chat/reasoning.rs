//! Reasoning in the members that servers give it, and answers without it.

use super::decode::names_reasoning;
use super::variant::ChatVariant;
use crate::json::{ArrayWriter, JsonKind, JsonRef, ObjectWriter};
use crate::provider::request::Settings;
use crate::provider::spec::ReasoningFormat;

/// The member of a call in which Google's endpoint keeps its signature:
/// `{"extra_content":{"google":{"thought_signature":"…"}}}`.
const CALL_SIGNATURE: &str = "extra_content";

impl ReasoningFormat for ChatVariant {
    fn is_of_answer(&self, item: JsonRef<'_>) -> bool {
        item.has_text("role", "assistant")
    }

    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str> {
        let is_reasoning = |(key, value): &(JsonRef<'a>, JsonRef<'a>)| {
            key.as_text().is_some_and(|key| names_reasoning(&key)) && !is_blank(*value)
        };
        let chunk = || item.get("content").unwrap_or_default().items().find(|chunk| is_thinking_chunk(*chunk));
        let signature = || calls_of(item).find_map(|call| call.get(CALL_SIGNATURE));
        let member = item.entries().find(is_reasoning).map(|(_, value)| value);
        member.or_else(chunk).or_else(signature).map(JsonRef::as_raw)
    }

    fn without_reasoning(&self, items: &[JsonRef<'_>], _settings: &Settings) -> Vec<Option<String>> {
        let write = |item: &JsonRef<'_>| {
            if self.is_of_answer(*item) && self.reasoning_of(*item).is_some() {
                without_reasoning(*item)
            } else {
                Some(item.as_raw().to_owned())
            }
        };
        items.iter().map(write).collect()
    }

    fn service_of(&self, host: &str) -> Option<&'static str> {
        (self.service_of)(host)
    }
}

fn calls_of(item: JsonRef<'_>) -> impl Iterator<Item = JsonRef<'_>> {
    item.get("tool_calls").unwrap_or_default().items()
}

fn is_thinking_chunk(chunk: JsonRef<'_>) -> bool {
    chunk.text("type").is_some_and(|kind| names_reasoning(&kind))
}

fn is_blank(value: JsonRef<'_>) -> bool {
    matches!(value.as_raw(), "null" | "\"\"" | "[]")
}

/// Returns a message without its reasoning; `None` if it has nothing else.
fn without_reasoning(item: JsonRef<'_>) -> Option<String> {
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    let mut has_content = false;
    for (key, value) in item.entries() {
        let name = key.as_text().unwrap_or_default();
        if names_reasoning(&name) {
            continue;
        }
        let out = object.key_token(key.as_raw());
        match (&*name, value.kind()) {
            ("content", JsonKind::Array) => {
                has_content |=
                    write_list(out, value, &mut |chunk| (!is_thinking_chunk(chunk)).then(|| chunk.as_raw().to_owned()))
            }
            ("tool_calls", JsonKind::Array) => {
                has_content |= write_list(out, value, &mut |call| {
                    let mut text = String::new();
                    let mut object = ObjectWriter::new(&mut text);
                    object.copy_all(call, CALL_SIGNATURE);
                    object.end();
                    Some(text)
                })
            }
            _ => {
                has_content |= !is_blank(value) && !matches!(&*name, "role" | "name" | "id");
                out.push_str(value.as_raw());
            }
        }
    }
    object.end();
    has_content.then_some(out)
}

/// Writes the items of a list that `write` returns; returns true if there are any.
fn write_list(out: &mut String, list: JsonRef<'_>, write: &mut dyn FnMut(JsonRef<'_>) -> Option<String>) -> bool {
    let mut array = ArrayWriter::new(out);
    let mut is_filled = false;
    for text in list.items().filter_map(write) {
        array.item().push_str(&text);
        is_filled = true;
    }
    array.end();
    is_filled
}
