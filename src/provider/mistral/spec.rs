//! Mistral's chat endpoint as a variant of Chat Completions.

use super::variant::MISTRAL;
use super::{remedies, rules};
use crate::provider::openai_chat::{answer_reader, family_spec};
use crate::provider::spec::{BAD_REQUEST, DialectSpec, RuleSet};

/// The format of Mistral's chat API.
pub(crate) static SPEC: DialectSpec = family_spec(
    &MISTRAL,
    // Mistral rejects every parameter that its schema does not name: "Extra inputs are not permitted".
    &[
        "stream_options",
        "seed",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "user",
        "store",
        "max_completion_tokens",
        "modalities",
        "verbosity",
        "anthropic_version",
        "anthropic_beta",
        "stop_sequences",
        "system",
        "thinking",
        "top_k",
        "context_management",
    ],
    RuleSet {
        plan: rules::plan,
        refusal_statuses: BAD_REQUEST,
        remedies: remedies::REMEDIES,
        general_refusals: &[],
        leave_out_refused: remedies::leave_out_refused,
        missing_reasoning: None,
        unique_names: None,
    },
    || answer_reader(&MISTRAL),
);
