//! The errors that can be cured. The sentences about calls are those of Mistral's chat endpoint (client-ts#106,
//! gptel#1203). No refusal of an entry is recorded: those of the schema are told by the place that they name.

use super::entry::{CALL, CALL_ID, EXECUTION, RESULT, is_of_answer, type_of};
use crate::id::short_name;
use crate::json::{JsonKind, JsonRef, ObjectWriter};
use crate::provider::healing::{Cure, Remedy};
use crate::provider::mistral::{ID_LENGTH, UNANSWERED_CALL, is_valid_id};
use crate::provider::rules::{BodyPiece, quoted};

pub(super) const REMEDIES: &[Remedy] = &[
    UNANSWERED_CALL,
    Remedy {
        sentences: &[&["tool call id was ", "but must be a-z, a-z, 0-9, with a length of 9"]],
        codes: &[],
        rule: "invalid_call_id",
        done: "the calls and their results have ids of nine letters and digits",
        cure: |cure, _| shorten_ids(cure),
    },
    Remedy {
        sentences: &[&["inputs", "tool.execution"], &["inputs", "tool_reference"], &["inputs", "id", "extra inputs"]],
        codes: &["extra_forbidden", "union_tag_invalid"],
        rule: "refused_entries",
        done: "entries have no ids, calls of Mistral's own tools are calls with results, and sources are left out",
        cure: |cure, _| simplify_entries(cure),
    },
];

/// The mark of a service that refuses ids of calls of another length.
const LONG_IDS_MARK: &str = "refused:ids";

/// The mark of a service that refuses the entries of an answer as they were received.
const ENTRIES_MARK: &str = "refused:entries";

/// Writes the ids and entries that were refused earlier in the other form.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    let has = |mark: &str| refused.iter().any(|other| other == mark);
    if has(LONG_IDS_MARK) {
        shorten_ids(cure);
    }
    if has(ENTRIES_MARK) {
        simplify_entries(cure);
    }
}

fn shorten_ids(cure: &mut Cure<'_>) {
    let mut has_changed = false;
    for (at, item) in cure.list.items().enumerate() {
        let id = item.string(CALL_ID);
        if !id.is_empty() && !is_valid_id(&id) {
            cure.edits.set(item, CALL_ID, quoted(&short_name(&id, ID_LENGTH)));
            cure.changed(|| format!("/inputs/{at}/{CALL_ID}"));
            has_changed = true;
        }
    }
    cure.refused.extend(has_changed.then(|| LONG_IDS_MARK.to_owned()));
}

/// Rewrites answers to what other clients send: vercel/ai (`convert-to-mistral-conversation-inputs.ts`) sends neither
/// ids of entries nor executions, and inspect_ai (`mistral_conversation.py`) no sources.
fn simplify_entries(cure: &mut Cure<'_>) {
    let (mut pieces, mut first) = (Vec::new(), None);
    for (at, item) in cure.list.items().enumerate() {
        let simple = if is_of_answer(item) { simplified(item, at) } else { None };
        match simple {
            Some(entries) => {
                first = first.or(Some(at));
                pieces.extend(entries.into_iter().map(BodyPiece::New));
            }
            None => pieces.push(cure.edits.source(item)),
        }
    }
    if let Some(at) = first {
        cure.edits.rebuild(cure.list, pieces);
        cure.changed(|| format!("/inputs/{at}"));
        cure.refused.push(ENTRIES_MARK.to_owned());
    }
}

/// Returns the entries that replace one of an answer; `None` if it stays.
fn simplified(entry: JsonRef<'_>, at: usize) -> Option<Vec<String>> {
    if type_of(entry) == EXECUTION {
        return Some(call_and_result(entry, at));
    }
    let is_source = |chunk: JsonRef<'_>| chunk.has_text("type", "tool_reference");
    let content = entry.get("content").filter(|content| content.kind() == JsonKind::Array);
    let chunks: Vec<JsonRef<'_>> = content.unwrap_or_default().items().collect();
    let kept: Vec<&str> = chunks.iter().filter(|chunk| !is_source(**chunk)).map(|chunk| chunk.as_raw()).collect();
    if entry.get("id").is_none() && kept.len() == chunks.len() {
        return None;
    }
    if kept.is_empty() && !chunks.is_empty() {
        return Some(Vec::new());
    }
    let mut out = String::new();
    let mut object = ObjectWriter::new(&mut out);
    for (key, value) in entry.entries().filter(|(key, _)| !key.is_text("id")) {
        if key.is_text("content") && content.is_some() {
            object.raw("content", &format!("[{}]", kept.join(",")));
        } else {
            object.copy(key, value);
        }
    }
    object.end();
    Some(vec![out])
}

/// Returns an execution as a call and its result.
fn call_and_result(entry: JsonRef<'_>, at: usize) -> Vec<String> {
    let seed = entry.text("id").map_or_else(|| format!("execution {at}"), |id| id.into_owned());
    let id = short_name(&seed, ID_LENGTH);
    let info = entry.find("info").unwrap_or_default();
    let result = info.find("result").unwrap_or(info);
    let result = result.as_text().map_or_else(|| result.as_raw().to_owned(), |text| text.into_owned());
    let mut call = String::new();
    let mut object = ObjectWriter::new(&mut call);
    object.text("type", CALL).text(CALL_ID, &id).text("name", &entry.string("name"));
    object.text("arguments", &entry.string("arguments"));
    object.end();
    let mut answer = String::new();
    let mut object = ObjectWriter::new(&mut answer);
    object.text("type", RESULT).text(CALL_ID, &id).text("result", &result);
    object.end();
    vec![call, answer]
}
