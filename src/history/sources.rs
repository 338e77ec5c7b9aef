//! Sources in results: lists of items with a number each, which an answer cites as `[source3]` (R8, R9).
//!
//! A list is a JSON array in which some object has a `source_number`: the result itself, the text of it, or the text of one
//! of its blocks. Anything else, objects with lists inside included, is no source list.

use super::{History, HistoryEntry};
use crate::json::{ArrayWriter, Json, JsonRef, JsonStr, Kind, ObjectWriter};
use crate::text::count;
use crate::tool::ToolResult;

const NUMBER: &str = "source_number";

/// Larger numbers are not exact in JavaScript, and nobody counts that far.
const MAX_NUMBER: u64 = (1 << 53) - 1;

/// The number of a source item; none for anything else.
#[must_use]
pub fn source_number(item: JsonRef<'_>) -> Option<u64> {
    let number = item.get(NUMBER)?;
    // Where this list comes from, true is 1.
    number.as_u64().or_else(|| number.as_bool().map(u64::from)).filter(|number| *number <= MAX_NUMBER)
}

/// Shows every source list of a result to `change`. What that gives takes the list's place: a list again, or a sentence.
/// None when nothing was changed.
pub fn change_sources(result: &ToolResult, change: &mut dyn FnMut(JsonRef<'_>) -> Option<String>) -> Option<Json> {
    let content = result.content.view();
    // Most results hold no source, and this is all that they cost.
    if !crate::text::has(content.as_raw(), NUMBER) {
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
    // Blocks, as a dialect has them.
    result.dialect?;
    let mut any = false;
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
                any = true;
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
    any.then(|| Json::trusted(out))
}

fn change_text(text: &str, change: &mut dyn FnMut(JsonRef<'_>) -> Option<String>) -> Option<String> {
    if !crate::text::has(text, NUMBER) {
        return None;
    }
    let value = JsonRef::parse(text).ok()?;
    if is_list(value) { change(value) } else { None }
}

/// Whether a text that is written anew says the same. Half of a surrogate pair would not come back: it reads as U+FFFD, where
/// none is written.
fn is_exact(token: JsonRef<'_>, text: &str) -> bool {
    let read = count(text, "\u{fffd}");
    let written = || count(token.as_raw(), "\u{fffd}") + count(&token.as_raw().to_ascii_lowercase(), "\\ufffd");
    read == 0 || read == written()
}

fn is_list(value: JsonRef<'_>) -> bool {
    value.items().any(|item| item.get(NUMBER).is_some())
}

/// The highest source number in the results of these entries.
#[must_use]
pub fn highest_source(entries: &[HistoryEntry]) -> Option<u64> {
    let mut highest = None;
    for entry in entries {
        if let Some(result) = entry.result() {
            highest = survey(result).1.max(highest);
        }
    }
    highest
}

/// Whether there is a source list in a result, and the highest number in it.
pub(super) fn survey(result: &ToolResult) -> (bool, Option<u64>) {
    let (mut any, mut highest) = (false, None);
    change_sources(result, &mut |list| {
        any = true;
        highest = list.items().filter_map(source_number).max().max(highest);
        None
    });
    (any, highest)
}

impl History {
    /// Shows the sources of all results with their numbers, for a page that says what `[source3]` stands for. An item without a
    /// text of its own is none; of one number twice the later counts. `content_id` is given as `id`, too, where there is no other.
    pub fn each_source(&self, see: &mut dyn FnMut(u64, Json)) {
        let calls = self.sourced().iter().filter_map(|at| self.invocations().get(*at));
        for result in calls.filter_map(|call| call.result.as_ref()) {
            change_sources(result, &mut |list| {
                for item in list.items() {
                    let has_text = item.get("content").is_some_and(|text| text.kind() == Kind::String);
                    if let Some(number) = source_number(item).filter(|_| has_text) {
                        see(number, named(item));
                    }
                }
                None
            });
        }
    }
}

fn named(item: JsonRef<'_>) -> Json {
    let id = item.get("content_id").filter(|_| item.get("id").is_none());
    let Some(id) = id else { return item.to_owned() };
    let mut text = String::from("{\"id\":");
    text.push_str(id.as_raw());
    text.push(',');
    text.push_str(item.as_raw().get(1..).unwrap_or("}"));
    Json::trusted(text)
}
