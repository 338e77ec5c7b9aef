//! Sources in tool results: numbered items, which an answer cites as `[source3]` (R8, R9).
//!
//! A source list is a JSON array in which some object has a `source_number`, for example
//! `[{"source_number":3,"content":"Berlin is …"}]`. The list is the result itself, its text, or the text of one of its
//! blocks. A list inside an object is no source list.

use super::entry::HistoryEntry;
use crate::json::{ArrayWriter, Json, JsonKind, JsonRef, JsonStr, ObjectWriter};
use crate::tool::ToolResult;

const NUMBER: &str = "source_number";

/// The highest number that is exact in JavaScript.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// Returns the number of a source item, or `None` for any other value.
#[must_use]
pub fn source_number(item: JsonRef<'_>) -> Option<u64> {
    let number = item.get(NUMBER)?;
    // Python's JSON encoder may write the number 1 as `true`.
    number.as_u64().or_else(|| number.as_bool().map(u64::from)).filter(|number| *number <= MAX_NUMBER)
}

/// Calls `change` with every source list of a result and replaces the list with what it returns: a JSON array, or a
/// sentence. Returns the new content, or `None` if nothing changed.
pub fn change_sources(result: &ToolResult, change: &mut dyn FnMut(JsonRef<'_>) -> Option<String>) -> Option<Json> {
    let content = result.content.view();
    // Most results contain no source and cost only this search.
    if !contains_source_key(content.as_raw()) {
        return None;
    }
    if let Some(text) = content.as_text() {
        let changed = change_text(&text, change)?;
        return is_exact(content, &text).then(|| JsonStr::new(&changed).to_json());
    }
    if is_list(content) {
        let changed = change(content)?;
        return Some(if changed.starts_with('[') { Json::trusted(changed) } else { JsonStr::new(&changed).to_json() });
    }
    // A list of content blocks in the dialect's format.
    result.dialect?;
    let mut is_changed = false;
    let mut out = String::new();
    let mut array = ArrayWriter::new(&mut out);
    for block in content.items() {
        let changed = block.get("text").and_then(|token| {
            let text = token.as_text()?;
            change_text(&text, change).filter(|_| is_exact(token, &text))
        });
        match changed {
            None => array.item().push_str(block.as_raw()),
            Some(text) => {
                is_changed = true;
                let mut object = ObjectWriter::new(array.item());
                for (key, value) in block.entries() {
                    let out = object.key_token(key.as_raw());
                    if key.is_text("text") {
                        out.push_str(JsonStr::new(&text).token())
                    } else {
                        out.push_str(value.as_raw())
                    }
                }
                object.end();
            }
        }
    }
    array.end();
    is_changed.then(|| Json::trusted(out))
}

fn change_text(text: &str, change: &mut dyn FnMut(JsonRef<'_>) -> Option<String>) -> Option<String> {
    if !contains_source_key(text) {
        return None;
    }
    let value = JsonRef::parse(text).ok()?;
    if is_list(value) { change(value) } else { None }
}

/// Returns true if `text` contains [`NUMBER`]. Every result that is read from a store is searched, so this looks for
/// the rarest byte first.
fn contains_source_key(text: &str) -> bool {
    let Some((before, after)) = NUMBER.split_once('_') else { return false };
    let at_mark = |at: usize| {
        text.get(..at).is_some_and(|head| head.ends_with(before))
            && text.get(at + 1..).is_some_and(|tail| tail.starts_with(after))
    };
    text.match_indices('_').any(|(at, _)| at_mark(at))
}

/// Returns true if decoding and encoding `text` loses nothing. An unpaired surrogate decodes to U+FFFD and would be
/// lost.
fn is_exact(token: JsonRef<'_>, text: &str) -> bool {
    let read = text.matches('\u{fffd}').count();
    let written =
        || token.as_raw().matches('\u{fffd}').count() + token.as_raw().to_ascii_lowercase().matches("\\ufffd").count();
    read == 0 || read == written()
}

fn is_list(value: JsonRef<'_>) -> bool {
    value.items().any(|item| item.get(NUMBER).is_some())
}

/// Returns the highest source number in the results of these entries.
#[must_use]
pub fn highest_source(entries: &[HistoryEntry]) -> Option<u64> {
    let mut highest = None;
    for entry in entries {
        if let Some(result) = entry.result() {
            highest = scan_sources(result).1.max(highest);
        }
    }
    highest
}

/// Returns whether a result has a source list, and the highest number in it.
pub(super) fn scan_sources(result: &ToolResult) -> (bool, Option<u64>) {
    let (mut has_sources, mut highest) = (false, None);
    change_sources(result, &mut |list| {
        has_sources = true;
        highest = list.items().filter_map(source_number).max().max(highest);
        None
    });
    (has_sources, highest)
}

/// Calls `visit` with the number and the item of each source of a result that has a `content` string.
pub(super) fn visit_sources(result: &ToolResult, visit: &mut dyn FnMut(u64, Json)) {
    change_sources(result, &mut |list| {
        for item in list.items() {
            let has_text = item.get("content").is_some_and(|text| text.kind() == JsonKind::String);
            if let Some(number) = source_number(item).filter(|_| has_text) {
                visit(number, with_id(item));
            }
        }
        None
    });
}

/// Returns a source item with its `content_id` copied to `id`, unless it has an `id`.
fn with_id(item: JsonRef<'_>) -> Json {
    let id = item.get("content_id").filter(|_| item.get("id").is_none());
    let Some(id) = id else { return item.to_owned() };
    let mut text = String::from("{\"id\":");
    text.push_str(id.as_raw());
    text.push(',');
    text.push_str(item.as_raw().get(1..).unwrap_or("}"));
    Json::trusted(text)
}
