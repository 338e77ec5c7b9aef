//! The errors of Gemini's generateContent that can be cured. The sentence about missing signatures: 5ire#405.

use super::part::{CALL_NAMES, RESPONSE_NAMES, SIGNATURE_NAMES};
use super::refusals::{PAIRS_REFUSED, SIGNATURE_REFUSED};
use super::rules::PLACEHOLDER_SIGNATURE;
use crate::json::JsonRef;
use crate::provider::healing::{Cure, ErrorAnswer, Remedy, by_rules, signature_mark};

pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        sentences: &[&["missing a thought_signature"]],
        codes: &[],
        rule: "unsigned_thinking",
        done: "the first call of each step has Google's placeholder for a signature",
        cure: |cure, _| sign_calls(cure),
    },
    Remedy {
        sentences: SIGNATURE_REFUSED,
        codes: &[],
        rule: "invalid_thought_signature",
        done: "the signatures are left out, and calls have Google's placeholder",
        cure: |cure, _: &ErrorAnswer| replace_signatures(cure, &mut |_| true),
    },
    Remedy {
        sentences: PAIRS_REFUSED,
        codes: &[],
        rule: "dangling_call",
        done: "each call is followed by its response",
        cure: by_rules,
    },
];

/// Removes what was refused earlier.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    replace_signatures(cure, &mut |signature| refused.contains(&signature_mark(signature.as_raw())));
    if refused.iter().any(|mark| *mark == unsigned_mark(&cure.body.string("model"))) {
        sign_calls(cure);
    }
}

/// A mark of a model that requires signatures. The URL may name it instead of the body.
fn unsigned_mark(model: &str) -> String {
    format!("unsigned:{model}")
}

fn has_any(part: JsonRef<'_>, names: &[&str]) -> bool {
    names.iter().any(|name| part.find(name).is_some())
}

fn parts<'a>(content: JsonRef<'a>) -> Vec<JsonRef<'a>> {
    content.get("parts").into_iter().flat_map(JsonRef::items).collect()
}

/// Gives the first call of each step of the current turn a signature. The current turn begins after the last user
/// content that has more than responses.
fn sign_calls(cure: &mut Cure<'_>) {
    let contents: Vec<JsonRef<'_>> = cure.list.items().collect();
    let is_model = |content: &JsonRef<'_>| content.has_text("role", "model");
    let starts_turn = |content: &JsonRef<'_>| {
        !is_model(content) && parts(*content).iter().any(|part| !has_any(*part, &RESPONSE_NAMES))
    };
    let current = contents.iter().rposition(starts_turn).map_or(0, |at| at + 1);
    let mut is_step_signed = false;
    let mut has_changed = false;
    for (at, content) in contents.iter().enumerate().skip(current) {
        if !is_model(content) {
            is_step_signed = false;
            continue;
        }
        let calls = parts(*content);
        let first = calls.iter().enumerate().find(|(_, part)| has_any(**part, &CALL_NAMES));
        let Some((index, part)) = first.filter(|_| !is_step_signed) else { continue };
        is_step_signed = true;
        if SIGNATURE_NAMES.iter().any(|name| part.find(name).is_some_and(|value| !value.is_text(""))) {
            continue;
        }
        let [camel, snake] = SIGNATURE_NAMES;
        let name = if part.get(snake).is_some() { snake } else { camel };
        cure.edits.set(*part, name, PLACEHOLDER_SIGNATURE.into());
        cure.changed(|| format!("/contents/{at}/parts/{index}"));
        has_changed = true;
    }
    if has_changed {
        cure.refused.push(unsigned_mark(&cure.body.string("model")));
    }
}

/// Removes the selected signatures. A call gets the placeholder instead: the model that refused them requires one.
fn replace_signatures(cure: &mut Cure<'_>, is_refused: &mut dyn FnMut(JsonRef<'_>) -> bool) {
    for (at, content) in cure.list.items().enumerate() {
        for (index, part) in parts(content).into_iter().enumerate() {
            for name in SIGNATURE_NAMES {
                let Some(signature) = part.get(name).filter(|value| value.as_raw() != PLACEHOLDER_SIGNATURE) else {
                    continue;
                };
                if !is_refused(signature) {
                    continue;
                }
                cure.refused.push(signature_mark(signature.as_raw()));
                if has_any(part, &CALL_NAMES) {
                    cure.edits.set(part, name, PLACEHOLDER_SIGNATURE.into());
                } else {
                    cure.edits.remove(part, name);
                }
                cure.changed(|| format!("/contents/{at}/parts/{index}/{name}"));
            }
        }
    }
}
