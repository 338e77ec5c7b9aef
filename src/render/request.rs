//! What a renderer builds a body from.

use crate::clock::Ms;
use crate::history::{ActiveSummary, History};
use crate::message::Message;
use crate::owner::StateOwner;
use crate::provider::{ProviderRequest, Readability, ReasoningReader, ToolDefinition, spec};
use crate::replay::{HandoffView, HistoryScope, Policy, SentRequest, UnboundReasoning};
use std::borrow::Cow;

/// The request that a render builds.
pub struct RenderRequest<'r> {
    /// The dialect, the parameters and the server's settings.
    pub provider: &'r ProviderRequest,
    /// The system message.
    pub instructions: Option<&'r str>,
    /// The definitions of the tools.
    pub tools: &'r [ToolDefinition],
    /// What the model is shown.
    pub policy: &'r Policy,
}

impl<'r> RenderRequest<'r> {
    /// Returns the provider as the request names it: with what lets its service drop reasoning, if the policy says so.
    #[must_use]
    pub fn sent_provider(&self) -> Cow<'r, ProviderRequest> {
        let drops = self.policy.unbound_reasoning() == UnboundReasoning::DropBlock;
        let dropping = drops.then(|| self.provider.dropping_unbound()).flatten();
        dropping.map_or(Cow::Borrowed(self.provider), Cow::Owned)
    }

    /// Returns the provider as a body names it. `is_kept`: the owner's service keeps the request.
    #[must_use]
    pub fn provider_of_body(&self, is_kept: bool) -> Cow<'r, ProviderRequest> {
        let sent = self.sent_provider();
        if is_kept { sent.kept_by_service().map_or(sent, Cow::Owned) } else { sent }
    }

    /// Returns true if the request lets the service drop reasoning whose prefix has changed.
    #[must_use]
    pub fn lets_service_drop(&self) -> bool {
        matches!(self.sent_provider(), Cow::Owned(_))
    }

    /// Returns the newest compaction that the provider can read: a summary in text, or items of its own dialect that
    /// were made where its reasoning could be, too.
    #[must_use]
    pub fn compaction<'h>(&self, history: &'h History) -> Option<&'h ActiveSummary> {
        history.compaction_where(&|summary| self.reads_summary(summary))
    }

    /// Returns the index of the newest stored answer before the index `end` that begins with what the provider itself
    /// says stands for all before it, if no compaction covers it; 0 without one.
    #[must_use]
    pub fn compacted_before(&self, history: &History, end: usize) -> usize {
        let spec = spec(self.provider.dialect);
        if spec.provider_compaction.is_none() {
            return 0;
        }
        let covered = self.compaction(history).map_or(0, |compaction| compaction.end);
        // What was imported is sent whole: who made it is not known.
        let is_made = |message: &Message| message.answer.as_deref().is_some_and(|answer| answer.maker.is_some());
        let begins = |message: &Message| spec.begins_with_compaction(message) && is_made(message);
        let end = end.min(history.messages().len());
        let uncovered = history.messages().get(covered..end).unwrap_or_default();
        let newest = uncovered.iter().rposition(|message| begins(message) && self.reads(message));
        newest.map_or(0, |index| covered + index)
    }

    fn reads_summary(&self, summary: &ActiveSummary) -> bool {
        summary.is_for(Some(self.provider.dialect)) && self.reads(&summary.stored.message)
    }

    /// Returns true if the provider can read what was made where a message was.
    fn reads(&self, message: &Message) -> bool {
        let Some(answer) = message.answer.as_deref() else { return true };
        let reader = ReasoningReader::new(self.provider, self.policy.same_makers());
        reader.reads(spec(self.provider.dialect).reasoning, Some(answer)) == Readability::Readable
    }

    /// Returns the provider as a request of this owner names it, with all headers.
    #[must_use]
    pub fn provider_for(&self, owner: &StateOwner, history: &History) -> Cow<'r, ProviderRequest> {
        let sent = self.sent_provider();
        let sent = sent.with_service_header(owner).map_or(sent, Cow::Owned);
        let needs_header = *owner != StateOwner::Caller && self.may_send_provider_compaction(owner, history);
        needs_header.then(|| sent.with_compaction_header()).flatten().map_or(sent, Cow::Owned)
    }

    /// Returns true if a request may begin with what the provider returned as a compaction: a run keeps the one that it
    /// began with.
    fn may_send_provider_compaction(&self, owner: &StateOwner, history: &History) -> bool {
        let is_of_provider =
            |summary: &ActiveSummary| summary.stored.message.dialect.is_some() && self.reads_summary(summary);
        history.compaction_where(&is_of_provider).is_some()
            || !owner.is_stateful() && self.compacted_before(history, usize::MAX) > 0
    }

    /// Returns the headers that the provider needs beside those of the application, or with another value.
    #[must_use]
    pub fn added_headers(&self, owner: &StateOwner, history: &History) -> Vec<(String, String)> {
        let sent = self.provider_for(owner, history);
        sent.headers.iter().filter(|header| !self.provider.headers.contains(header)).cloned().collect()
    }
}

/// The conversation that a render reads.
#[derive(Clone, Copy, Debug)]
pub struct RenderInput<'r> {
    /// The stored history. The policy applies to it.
    pub history: &'r History,
    /// A turn that is not in history yet. It follows the history.
    pub live: Option<&'r History>,
    /// The owner of the conversation's state.
    pub owner: &'r StateOwner,
    /// True if the request begins a chain of responses with the history, which then is the session's to send.
    pub begins_chain: bool,
    /// The handoffs of the run, in their order.
    pub handoffs: &'r [HandoffView],
    /// What of the history is sent.
    pub scope: HistoryScope<'r>,
    /// The last request of the session: [`Renderer::last_request`](super::Renderer::last_request).
    pub sent: Option<&'r SentRequest>,
    /// The agent that the request is of, if the run was handed off to one.
    pub agent: Option<&'r str>,
    /// The current time.
    pub now: Ms,
}

impl<'r> RenderInput<'r> {
    /// Returns the input of a request of this owner: without the stored messages, for which `nothing` is passed, if the
    /// application holds the conversation. Then the live turn contains it.
    #[must_use]
    pub fn without_stored_messages(self, nothing: &'r History) -> Self {
        if *self.owner == StateOwner::Caller { Self { history: nothing, ..self } } else { self }
    }
}
