//! The list of dialects: the only place that names them all.

use super::spec::{AllDialects, DialectSpec, ItemFormat, ItemFormats, NamedDialect};
use super::{anthropic, gemini, mistral, openai_chat, openai_responses};
use crate::message::Dialect;

/// Returns the description of a dialect.
pub(crate) fn spec(dialect: Dialect) -> &'static DialectSpec {
    match dialect {
        Dialect::OpenAiChat => &openai_chat::SPEC,
        Dialect::Mistral => &mistral::SPEC,
        Dialect::Anthropic => &anthropic::SPEC,
        Dialect::Gemini => &gemini::SPEC,
        Dialect::OpenAiResponses => &openai_responses::SPEC,
    }
}

/// Every dialect.
pub(crate) static ALL: &AllDialects =
    &[&openai_chat::SPEC, &openai_responses::SPEC, &anthropic::SPEC, &gemini::SPEC, &mistral::SPEC];

static ITEM_FORMATS: &[&ItemFormat] = &[
    &openai_chat::SPEC.items,
    &openai_responses::SPEC.items,
    &anthropic::SPEC.items,
    &gemini::SPEC.items,
    &mistral::SPEC.items,
];

/// Returns a dialect among all.
pub(crate) fn named(dialect: Dialect) -> NamedDialect {
    let spec = spec(dialect);
    let formats = ItemFormats { named: &spec.items, all: ITEM_FORMATS, plain: Dialect::OpenAiChat };
    NamedDialect { spec, all: ALL, formats }
}
