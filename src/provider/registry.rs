//! The list of dialects: the only place that names them all.

use super::dialect::Codec;
use super::item_format::ItemFormats;
use super::{anthropic, gemini, mistral, openai_chat, openai_responses};
use crate::message::Dialect;

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

/// Returns the item formats of all dialects, to compare items with that should be of the named one.
pub(crate) fn item_formats(named: Dialect) -> ItemFormats {
    ItemFormats {
        named: codec(named),
        all: Dialect::ALL.map(|dialect| codec(dialect) as _),
        plain: Dialect::OpenAiChat,
    }
}
