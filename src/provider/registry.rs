//! The list of dialects: the only place that names them all.

use super::dialect::Codec;
use super::item_format::ItemFormats;
use super::models::ModelFacts;
use super::request::ProviderRequest;
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

/// Returns what the model of a request accepts. The model is named by the parameters, or else by the URL.
#[must_use]
pub fn model_facts(request: &ProviderRequest) -> ModelFacts {
    let named = request.params.view().text("model").filter(|name| !name.is_empty());
    codec(request.dialect).model_facts(named.as_deref().unwrap_or(&request.url))
}

/// Returns the item formats of all dialects, to compare items with that should be of the named one.
pub(crate) fn item_formats(named: Dialect) -> ItemFormats {
    ItemFormats {
        named: codec(named),
        all: Dialect::ALL.map(|dialect| codec(dialect) as _),
        plain: Dialect::OpenAiChat,
    }
}

/// Returns the implementations of the dialects whose items have the form of the named one: that first.
pub(crate) fn family_of(named: Dialect) -> Vec<&'static dyn Codec> {
    let family = codec(named).family();
    let others = Dialect::ALL.into_iter().filter(|dialect| *dialect != named).map(codec);
    std::iter::once(codec(named)).chain(others.filter(|other| other.family() == family)).collect()
}
