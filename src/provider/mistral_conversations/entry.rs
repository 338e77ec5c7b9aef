//! The types of entries (client-python, `InputEntries`).

use crate::json::JsonRef;
use std::borrow::Cow;

/// A message of the user, or of the model as the application gives it.
pub(super) const INPUT: &str = "message.input";
/// A message of the model.
pub(super) const OUTPUT: &str = "message.output";
pub(super) const CALL: &str = "function.call";
pub(super) const RESULT: &str = "function.result";
/// A call of a tool that Mistral runs.
pub(super) const EXECUTION: &str = "tool.execution";
/// Another agent goes on.
pub(super) const HANDOFF: &str = "agent.handoff";

pub(super) const KINDS: [&str; 6] = [INPUT, OUTPUT, CALL, RESULT, EXECUTION, HANDOFF];

/// The member of a call and of its result by which they pair.
pub(super) const CALL_ID: &str = "tool_call_id";

/// Returns an entry's `type`. Without one, guesses it from the members: the schema gives each type of entry a default.
/// Empty for what is no entry.
pub(super) fn kind_of(entry: JsonRef<'_>) -> Cow<'_, str> {
    if let Some(kind) = entry.text("type").filter(|kind| !kind.is_empty()) {
        return kind;
    }
    let has = |key: &str| entry.find(key).is_some();
    match () {
        () if has("role") => INPUT,
        () if has(CALL_ID) && has("result") => RESULT,
        () if has(CALL_ID) && has("name") => CALL,
        () => "",
    }
    .into()
}

/// Returns true if a `type` has the form of one, so that it may be a new one: `agent.handoff`.
pub(super) fn is_kind(kind: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    kind.split_once('.').is_some_and(|(first, second)| is_word(first) && second.split('.').all(is_word))
}

/// Returns true if an entry is part of an answer of the model.
pub(super) fn is_of_answer(entry: JsonRef<'_>) -> bool {
    match &*kind_of(entry) {
        INPUT => entry.has_text("role", "assistant"),
        kind => kind != RESULT && is_kind(kind),
    }
}

/// Returns the text of a chunk of reasoning: `{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}`. `None` if
/// it has parts that are no texts.
pub(super) fn thinking_texts(chunk: JsonRef<'_>) -> Option<Vec<JsonRef<'_>>> {
    let list = chunk.find("thinking").filter(|_| chunk.has_text("type", "thinking"))?;
    list.items().map(|part| part.find("text").filter(|text| text.as_text().is_some())).collect()
}
