//! Mistral's chat endpoint as a variant of Chat Completions.

use super::ids::{ID_LENGTH, is_valid_id};
use super::{Mistral, parameters, remedies, rules};
use crate::id::short_name;
use crate::message::Dialect;
use crate::provider::openai_chat::{ChatDialect, ChatVariant};
use crate::provider::reasoning_format::is_within;

/// The format of Mistral's chat API.
static MISTRAL: ChatVariant = ChatVariant {
    dialect: Dialect::Mistral,
    accepts_call_id: is_valid_id,
    legal_call_id: |id| short_name(id, ID_LENGTH),
    plan_repairs: rules::plan,
    demands_reasoning: |_| false,
    parameter: parameters::parameter,
    remedies: remedies::REMEDIES,
    has_allowed_tools: false,
    shares_files_with: None,
    // Mistral rejects every parameter that its schema does not name: "Extra inputs are not permitted".
    unknown_params: &[
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
    any_tool_choice: "any",
    usage_on_request: false,
    free_order: false,
    empty_content: "\"\"",
    content_chunks: true,
    service_of: |host| is_within(host, "mistral.ai").then_some("mistral"),
};

impl ChatDialect for Mistral {
    fn variant(&self) -> &ChatVariant {
        &MISTRAL
    }
}
