//! The errors of the Interactions API that can be cured. Quoted from it: "The legacy Interactions API schema is no
//! longer supported." (gemini-cli-deep-research#73, 2026-06-12), "Invalid input at 'input[0].content[0].processing'."
//! (recorded in vercel/ai), "The 'type' parameter is required at 'input[2].result[1]'." (celeste-python#327,
//! 2026-07-21), "Request contains an invalid argument." (js-genai#1735, 2026-06-25), "Invalid input received"
//! (inspect-robots#380, 2026-08-14). The others are of generateContent, which the same service has; 5ire#405 has that
//! of missing signatures.

mod lists;
mod names;
mod signatures;

use crate::json::JsonRef;
use crate::provider::gemini::refusals::{PAIRS_REFUSED, SIGNATURE_REFUSED};
use crate::provider::healing::{Cure, Remedy, by_rules, signature_mark};
use lists::unlist_results;
use names::name_results;
use signatures::replace_signatures;

/// Google's most general refusal, of which generateContent has it, too.
const INVALID_ARGUMENT: &[&str] = &["request contains an invalid argument"];

pub(super) const GENERAL_REFUSALS: &[&[&str]] = &[INVALID_ARGUMENT];

pub(super) const REMEDIES: &[Remedy] = &[
    Remedy {
        sentences: SIGNATURE_REFUSED,
        codes: &[],
        rule: "invalid_thought_signature",
        done: "signatures are left out, and Google's placeholder is before the calls that then have none",
        cure: |cure, _| replace_signatures(cure, &|_| true, false),
    },
    Remedy {
        // The second sentence names no cause. It is cured only in a body with an unsigned thought or call.
        sentences: &[&["missing a thought_signature"], INVALID_ARGUMENT],
        codes: &[],
        rule: "unsigned_thinking",
        done: "thoughts without a signature are left out, and Google's placeholder is before calls without one",
        cure: |cure, _| replace_signatures(cure, &|_| false, true),
    },
    Remedy {
        sentences: &[&["invalid input received"]],
        codes: &[],
        rule: "malformed",
        done: "each result has the name of its call",
        cure: |cure, _| name_results(cure),
    },
    Remedy {
        sentences: &[&["multimodal function responses are not supported"]],
        codes: &[],
        rule: "malformed",
        done: "each result is a text, and its media follow the results",
        cure: |cure, _| unlist_results(cure),
    },
    Remedy {
        sentences: &[
            &["legacy interactions api schema is no longer supported"],
            &["invalid input at input["],
            &["parameter is required at input["],
        ],
        codes: &[],
        rule: "malformed",
        done: "the list has steps as the API has them since 2026-06-08",
        cure: by_rules,
    },
    Remedy {
        sentences: PAIRS_REFUSED,
        codes: &[],
        rule: "dangling_call",
        done: "each call is followed by its result",
        cure: by_rules,
    },
];

/// Removes what was refused earlier.
pub(super) fn leave_out_refused(cure: &mut Cure<'_>, refused: &[String]) {
    let has = |mark: &str| refused.iter().any(|other| other == mark);
    let is_refused = |signature: JsonRef<'_>| has(&signature_mark(signature.as_raw()));
    let refuses_unsigned = has(&signatures::unsigned_mark(cure.body));
    replace_signatures(cure, &is_refused, refuses_unsigned);
    if has(names::UNNAMED_MARK) {
        name_results(cure);
    }
    if has(&lists::list_mark(cure.body)) {
        unlist_results(cure);
    }
}
