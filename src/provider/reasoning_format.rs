//! What a dialect knows of reasoning: who can read it, what it is bound to, and how it is left out of an answer.

use super::models::ModelFacts;
use super::request::Settings;
use crate::json::{Json, JsonRef};

/// The reasoning of a dialect's answers: thinking, signatures, encrypted content.
pub(crate) trait ReasoningFormat {
    /// Returns the member of a body that holds the instructions, if a provider of this dialect binds reasoning to what precedes it; `None`
    /// if none does.
    fn bound_instructions(&self) -> Option<&'static str> {
        None
    }

    /// Returns a text that is the same for every form of an item or of a member that the provider takes for the same, if it is not the
    /// given one.
    fn compared_form(&self, _json: &str) -> Option<String> {
        None
    }

    /// Returns true if the item in a list is part of an answer of the model.
    fn is_of_answer(&self, item: JsonRef<'_>) -> bool;

    /// Returns the reasoning of an item, or what identifies it among all; `None` if the item has none.
    fn reasoning_of<'a>(&self, item: JsonRef<'a>) -> Option<&'a str>;

    /// Returns true if the items of one answer have reasoning after other content, to which that reasoning is bound, too.
    fn has_inner_reasoning(&self, _items: &[JsonRef<'_>]) -> bool {
        false
    }

    /// Returns the items of one answer, with the results of its calls, without its reasoning: `None` for an item of which nothing is left.
    fn without_reasoning(&self, items: &[JsonRef<'_>], settings: &Settings) -> Vec<Option<String>>;

    /// Returns the parameters of a request that lets the service drop reasoning whose prefix has changed, instead of refusing the request;
    /// `None` if the dialect has no parameter for that, the model refuses nothing, or thinking is asked for in a way that cannot have it.
    fn dropping_params(&self, _params: JsonRef<'_>, _facts: &ModelFacts) -> Option<Json> {
        None
    }

    /// Returns the header of such a request: a list of names, which may have others, too.
    fn dropping_header(&self) -> Option<(&'static str, &'static str)> {
        None
    }

    /// Returns true if a body, or the parameters of one, let the service drop reasoning whose prefix has changed.
    fn is_dropping(&self, _body: JsonRef<'_>) -> bool {
        false
    }

    /// Returns the name of the service that a host belongs to. The hosts of one service read each other's reasoning.
    fn service_of(&self, _host: &str) -> Option<&'static str> {
        None
    }

    /// Returns true if a model can read the reasoning that another one made. Called for models of one service.
    fn reads_reasoning(&self, _made_by: &str, _model: &str) -> bool {
        true
    }
}

/// Returns true if `host` is `domain` or a subdomain of it.
pub(crate) fn is_within(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
}

/// Returns a model's name without what gateways and platforms put before it: `gpt-6.2-sol` for `openai/gpt-6.2-sol`.
pub(crate) fn bare_model(name: &str) -> &str {
    name.rsplit_once('/').map_or(name, |(_, name)| name)
}
