//! Mistral's chat endpoint: its variant of Chat Completions.

use crate::id::short_name;
use crate::message::Dialect;
use crate::provider::openai_chat::ChatVariant;

/// An id has so many letters and digits (gptel#1203).
pub(super) const ID: usize = 9;

/// The codec.
pub(crate) static MISTRAL: ChatVariant = ChatVariant {
    dialect: Dialect::Mistral,
    accepts_call_id: is_legal_id,
    legal_call_id: |id| short_name(id, ID),
    // Its schema forbids what it does not name ("Extra inputs are not permitted").
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
};

/// "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9."
pub(super) fn is_legal_id(id: &str) -> bool {
    id.len() == ID && id.bytes().all(|b| b.is_ascii_alphanumeric())
}
