//! The types of entries (client-python, `InputEntries`).

use crate::json::JsonRef;
use std::borrow::Cow;
use std::collections::BTreeSet;

/// A message of the user, or of the model as the application gives it.
pub(super) const INPUT: &str = "message.input";
/// A message of the model.
pub(super) const OUTPUT: &str = "message.output";
pub(super) const CALL: &str = "function.call";
pub(super) const RESULT: &str = "function.result";
/// A call of a tool that Mistral runs.
pub(super) const EXECUTION: &str = "tool.execution";
/// The conversation passes from one agent to another.
pub(super) const HANDOFF: &str = "agent.handoff";

pub(super) const TYPES: [&str; 6] = [INPUT, OUTPUT, CALL, RESULT, EXECUTION, HANDOFF];

/// The members that a handoff must have.
pub(super) const HANDOFF_MEMBERS: [&str; 4] =
    ["previous_agent_id", "previous_agent_name", "next_agent_id", "next_agent_name"];

/// The member of a call and of its result by which they pair.
pub(super) const CALL_ID: &str = "tool_call_id";

/// The member of a call that Mistral itself runs after a confirmation: `"confirmation_status":"pending"` (client-python,
/// `FunctionCallEntry`).
pub(super) const CONFIRMATION: &str = "confirmation_status";

/// Returns an entry's `type`. Without one, it is that of the only entry whose required members it has: the schema gives
/// each type a default. A message with a role is read as an input. Empty for what is no entry.
pub(super) fn type_of(entry: JsonRef<'_>) -> Cow<'_, str> {
    if let Some(given) = entry.text("type").filter(|given| !given.is_empty()) {
        return given;
    }
    let has = |key: &str| entry.find(key).is_some();
    match () {
        () if has("role") => INPUT,
        () if has(CALL_ID) && has("result") => RESULT,
        () if has(CALL_ID) && has("name") => CALL,
        () if has("content") => OUTPUT,
        () if has("name") && has("arguments") => EXECUTION,
        () if HANDOFF_MEMBERS.iter().all(|key| has(key)) => HANDOFF,
        () => "",
    }
    .into()
}

/// Returns true if a `type` has the form of one, so that it may be a new one: `agent.handoff`.
pub(super) fn is_type(name: &str) -> bool {
    let is_word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    name.split_once('.').is_some_and(|(first, second)| is_word(first) && second.split('.').all(is_word))
}

/// Returns true if an entry is a call that Mistral itself runs, once it is confirmed.
pub(super) fn needs_confirmation(entry: JsonRef<'_>) -> bool {
    entry.find(CONFIRMATION).is_some()
}

/// Returns the ids of the calls with a confirmation that results answer: no other call has them. The others are
/// Mistral's alone, and their ids are compared with no other.
pub(super) fn answered_confirmations<'a>(entries: &[JsonRef<'a>]) -> BTreeSet<Cow<'a, str>> {
    let (mut results, mut others) = (BTreeSet::new(), BTreeSet::new());
    if !entries.iter().any(|entry| needs_confirmation(*entry)) {
        return results;
    }
    for entry in entries.iter().copied() {
        let ids = match &*type_of(entry) {
            RESULT => &mut results,
            CALL if !needs_confirmation(entry) => &mut others,
            _ => continue,
        };
        ids.extend(entry.text(CALL_ID));
    }
    results.retain(|id| !others.contains(id));
    results
}

/// Returns true if an entry is part of an answer of the model.
pub(super) fn is_of_answer(entry: JsonRef<'_>) -> bool {
    match &*type_of(entry) {
        INPUT => entry.has_text("role", "assistant"),
        other => other != RESULT && is_type(other),
    }
}

/// Returns the texts of a chunk of reasoning: `{"type":"thinking","thinking":[{"type":"text","text":"Hm"}]}`. Other parts,
/// such as sources, have none.
pub(super) fn thinking_texts(chunk: JsonRef<'_>) -> Option<Vec<JsonRef<'_>>> {
    let list = chunk.find("thinking").filter(|_| chunk.has_text("type", "thinking"))?;
    Some(list.items().filter_map(|part| part.find("text").filter(|text| text.as_text().is_some())).collect())
}
