//! Bodies that ask a model for a summary: of a reducer, or of a compaction.

use super::body::BodyComposer;
use super::called_tools::called_tools;
use super::encoding_cache::EncodingCache;
use super::reasoning_choice::{ReasoningChoice, ReasoningContext};
use super::request::RenderRequest;
use crate::clock::Ms;
use crate::error::Result;
use crate::finding::Report;
use crate::history::History;
use crate::json::{Json, ObjectWriter};
use crate::message::{Message, Role};
use crate::provider::{ProviderRequest, extra_content, names_tool_choice, spec};
use crate::replay::{
    DraftMessage, DraftOrigin, HistoryScope, Policy, PolicyLayer, ReducerCache, ReducerReplies, ReplayInput,
    RequestDraft, TrimmedResults, estimated_tokens as draft_tokens, replay,
};

/// The last message of a body that asks a model for a summary.
const SUMMARY_PROMPT: &str = "Summarize the conversation above for someone who continues it: the facts, decisions, results and open questions. Answer with the summary alone.";

/// The messages that a compaction covers.
#[derive(Clone, Copy)]
pub struct CoveredMessages<'h> {
    pub history: &'h History,
    /// The index after the last one.
    pub end: usize,
}

impl CoveredMessages<'_> {
    /// Calls a function with the draft of these messages, as the policy shows them; in their place an earlier
    /// compaction, if there is one. Reducers are not run: the summary must contain what they would drop. Of the system
    /// messages only those are in it for which `is_kept` returns true, given whether only such precede it: later
    /// requests have them all.
    pub fn drafted<T>(
        self,
        request: &RenderRequest<'_>,
        is_kept: &dyn Fn(&Message, bool) -> bool,
        now: Ms,
        build: &mut dyn FnMut(RequestDraft<'_>, &RenderRequest<'_>) -> Result<T>,
    ) -> Result<T> {
        let Self { history, end } = self;
        let call = PolicyLayer { reducers: Some(Vec::new()), ..request.policy.call.clone() };
        let policy = Policy { call, fallback: None, ..request.policy.clone() };
        let mut trimmed = TrimmedResults::default();
        trimmed.update(history, &policy);
        let (cache, replies) = (ReducerCache::default(), ReducerReplies::default());
        let compacted_before = request.compacted_before(history, end);
        let input = ReplayInput {
            history,
            live: None,
            trimmed: Some(&trimmed),
            delta: None,
            dialect: Some(request.provider.dialect),
            compaction: request.compaction(history).filter(|_| compacted_before == 0),
            compacted_before,
            extra_content,
            policy: &policy,
            handoffs: &[],
            scope: HistoryScope::Whole,
            sent: None,
            now,
            cache: &cache,
            replies: &replies,
        };
        // Without reducers there is no question.
        let mut draft = replay(&input, &mut Report::new()).unwrap_or_default();
        let mut is_leading = true;
        draft.retain(&mut |item| {
            let is_first = is_leading;
            is_leading &= item.is_system();
            match item.origin {
                DraftOrigin::Stored(index) => index < end && (!item.is_system() || is_kept(item.message, is_first)),
                DraftOrigin::Replacement => true,
                // A late result is sent after the summary, too.
                DraftOrigin::Live(_) | DraftOrigin::Created | DraftOrigin::LateResult => false,
            }
        });
        build(draft, &RenderRequest { policy: &policy, ..*request })
    }
}

/// Returns the estimated tokens of a history, as the policy shows it without reducers.
#[must_use]
pub fn estimated_tokens(history: &History, request: &RenderRequest<'_>, now: Ms) -> u64 {
    let all = CoveredMessages { history, end: history.messages().len() };
    // Counting does not fail.
    all.drafted(request, &|_, _| true, now, &mut |draft, _| Ok(draft_tokens(&draft))).unwrap_or(0)
}

/// Returns the body that asks for a summary of these messages.
///
/// # Errors
/// `config_invalid` if the request's parameters are invalid.
pub fn compaction_body(history: &History, end: usize, request: &RenderRequest<'_>, now: Ms) -> Result<Vec<u8>> {
    let stored_count = history.messages().len();
    CoveredMessages { history, end }.drafted(request, &|_, _| false, now, &mut |draft, request| {
        let tools = called_tools(&draft, request);
        let tools = if tools.is_empty() { request.tools } else { &tools };
        summary_body(draft, stored_count, &RenderRequest { tools, ..*request })
    })
}

/// Returns the body that asks for a summary of a draft. It forces no tool and is not streamed.
///
/// # Errors
/// `config_invalid` if the request's parameters are invalid.
pub fn summary_body(draft: RequestDraft<'_>, stored_count: usize, request: &RenderRequest<'_>) -> Result<Vec<u8>> {
    let prompt = Message::from_text(Role::User, SUMMARY_PROMPT);
    let mut draft = draft;
    draft.messages.push(DraftMessage::created(&prompt, DraftOrigin::Created));
    let params = summary_params(request.provider);
    let provider = ProviderRequest { params, stream: false, ..request.provider.clone() };
    let request = RenderRequest { provider: &provider, ..*request };
    let composer = BodyComposer {
        cache: &mut EncodingCache::default(),
        stored_count,
        request: &request,
        reference: None,
        is_continued: false,
        reasoning: ReasoningChoice::Accepted(ReasoningContext::default()),
    };
    let mut body = Vec::new();
    composer.compose(&draft, &mut Report::new(), &mut body)?;
    Ok(body)
}

/// Returns the parameters of a request for a summary, which forces no tool and is not streamed.
pub fn summary_params(provider: &ProviderRequest) -> Json {
    let stream_members = spec(provider.dialect).body.stream_members;
    ObjectWriter::build(|out| {
        for (key, value) in provider.params.view().entries() {
            let name = key.as_text().unwrap_or_default();
            if !names_tool_choice(&name) && !stream_members.contains(&&*name) {
                out.copy(key, value);
            }
        }
    })
}
