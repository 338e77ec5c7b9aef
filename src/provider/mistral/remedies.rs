//! The errors of Mistral's chat endpoint that can be cured. Sentences: client-ts#106, gptel#1203.

use super::variant::MISTRAL;
use crate::provider::healing::{Cure, Remedy, by_rules};
use crate::provider::openai_chat;
use crate::provider::request::Settings;
use crate::provider::rules::BodyPiece;
use crate::provider::spec::ReasoningFormat;

pub(super) const REMEDIES: &[Remedy] = &[
    UNANSWERED_CALL,
    Remedy {
        sentences: &[&["tool call id was ", "but must be a-z, a-z, 0-9, with a length of 9"]],
        codes: &[],
        rule: "invalid_call_id",
        done: "the calls and their results have ids of nine letters and digits",
        cure: by_rules,
    },
    Remedy {
        sentences: &[REASONING_INPUT],
        codes: &[],
        rule: "refused_reasoning",
        done: "the model gets no reasoning",
        cure: |cure, _answer| remove_reasoning(cure, &MISTRAL),
    },
];

/// What a model without reasoning answers, code 3051 (mistral-vibe#758 of 2026-06-09: a chat that went from
/// mistral-medium to devstral).
pub(crate) const REASONING_INPUT: &[&str] = &["reasoning input is not enabled for this model"];

/// The remedy for a call without a result, or with several.
pub(crate) const UNANSWERED_CALL: Remedy = Remedy {
    sentences: &[&["not the same number of function calls and responses"]],
    codes: &[],
    rule: "dangling_call",
    done: "each call has one result",
    cure: by_rules,
};

/// Removes what a provider refused in an earlier request.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    openai_chat::leave_out_refused(cure, refused);
    leave_out_reasoning_again(cure, refused, &MISTRAL);
}

/// Removes the reasoning from the messages, and marks the model as one that takes none.
pub(crate) fn remove_reasoning(cure: &mut Cure<'_>, format: &dyn ReasoningFormat) {
    let items: Vec<_> = cure.list.items().collect();
    let written = format.without_reasoning(&items, &Settings::default());
    let is_changed =
        |item: Option<&String>, at: usize| item.map(String::as_str) != items.get(at).map(|item| item.as_raw());
    let Some(first) = written.iter().enumerate().position(|(at, item)| is_changed(item.as_ref(), at)) else { return };
    cure.edits.rebuild(cure.list, written.into_iter().flatten().map(BodyPiece::New).collect());
    let list = if cure.body.get("inputs").is_some() { "inputs" } else { "messages" };
    cure.changed(|| format!("/{list}/{first}"));
    cure.refused.push(reasoning_mark(&cure.body.string("model")));
}

/// Removes the reasoning from a body for a model that is marked.
pub(crate) fn leave_out_reasoning_again(cure: &mut Cure<'_>, refused: &[String], format: &dyn ReasoningFormat) {
    if refused.contains(&reasoning_mark(&cure.body.string("model"))) {
        remove_reasoning(cure, format);
    }
}

fn reasoning_mark(model: &str) -> String {
    format!("reasoning:{model}")
}
