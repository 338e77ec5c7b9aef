//! The errors of the Interactions API that can be cured. Its service is that of generateContent, whose sentences these
//! are: gemini-cli#13467, 9router#301 (signatures of another key, route or model), gemini-cli#16415, #26486,
//! langchain#27799 (calls and results). None is recorded from this API (2026-11-28).

use super::step::{SIGNATURE, StepKind};
use crate::json::JsonRef;
use crate::provider::healing::{Cure, ErrorAnswer, Remedy, by_rules, signature_mark};

pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        sentences: &[
            &["corrupted thought signature"],
            &["thought signature is not valid"],
            &["thought_signature is not valid"],
        ],
        codes: &[],
        rule: "invalid_thought_signature",
        done: "the thoughts, and the signatures of other steps, are left out",
        cure: |cure, _: &ErrorAnswer| leave_out_signed(cure, &mut |_| true),
    },
    Remedy {
        sentences: &[
            &["number of function response parts is equal to the number of function call parts"],
            &["function call turn comes immediately after a user turn"],
            &["function response turn comes immediately after a function call turn"],
        ],
        codes: &[],
        rule: "dangling_call",
        done: "each call is followed by its result",
        cure: by_rules,
    },
];

/// Removes what was refused earlier.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    leave_out_signed(cure, &mut |signature| refused.contains(&signature_mark(signature.as_raw())));
}

/// Removes the thoughts whose signature is selected, and the selected signatures of other steps.
fn leave_out_signed(cure: &mut Cure<'_>, is_refused: &mut dyn FnMut(JsonRef<'_>) -> bool) {
    let (mut thoughts, list) = (Vec::new(), cure.list);
    for (at, step) in list.items().enumerate() {
        let Some(signature) = step.find(SIGNATURE).filter(|signature| is_refused(*signature)) else { continue };
        cure.refused.push(signature_mark(signature.as_raw()));
        cure.changed(|| format!("/input/{at}"));
        if StepKind::of(step) == StepKind::Thought {
            thoughts.push(at);
        } else {
            cure.edits.remove(step, SIGNATURE);
        }
    }
    cure.remove_items(list, &mut |at, _| thoughts.binary_search(&at).is_ok());
}
