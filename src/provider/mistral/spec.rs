//! Mistral's chat endpoint as a variant of Chat Completions.

use super::ids::{ID_LENGTH, is_valid_id};
use super::{parameters, remedies, rules};
use crate::id::short_name;
use crate::message::Dialect;
use crate::provider::openai_chat::{ChatVariant, answer_reader, family_spec, leave_out_refused};
use crate::provider::spec::{BAD_REQUEST, ContentProfile, DialectSpec, RuleSet, is_within};

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
        leave_out_refused,
        missing_reasoning: None,
        unique_names: None,
    },
    || answer_reader(&MISTRAL),
);

static MISTRAL: ChatVariant = ChatVariant {
    content: ContentProfile {
        valid_call_id: |id| short_name(id, ID_LENGTH),
        has_refusals: false,
        // An image needs its bytes or a URL.
        accepts_media: |media| media.has_bytes_or_url || media.has_known_file_id && !media.is_image,
        ..ContentProfile::common(Dialect::Mistral, is_valid_id)
    },
    parameter: parameters::parameter,
    has_allowed_tools: false,
    any_tool_choice: "any",
    usage_on_request: false,
    free_order: false,
    empty_content: "\"\"",
    content_chunks: true,
    service_of: |host| is_within(host, "mistral.ai").then_some("mistral"),
    #[cfg(test)]
    recognition: super::recognition::RECOGNITION,
};
