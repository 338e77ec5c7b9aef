//! Mistral's chat endpoint: its ways in the family of Chat Completions.

use crate::id::short_name;
use crate::message::Dialect;
use crate::provider::openai_chat::{Chat, Ways};

/// An id has so many letters and digits (gptel#1203).
pub(super) const ID: usize = 9;

/// The codec.
pub(crate) static MISTRAL: Chat = Chat {
    dialect: Dialect::Mistral,
    ways: Ways {
        takes_id: is_legal_id,
        legal_id: |id| short_name(id, ID),
        // Its schema forbids what it does not name ("Extra inputs are not permitted").
        foreign: &[
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
        any: "any",
        stream_options: false,
        ends_anywhere: false,
        blank: "\"\"",
        chunks: true,
    },
};

/// "Tool call id was … but must be a-z, A-Z, 0-9, with a length of 9."
pub(super) fn is_legal_id(id: &str) -> bool {
    id.len() == ID && id.bytes().all(|b| b.is_ascii_alphanumeric())
}
