//! The list of dialects: the only place that names them all.

use super::dialect::Codec;
use super::{anthropic, gemini, mistral, openai_chat, openai_responses};
use crate::message::Dialect;

/// The dialect that a message `{"role":"user","content":"hi"}` is taken for, which most dialects accept.
pub(crate) const PLAIN_DIALECT: Dialect = Dialect::OpenAiChat;

/// Returns the implementation of a dialect.
pub(crate) fn codec(dialect: Dialect) -> &'static dyn Codec {
    match dialect {
        Dialect::OpenAiChat => &openai_chat::OpenAiChat,
        Dialect::Mistral => &mistral::Mistral,
        Dialect::Anthropic => &anthropic::Anthropic,
        Dialect::Gemini => &gemini::Gemini,
        Dialect::OpenAiResponses => &openai_responses::Responses,
    }
}
