//! What a dialect knows of reasoning: who can read it, what it is bound to, and how it is left out of an answer.

use crate::json::{Json, JsonRef};
use crate::provider::models::ModelFacts;
use crate::provider::request::Settings;

/// The reasoning of a dialect's answers: thinking, signatures, encrypted content.
pub(crate) trait ReasoningFormat: Sync {
    /// Returns a text that is the same for every form of an item or of a member that the provider takes for the same,
    /// if it is not the given one.
    fn compared_form(&self, _json: &str) -> Option<String> {
        None
    }

    /// Returns true if the item in a list is part of an answer of the model.
    fn is_of_answer(&self, item: JsonRef<'_>) -> bool;

    /// Returns the reasoning of an item, or what identifies it among all; `None` if the item has none.
    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str>;

    /// Returns true if the items of one answer have reasoning after other content, to which that reasoning is bound,
    /// too.
    fn has_inner_reasoning(&self, _items: &[JsonRef<'_>]) -> bool {
        false
    }

    /// Returns the items of one answer, with the results of its calls, without its reasoning: `None` for an item of
    /// which nothing is left.
    fn without_reasoning(&self, items: &[JsonRef<'_>], settings: &Settings) -> Vec<Option<String>>;

    /// Returns the name of the service that a host belongs to. The hosts of one service read each other's reasoning.
    fn service_of(&self, _host: &str) -> Option<&'static str> {
        None
    }

    /// Returns true if a model can read the reasoning that another one made. Called for models of one service.
    fn reads_reasoning(&self, _made_by: &str, _model: &str) -> bool {
        true
    }
}

/// How a request lets the service drop reasoning whose prefix has changed, instead of refusing the request.
pub(crate) struct ReasoningDropping {
    /// The header of such a request: a list of names, which may have others, too.
    pub header: (&'static str, &'static str),
    /// Returns the parameters of such a request; `None` if the model refuses nothing, or thinking is asked for in a way
    /// that cannot have it.
    pub params: fn(JsonRef<'_>, &ModelFacts) -> Option<Json>,
    /// Returns true if a body, or the parameters of one, ask for it.
    pub is_asked_for: fn(JsonRef<'_>) -> bool,
}

/// Returns true if `host` is `domain` or a subdomain of it.
pub(crate) fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns a model's name without what gateways and platforms put before it: `gpt-6.2-sol` for `openai/gpt-6.2-sol`.
pub(crate) fn bare_model(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}
