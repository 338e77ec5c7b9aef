//! Requests that have a service shorten the chain of responses that it keeps, and those with a provider's own
//! compaction.

use super::dropping::with_listed;
use super::provider_request::ProviderRequest;
use crate::json::{Json, JsonRef};
use crate::provider::spec::DialectSpec;

/// Returns the body of a request that has the service shorten its chain of responses up to `previous`; `None` if
/// services of the dialect do not do that.
#[must_use]
pub(crate) fn compaction_request(spec: &DialectSpec, model: Option<&str>, previous: &str) -> Option<Vec<u8>> {
    let compaction = spec.service_state.as_ref()?.compaction.as_ref()?;
    Some((compaction.request)(model, previous))
}

/// Returns the items that stand for the conversation, from the body of the answer to a [`compaction_request`]; `None`
/// for any other text.
#[must_use]
pub(crate) fn compacted_items(spec: &DialectSpec, answer: &str) -> Option<Vec<Json>> {
    let compaction = spec.service_state.as_ref()?.compaction.as_ref()?;
    (compaction.items)(JsonRef::parse(answer).ok()?)
}

/// Returns the request with the header that what a provider's own compaction returned needs; `None` if it needs none.
pub(crate) fn with_compaction_header(spec: &DialectSpec, request: &ProviderRequest) -> Option<ProviderRequest> {
    let (name, value) = spec.provider_compaction.as_ref()?.header?;
    Some(ProviderRequest { headers: with_listed(&request.headers, name, value), ..request.clone() })
}
