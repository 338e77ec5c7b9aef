//! The list of dialects: the only place that names them all.

use super::models::ModelFacts;
use super::request::ProviderRequest;
use super::spec::{DialectSpec, ItemFormats};
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

/// Returns what the model of a request accepts. The model is named by the parameters, or else by the URL.
#[must_use]
pub fn model_facts(request: &ProviderRequest) -> ModelFacts {
    let named = request.params.view().text("model").filter(|name| !name.is_empty());
    (spec(request.dialect).models.facts)(named.as_deref().unwrap_or(&request.url))
}

/// Returns the item formats of all dialects, to compare items with that should be of the named one.
pub(crate) fn item_formats(named: Dialect) -> ItemFormats {
    ItemFormats {
        named: &spec(named).items,
        all: Dialect::ALL.map(|dialect| &spec(dialect).items),
        plain: Dialect::OpenAiChat,
    }
}

/// Returns the dialects whose items have the form of the named one: that first.
pub(crate) fn family_of(named: Dialect) -> Vec<&'static DialectSpec> {
    let family = spec(named).items.family;
    let others = Dialect::ALL.into_iter().filter(|dialect| *dialect != named).map(spec);
    std::iter::once(spec(named)).chain(others.filter(|other| other.items.family == family)).collect()
}
