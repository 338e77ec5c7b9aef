//! The errors that can be cured. The sentences about calls are those of Mistral's chat endpoint (client-ts#106,
//! gptel#1203), and of this one (HA_MistralAI#21). A member that is not in the schema is named by its place
//! (php-mistral#76); that an entry was refused so is stated by other clients, and not recorded.

use super::MistralConversations;
use super::entry::{CALL_ID, INPUT, RESULT};
use super::parameters::{continues_conversation, is_continuing};
use super::sent_form::sent_form;
use crate::id::short_name;
use crate::json::{JsonKind, ObjectWriter};
use crate::provider::healing::{Cure, ErrorAnswer, Remedy};
use crate::provider::mistral::{
    ID_LENGTH, REASONING_INPUT, UNANSWERED_CALL, is_valid_id, leave_out_reasoning_again, remove_reasoning,
};
use crate::provider::rules::{BodyPiece, quoted};

pub(super) const REMEDIES: &[Remedy] = &[
    UNANSWERED_CALL,
    Remedy {
        sentences: &[MISSING_RESULTS],
        codes: &[],
        rule: "dangling_call",
        done: "calls that the service keeps have results, before other entries",
        cure: answer_held_calls,
    },
    Remedy {
        sentences: &[&["tool call id was ", "but must be a-z, a-z, 0-9, with a length of 9"]],
        codes: &[],
        rule: "invalid_call_id",
        done: "the calls and their results have ids of nine letters and digits",
        cure: |cure, _| shorten_ids(cure),
    },
    Remedy {
        sentences: &[REASONING_INPUT],
        codes: &[],
        rule: "refused_reasoning",
        done: "the model gets no reasoning",
        cure: |cure, _answer| remove_reasoning(cure, &MistralConversations),
    },
    Remedy {
        // Codes such as `extra_forbidden` are those of any member: only a place among the entries counts.
        sentences: &[
            &["loc:[body,inputs,", ",id],msg:extra inputs"],
            &["loc:[body,inputs,", ",tool.execution"],
            &["loc:[body,inputs,", ",tool_reference"],
            &["loc:[body,inputs,", "input tag tool.execution found"],
            &["loc:[body,inputs,", "input tag tool_reference found"],
        ],
        codes: &[],
        rule: "refused_entries",
        done: "entries have no ids, calls of Mistral's own tools are calls with results, and sources are links",
        cure: |cure, _| simplify_entries(cure),
    },
    Remedy {
        sentences: &[&["loc:[body,tools],msg:extra inputs"], &["loc:[body,instructions],msg:extra inputs"]],
        codes: &[],
        rule: "refused_members",
        done: "a request that continues a conversation has no members of one that begins it",
        cure: remove_beginning,
    },
];

/// The sentence about calls of a conversation that the service keeps. The ids of the calls follow it.
const MISSING_RESULTS: &[&str] =
    &["cannot append other inputs while function results are still missing", "provide function results first for: ["];

/// The mark of a service that refuses ids of calls of another length.
const LONG_IDS_MARK: &str = "refused:ids";

/// The mark of a service that refuses the entries of an answer as they were received.
const ENTRIES_MARK: &str = "refused:entries";

/// Writes ids and entries that were refused earlier in the other form, and removes the reasoning from a body for a
/// model that refused it before.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    let has = |mark: &str| refused.iter().any(|other| other == mark);
    if has(LONG_IDS_MARK) {
        shorten_ids(cure);
    }
    let marks = cure.refused.len();
    leave_out_reasoning_again(cure, refused, &MistralConversations);
    // One of both writes the list. Entries of a session have the accepted form anyway.
    if has(ENTRIES_MARK) && cure.refused.len() == marks {
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

/// Adds results for calls that the service keeps, before what the body has.
fn answer_held_calls(cure: &mut Cure<'_>, answer: &ErrorAnswer) {
    let is_answered =
        |id: &str| cure.list.items().any(|item| item.has_text(CALL_ID, id) && item.get("result").is_some());
    let ids: Vec<&str> = answer.words_after(MISSING_RESULTS).into_iter().filter(|id| !is_answered(id)).collect();
    if ids.is_empty() {
        return;
    }
    let result = |id: &str| {
        let mut out = String::new();
        let mut object = ObjectWriter::new(&mut out);
        object.text("type", RESULT).text(CALL_ID, id).text("result", &cure.closing_text);
        object.end();
        out
    };
    let mut entries: Vec<String> = ids.into_iter().map(result).collect();
    if cure.list.kind() == JsonKind::Array {
        let mut pieces: Vec<BodyPiece> = entries.into_iter().map(BodyPiece::New).collect();
        pieces.extend(cure.list.items().map(|item| cure.edits.source(item)));
        cure.edits.rebuild(cure.list, pieces);
    } else {
        if cure.list.kind() == JsonKind::String {
            entries.push(format!(r#"{{"type":"{INPUT}","role":"user","content":{}}}"#, cure.list.as_raw()));
        }
        cure.edits.set(cure.body, "inputs", format!("[{}]", entries.join(",")));
    }
    cure.changed(|| "/inputs/0".to_owned());
}

/// Rewrites the entries to the form in which rethread sends its own.
fn simplify_entries(cure: &mut Cure<'_>) {
    let (mut pieces, mut first) = (Vec::new(), None);
    for (at, item) in cure.list.items().enumerate() {
        match sent_form(item, &format!("execution {at}")) {
            Some(form) => {
                first = first.or(Some(at));
                pieces.extend(form.entries.into_iter().map(BodyPiece::New));
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

/// Removes what only a request has that begins a conversation.
fn remove_beginning(cure: &mut Cure<'_>, _answer: &ErrorAnswer) {
    if !continues_conversation(cure.body) {
        return;
    }
    for (key, _) in cure.body.entries() {
        let name = key.as_text().unwrap_or_default();
        if name != "inputs" && !is_continuing(&name) {
            cure.edits.remove(cure.body, &name);
            cure.changed(|| format!("/{name}"));
        }
    }
}
