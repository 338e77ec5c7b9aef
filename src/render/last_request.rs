//! The last request of a session, as far as the next one repeats it (R72).

use super::request::{RenderInput, RenderRequest};
use crate::clock::Ms;
use crate::error::Result;
use crate::finding::Report;
use crate::id::hash_words;
use crate::json::ObjectWriter;
use crate::owner::StateOwner;
use crate::provider::spec;
use crate::replay::{Cut, HistoryScope, ReplayChanges, RequestIdentity, SentRequest};
use std::rc::Rc;

/// The last request of a session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LastRequest {
    /// What it contained of the history; `None` if the next one does not repeat it: its policy lets all of that change.
    pub sent: Option<Rc<SentRequest>>,
}

impl LastRequest {
    /// Reads the last request of a session's head, empty if it has none.
    #[must_use]
    pub fn stored(bytes: Option<&[u8]>) -> Option<Self> {
        let sent = SentRequest::from_bytes(bytes?)?;
        Some(Self { sent: Some(Rc::new(sent)) })
    }

    /// Returns the bytes for the session's head; none if the next request does not repeat this one.
    #[must_use]
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
        self.sent.as_ref()?.to_bytes()
    }
}

/// The last request of this process. Another process has sent a newer one if the session's head has another one than is
/// known here: the order is that of the store, since clocks of processes differ.
#[derive(Clone, Debug)]
pub(super) struct OwnRequest {
    request: LastRequest,
    /// What the head has: this request, or what it had when this one was made and nothing has stored it.
    head: Option<Vec<u8>>,
    is_stored: bool,
}

impl OwnRequest {
    /// Keeps a request that the head does not have yet; `head` is what it has.
    pub fn unstored(request: LastRequest, head: Option<&[u8]>) -> Self {
        Self { request, head: head.map(<[u8]>::to_vec), is_stored: false }
    }

    /// Keeps a request that the head has.
    pub fn stored(request: LastRequest) -> Self {
        let head = request.to_bytes();
        Self { request, head, is_stored: true }
    }

    /// Returns the request, if it is the newest one of the session, whose head has this.
    pub fn newest(&self, head: Option<&[u8]>) -> Option<&LastRequest> {
        (self.head.as_deref() == head).then_some(&self.request)
    }

    /// As [`newest`](Self::newest), if the head does not have it yet.
    pub fn newest_unstored(&self, head: Option<&[u8]>) -> Option<&LastRequest> {
        self.newest(head).filter(|_| !self.is_stored)
    }

    /// Notes that the head has a request: this one, or an earlier one of this process. Then this one is still the
    /// newest.
    pub fn on_stored(&mut self, stored: &LastRequest) {
        self.head = stored.to_bytes();
        self.is_stored = self.request == *stored;
    }
}

/// Whether a request repeats the last one of its session.
pub(super) struct RequestRepetition {
    /// What the provider's cache depends on; `None` if the next request does not repeat this one.
    identity: Option<RequestIdentity>,
    /// How long the provider keeps this request in its cache, in milliseconds.
    cache_life: Ms,
    /// Why the last request is not repeated.
    cut: Option<Cut>,
}

impl RequestRepetition {
    /// Decides whether a request repeats the last one, before its history is looked at.
    ///
    /// # Errors
    /// `config_invalid` if the request's parameters or tools are invalid.
    pub fn of(input: &RenderInput<'_>, request: &RenderRequest<'_>, is_kept_by_service: bool) -> Result<Self> {
        let repeats = request.policy.changes() == ReplayChanges::AtCuts
            && *input.owner == StateOwner::Session
            && !is_kept_by_service
            // Such a handoff shows its agent another history.
            && input.handoffs.is_empty();
        let identity = if repeats { Some(identity_of(request)?) } else { None };
        let cache_life = (spec(request.provider.dialect).prompt_cache.life)(request.provider.params.view());
        let is_chosen = matches!(input.scope, HistoryScope::Chosen { .. });
        let last = identity.zip(input.sent).filter(|_| !is_chosen);
        let cut = last.and_then(|(identity, sent)| sent.record.cut_before(input.now, &identity));
        Ok(Self { identity, cache_life, cut })
    }

    /// Returns the input of the replay: with the last request, if it is repeated.
    pub fn apply<'r>(&self, input: RenderInput<'r>) -> RenderInput<'r> {
        let repeats = self.identity.is_some() && self.cut.is_none();
        RenderInput { sent: input.sent.filter(|_| repeats), ..input }
    }

    /// Returns what the next request repeats.
    pub fn sent(&self, of_draft: impl FnOnce() -> SentRequest) -> Option<Rc<SentRequest>> {
        self.identity.map(|identity| {
            let mut sent = of_draft();
            (sent.record.identity, sent.record.cache_life) = (identity, self.cache_life);
            Rc::new(sent)
        })
    }

    /// Returns why the last request was not repeated, with what the replay found.
    pub fn cut(&self, of_replay: Option<Cut>) -> Option<Cut> {
        self.identity.and(self.cut.or(of_replay))
    }
}

/// Returns what the provider's cache of a request depends on besides its messages.
///
/// # Errors
/// `config_invalid` if the request's parameters or tools are invalid.
fn identity_of(request: &RenderRequest<'_>) -> Result<RequestIdentity> {
    let maker = request.provider.maker();
    let tools =
        request.provider.write_head(&mut ObjectWriter::new(&mut String::new()), request.tools, &mut Report::new())?;
    let hash = |seed: u64, text: &str| hash_words(seed, text.as_bytes());
    Ok(RequestIdentity {
        dialect: hash(1, request.provider.dialect.as_str()),
        host: maker.host.map_or(0, |host| hash(5, &host) | 1),
        model: hash(2, maker.model.as_deref().unwrap_or_default()),
        instructions: hash(3, request.instructions.unwrap_or_default()),
        tools: hash(4, tools.as_ref().map(crate::json::Json::as_str).unwrap_or_default()),
    })
}
