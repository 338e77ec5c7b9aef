//! Bodies that have a provider compact a conversation itself (R78).

use super::body::{BodyComposer, ComposedBody};
use super::encoding_cache::EncodingCache;
use super::reasoning_choice::{ReasoningChoice, ReasoningContext};
use super::request::RenderRequest;
use super::summary_body::{CoveredMessages, summary_params};
use crate::clock::Ms;
use crate::error::Result;
use crate::finding::Report;
use crate::history::History;
use crate::json::{JsonRef, ObjectWriter};
use crate::message::PrefixMark;
use crate::provider::{ProviderRequest, spec};

/// A request for a provider's own compaction.
#[derive(Clone, Debug, PartialEq)]
pub struct ProviderCompactionBody {
    /// UTF-8 JSON.
    pub body: Vec<u8>,
    /// What it contains: later answers with the same before them are bound to what the provider returns, too.
    pub mark: Option<PrefixMark>,
}

/// Returns the request for the provider's own compaction of the messages before the index `end` of a history: they are
/// what a request with the policy contains, but no reducer runs. `None` if the dialect's providers do not compact.
///
/// # Errors
/// `config_invalid` if the request's parameters or tools are invalid.
pub fn provider_compaction_body(
    history: &History,
    end: usize,
    request: &RenderRequest<'_>,
    now: Ms,
) -> Result<Option<ProviderCompactionBody>> {
    let spec = spec(request.provider.dialect);
    let Some(compaction) = spec.provider_compaction.as_ref() else { return Ok(None) };
    // Nothing that needs a header of its own: `summarize` gets none.
    let params = (compaction.params)(summary_params(request.provider).view());
    let provider = ProviderRequest { params, stream: false, ..request.provider.clone() };
    let request = RenderRequest { provider: &provider, ..*request };
    // Those in the list of messages are sent again after the compaction, and those beside it with it.
    let is_kept = |message: &_, is_leading| spec.is_outside_list(message, is_leading);
    let stored_count = history.messages().len();
    let composed = CoveredMessages { history, end }.drafted(&request, &is_kept, now, &mut |draft, request| {
        let context = ReasoningContext { history: Some(history), is_kept_by_service: false, agent: None };
        let composer = BodyComposer {
            cache: &mut EncodingCache::default(),
            stored_count,
            request,
            reference: None,
            is_continued: false,
            reasoning: ReasoningChoice::Accepted(context),
        };
        let mut body = Vec::new();
        let ComposedBody { mark, .. } = composer.compose(&draft, &mut Report::new(), &mut body)?;
        Ok(ProviderCompactionBody { body, mark })
    })?;
    let body = match compaction.members {
        Some(members) => with_members(&composed.body, members),
        None => composed.body,
    };
    Ok(Some(ProviderCompactionBody { body, ..composed }))
}

/// Returns a body without other members than these.
fn with_members(body: &[u8], members: &[&str]) -> Vec<u8> {
    let text = String::from_utf8_lossy(body);
    let Ok(view) = JsonRef::parse(&text) else { return body.to_vec() };
    let kept = ObjectWriter::build(|out| {
        for (key, value) in view.entries().filter(|(key, _)| members.iter().any(|name| key.is_text(name))) {
            out.copy(key, value);
        }
    });
    kept.as_str().as_bytes().to_vec()
}
