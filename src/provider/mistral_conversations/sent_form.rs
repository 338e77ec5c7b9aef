//! The form in which entries are sent. It is that of recorded requests with `store: false` that Mistral accepted
//! (ruby_llm, cassettes of 2026-09-07): without ids and dates, a call of a tool that Mistral ran as a function call
//! with its result, and a source as a link in the text. vercel/ai and inspect_ai state that ids, executions and sources
//! are refused, and no recorded request has them. Entries are stored as they were received.

use super::entry::{CALL, CALL_ID, EXECUTION, RESULT, TYPES, type_of};
use crate::id::short_name;
use crate::json::{JsonKind, JsonRef, ObjectWriter, push_text};
use crate::provider::mistral::ID_LENGTH;

/// A source that a tool of Mistral found, in a message of the model.
pub(super) const REFERENCE: &str = "tool_reference";

/// Members that no recorded request has.
const LEFT_OUT: [&str; 4] = ["id", "object", "created_at", "completed_at"];

/// What is sent for an entry.
pub(super) struct SentForm {
    pub entries: Vec<String>,
    /// What has another form than it was received in, in a sentence; none if only members are left out.
    pub change: Option<&'static str>,
}

/// Returns what is sent for an entry; `None` if it is sent as it is. `seed` is unique in the body: the id of a call is
/// derived from it if an execution has no id.
pub(super) fn sent_form(entry: JsonRef<'_>, seed: &str) -> Option<SentForm> {
    let entry_type = type_of(entry);
    if !TYPES.contains(&&*entry_type) {
        return None;
    }
    if entry_type == EXECUTION
        && let Some(entries) = call_and_result(entry, seed)
    {
        return Some(SentForm { entries, change: Some("a call of a tool that Mistral ran is sent with its result") });
    }
    let content = entry.get("content").filter(|content| content.kind() == JsonKind::Array);
    let has_source = content.is_some_and(|content| content.items().any(is_source));
    let is_left_out = |key: JsonRef<'_>| LEFT_OUT.iter().any(|name| key.is_text(name));
    if !has_source && !entry.entries().any(|(key, _)| is_left_out(key)) {
        return None;
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    for (key, value) in entry.entries().filter(|(key, _)| !is_left_out(*key)) {
        match content.filter(|_| has_source && key.is_text("content")) {
            Some(content) => _ = object.raw("content", &with_links(content)),
            None => object.copy(key, value),
        }
    }
    object.end();
    let change = has_source.then_some("a source is sent as a link in the text");
    Some(SentForm { entries: vec![out], change })
}

fn is_source(chunk: JsonRef<'_>) -> bool {
    chunk.has_text("type", REFERENCE)
}

/// Returns a list of chunks in which sources are links.
fn with_links(content: JsonRef<'_>) -> String {
    let chunk = |chunk: JsonRef<'_>| if is_source(chunk) { link(chunk) } else { chunk.as_raw().to_owned() };
    format!("[{}]", content.items().map(chunk).collect::<Vec<_>>().join(","))
}

/// Returns a source as a chunk of text: `[title](url)`, or what it has of them.
fn link(source: JsonRef<'_>) -> String {
    let (title, url) = (source.string("title"), source.string("url"));
    let text = if title.is_empty() || url.is_empty() { title + &url } else { format!("[{title}]({url})") };
    let mut out = String::new();
    let mut chunk = ObjectWriter::new(&mut out);
    chunk.text("type", "text").text("text", &text);
    chunk.end();
    out
}

/// Returns an execution as a call and its result; `None` if it has no name. Recorded executions name the tool that ran
/// in `function`: `{"name":"web_search","function":"open_url"}`.
fn call_and_result(entry: JsonRef<'_>, seed: &str) -> Option<Vec<String>> {
    let name = ["function", "name"].into_iter().map(|key| entry.string(key)).find(|name| !name.is_empty())?;
    let seed = entry.text("id").filter(|id| !id.is_empty()).unwrap_or(seed.into());
    let id = short_name(&seed, ID_LENGTH);
    let info = entry.find("info").unwrap_or_default();
    let mut call = String::new();
    let mut object = ObjectWriter::new(&mut call);
    object.text("type", CALL).text(CALL_ID, &id).text("name", &name);
    match entry.find("arguments").filter(|arguments| !arguments.is_text("")) {
        Some(arguments) => push_as_text(object.key("arguments"), arguments),
        None => _ = object.text("arguments", "{}"),
    }
    object.end();
    let mut answer = String::new();
    let mut object = ObjectWriter::new(&mut answer);
    object.text("type", RESULT).text(CALL_ID, &id);
    push_as_text(object.key("result"), info.find("result").unwrap_or(info));
    object.end();
    Some(vec![call, answer])
}

/// Appends a text as it is, and any other value as the text of its JSON.
fn push_as_text(out: &mut String, value: JsonRef<'_>) {
    if value.kind() == JsonKind::String {
        out.push_str(value.as_raw());
    } else {
        push_text(out, value.as_raw());
    }
}
