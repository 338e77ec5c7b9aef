//! The errors of Mistral's chat endpoint that can be cured. Sentences: client-ts#106, gptel#1203.

use crate::provider::healing::{Remedy, by_rules};

pub(super) const REMEDIES: &[Remedy] = &[
    UNANSWERED_CALL,
    Remedy {
        sentences: &[&["tool call id was ", "but must be a-z, a-z, 0-9, with a length of 9"]],
        codes: &[],
        rule: "invalid_call_id",
        done: "the calls and their results have ids of nine letters and digits",
        cure: by_rules,
    },
];

/// The remedy for a call without a result, or with several.
pub(crate) const UNANSWERED_CALL: Remedy = Remedy {
    sentences: &[&["not the same number of function calls and responses"]],
    codes: &[],
    rule: "dangling_call",
    done: "each call has one result",
    cure: by_rules,
};
