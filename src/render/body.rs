//! Composes a body: its head, then the encodings of its messages.

use super::body_buffer::BodyBuffer;
use super::body_builder::BodyBuilder;
use super::composed_head::ComposedHead;
use super::encoding_cache::EncodingCache;
use super::joined_message::JoinedMessage;
use super::message_encoder::MessageEncoder;
use super::missing_reasoning::report_missing;
use super::prefix_reuse::PrefixReuse;
use super::reasoning_choice::ReasoningChoice;
use super::reasoning_selection::ReasoningSelection;
use super::request::RenderRequest;
use super::service_reference::ServiceReference;
use super::settled_body::BodyLedger;
use super::system_placement::SystemPlacement;
use crate::error::Result;
use crate::finding::Report;
use crate::message::PrefixMark;
use crate::replay::{DraftMessage, DraftOrigin, RequestDraft};

/// Composes the body of a request.
pub struct BodyComposer<'c> {
    /// The encodings of the request's dialect.
    pub cache: &'c mut EncodingCache,
    /// The number of messages in history.
    pub stored_count: usize,
    pub request: &'c RenderRequest<'c>,
    /// What the service keeps of the conversation.
    pub reference: Option<&'c ServiceReference>,
    /// True if the application adds messages, so that the last one may be any.
    pub is_continued: bool,
    /// Which reasoning the body contains.
    pub reasoning: ReasoningChoice<'c>,
}

/// What composing a body found out.
pub struct ComposedBody {
    /// The number of leading wire messages that are byte-identical to the last body of the cache.
    pub stable_prefix: u32,
    pub prefix: PrefixReuse,
    /// What the request contains, for its answer.
    pub mark: Option<PrefixMark>,
    /// The answers in the body, if it is changed before it is sent.
    pub ledger: Option<Box<BodyLedger>>,
}

impl BodyComposer<'_> {
    /// Composes the body of a draft in `out`.
    ///
    /// # Errors
    /// `config_invalid` if the request's parameters or tools are invalid.
    pub fn compose(
        self,
        draft: &RequestDraft<'_>,
        report: &mut Report,
        out: &mut dyn BodyBuffer,
    ) -> Result<ComposedBody> {
        let head = ComposedHead::new(draft, self.request, self.cache, report)?;
        Ok(self.compose_after(&head, draft, report, out))
    }

    /// As [`compose`](Self::compose), after a head.
    pub fn compose_after(
        self,
        head: &ComposedHead,
        draft: &RequestDraft<'_>,
        report: &mut Report,
        out: &mut dyn BodyBuffer,
    ) -> ComposedBody {
        let Self { cache, stored_count, request, reference, is_continued, reasoning } = self;
        let encoder = MessageEncoder::new(request.provider);
        cache.prepare(encoder.settings_signature(), stored_count);
        let head_members = head.members(request, reasoning.context().agent);
        let mut body = BodyBuilder::new(head.text(reference), encoder, cache);
        push_messages(&mut body, draft, &head.system, report);
        body.check_first_and_last(is_continued);
        body.check_cache_breakpoints();
        body.check_unique_names();
        let mut selection = ReasoningSelection::new(request, reasoning, &head_members, &mut body);
        if body.is_valid() {
            selection.leave_out(&mut body, draft, report);
        }
        let (settled, changed) = if body.is_valid() {
            if selection.is_final() {
                report_missing(&body, draft, request.provider, report);
            }
            body.assemble(out);
            (None, usize::MAX)
        } else {
            let mut composed = Vec::new();
            body.assemble(&mut composed);
            let (repaired, changed) = selection.repaired(composed, &body, draft, report);
            out.reserve(repaired.body.len());
            out.push(&repaired.body);
            (Some(repaired.mark), changed)
        };
        let stable = body.stable_prefix(changed);
        let texts = head_members.texts(request.provider);
        let prefix = selection.reuse((stable, changed), texts, &mut body, (draft, report));
        let mark = settled.unwrap_or_else(|| selection.mark(draft, stable.list));
        let ledger = selection.is_deferred().then(|| Box::new(selection.body_ledger(&body, draft, report)));
        ComposedBody { stable_prefix: stable.messages, prefix, mark, ledger }
    }
}

/// Adds the instructions and the messages that are items of the list.
fn push_messages<'d>(
    body: &mut BodyBuilder<'_, 'd, 'd>,
    draft: &'d RequestDraft<'d>,
    system: &SystemPlacement,
    report: &mut Report,
) {
    body.spans.reserve(draft.messages.len() + 1);
    if let Some(instructions) = &system.instructions {
        let item = DraftMessage::created(instructions, DraftOrigin::Live(0));
        body.push_fresh(None, JoinedMessage { item: &item, before: &[] }, report);
    }
    for index in (0..draft.messages.len()).filter(|index| !system.is_in_member(*index)) {
        if let Some(message) = JoinedMessage::at(draft, index) {
            body.push(index, message, report);
        }
    }
}
