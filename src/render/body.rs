//! Composes a body: its head, then the encodings of its messages, most of them copied from the cache.

use super::encoding_cache::{EncodedSpan, EncodingCache};
use super::joined_message::JoinedMessage;
use super::message_encoder::MessageEncoder;
use super::request::RenderRequest;
use super::system_placement::SystemPlacement;
use crate::error::Result;
use crate::finding::{Report, Severity};
use crate::json::ObjectWriter;
use crate::message::{Dialect, Role};
use crate::provider::{RepairOptions, repair_rendered};
use crate::replay::{DraftMessage, DraftOrigin, RequestDraft};

/// Takes the bytes of a body, so that a host can have them in its own memory without another copy.
pub trait BodyBuffer {
    /// Reserves memory. Called once, with the exact length of the body, before its bytes.
    fn reserve(&mut self, length: usize);

    /// Appends bytes.
    fn push(&mut self, bytes: &[u8]);
}

impl BodyBuffer for Vec<u8> {
    fn reserve(&mut self, length: usize) {
        self.reserve_exact(length);
    }

    fn push(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }
}

/// Composes the body of a request.
pub struct BodyComposer<'c> {
    /// The encodings of the request's dialect.
    pub cache: &'c mut EncodingCache,
    /// The number of messages in history.
    pub stored_count: usize,
    pub request: &'c RenderRequest<'c>,
    /// The member that names what the service keeps of the conversation, and its value.
    pub reference: Option<(&'static str, &'c str)>,
    /// True if the application adds messages, so that the last one may be any.
    pub is_continued: bool,
}

impl BodyComposer<'_> {
    /// Composes the body of a draft in `out`. Returns the number of leading wire messages that are byte-identical to the last body of the cache.
    ///
    /// # Errors
    /// `config_invalid` if the request's parameters or tools are invalid.
    pub fn compose(self, draft: &RequestDraft<'_>, report: &mut Report, out: &mut dyn BodyBuffer) -> Result<u32> {
        let Self { cache, stored_count, request, reference, is_continued } = self;
        let encoder = MessageEncoder::new(request.provider);
        let mut head = String::new();
        let mut object = ObjectWriter::new(&mut head);
        request.provider.write_head(&mut object, request.tools, report)?;
        let system = SystemPlacement::of(encoder.codec, draft, request.instructions, report);
        if let Some((name, value)) = &system.member {
            object.json(name, value.view());
        }
        if let Some((name, id)) = reference {
            object.text(name, id);
        }
        object.key(encoder.codec.list()).push('[');

        cache.prepare(encoder.settings_signature(), stored_count);
        let mut body = BodyBuilder::new(head, encoder, cache);
        body.spans.reserve(draft.messages.len() + 1);
        if let Some(instructions) = &system.instructions {
            let item = DraftMessage::created(instructions, DraftOrigin::Live(0));
            body.push_fresh(JoinedMessage { item: &item, before: &[] }, report);
        }
        for index in (0..draft.messages.len()).filter(|index| !system.is_in_member(*index)) {
            if let Some(message) = JoinedMessage::at(draft, index) {
                body.push(message, report);
            }
        }
        body.check_first_and_last(is_continued);
        body.check_cache_breakpoints();
        if body.is_valid() {
            body.assemble(out);
            return Ok(body.stable_prefix(usize::MAX));
        }
        let mut composed = Vec::new();
        body.assemble(&mut composed);
        let (bytes, changed) = repaired(composed, request.provider.dialect, report);
        out.reserve(bytes.len());
        out.push(&bytes);
        Ok(body.stable_prefix(changed))
    }
}

/// Repairs a body that the rules of its dialect may reject. Stored messages do not change. Returns the body, and the index of its first
/// changed byte.
fn repaired(body: Vec<u8>, dialect: Dialect, report: &mut Report) -> (Vec<u8>, usize) {
    let (repaired, findings) = repair_rendered(&body, dialect, &RepairOptions::default());
    for finding in findings {
        if finding.severity == Severity::Error {
            report.push(finding.with_severity(Severity::Warning));
        }
    }
    if repaired == body {
        return (body, usize::MAX);
    }
    let changed = repaired.iter().zip(&body).take_while(|(new, old)| new == old).count();
    (repaired, changed)
}

/// The end of a body, after its messages.
const END: &[u8] = b"]}";

/// The encoding of a message in a body.
#[derive(Clone, Copy)]
struct BodySpan {
    /// True if it is in `fresh`, false if it is in the cache.
    is_fresh: bool,
    span: EncodedSpan,
}

/// A body while its messages are added.
struct BodyBuilder<'c, 'd, 'h> {
    /// The body up to the first message.
    head: String,
    encoder: MessageEncoder,
    cache: &'c mut EncodingCache,
    /// In the order of the messages.
    spans: Vec<BodySpan>,
    /// The encodings of messages that are not stored.
    fresh: String,
    /// True until a message of the user.
    is_leading: bool,
    /// False if the dialect's rules may reject the first messages.
    may_begin: bool,
    /// The last message that has a wire form.
    newest: Option<&'d DraftMessage<'h>>,
}

impl<'c, 'd, 'h> BodyBuilder<'c, 'd, 'h> {
    fn new(head: String, encoder: MessageEncoder, cache: &'c mut EncodingCache) -> Self {
        let (spans, fresh) = (Vec::new(), String::new());
        Self { head, encoder, cache, spans, fresh, is_leading: true, may_begin: true, newest: None }
    }

    /// Adds the next message of the draft.
    fn push(&mut self, message: JoinedMessage<'d, 'h>, report: &mut Report) {
        match message.item.origin {
            DraftOrigin::Stored(index) => self.push_stored(index, message, report),
            DraftOrigin::Live(_) | DraftOrigin::Created | DraftOrigin::Replacement | DraftOrigin::LateResult => {
                self.push_fresh(message, report);
            }
        }
        let item = message.item;
        let codec = self.encoder.codec;
        if let Some(BodySpan { span, .. }) = self.spans.last_mut().filter(|last| last.span.count > 0) {
            self.is_leading &= item.message.role != Role::User;
            self.may_begin &= !self.is_leading || codec.may_begin(item);
            span.is_valid &= self.newest.replace(item).is_none_or(|before| codec.may_follow(before, item));
        }
    }

    /// Adds a stored message. It is encoded if its encoding is not cached.
    fn push_stored(&mut self, index: usize, message: JoinedMessage<'_, '_>, report: &mut Report) {
        let encoder = &self.encoder;
        let mut encode = |out: &mut String, report: &mut Report| encoder.encode(out, message, report);
        let span = self.cache.span(index, message.signature(), report, &mut encode);
        self.spans.push(BodySpan { is_fresh: false, span });
    }

    /// Adds a message that is not stored.
    fn push_fresh(&mut self, message: JoinedMessage<'_, '_>, report: &mut Report) {
        let start = self.fresh.len();
        let encoding = self.encoder.encode(&mut self.fresh, message, report);
        self.spans.push(BodySpan { is_fresh: true, span: EncodedSpan::of(&self.fresh, start, encoding) });
    }

    /// Checks that the dialect allows the first and the last message at their places. If the body is continued, any may be the last.
    fn check_first_and_last(&mut self, is_continued: bool) {
        if let Some(first) = self.spans.first_mut() {
            first.span.is_valid &= self.may_begin;
        }
        let last = self.spans.iter_mut().rev().find(|last| last.span.count > 0);
        if let Some(last) = last.filter(|_| !is_continued) {
            last.span.is_valid &= self.newest.is_none_or(|item| self.encoder.codec.may_end(item));
        }
    }

    /// Checks that the body has no more cache breakpoints than the dialect allows.
    fn check_cache_breakpoints(&mut self) {
        let Some(breakpoints) = self.encoder.codec.cache_breakpoints() else { return };
        let count: usize = self.spans.iter().map(|body_span| body_span.span.cache_breakpoints).sum();
        if count > 0 && count + self.encoder.cache_breakpoints_in(&self.head) > breakpoints.limit {
            self.spans
                .iter_mut()
                .for_each(|body_span| body_span.span.is_valid &= body_span.span.cache_breakpoints == 0);
        }
    }

    /// Returns false if the rules of the dialect may reject the body.
    fn is_valid(&self) -> bool {
        self.spans.iter().all(|body_span| body_span.span.is_valid)
    }

    /// Returns the number of leading wire messages that are those of the last body. `changed` is the index of the first byte that a
    /// repair changed.
    fn stable_prefix(&mut self, changed: usize) -> u32 {
        let spans = self.spans.iter().map(|body_span| body_span.span);
        self.cache.stable_prefix(spans, self.head.len()..changed)
    }

    /// Writes the bytes of the body.
    fn assemble(&self, out: &mut dyn BodyBuffer) {
        let ranges = self.merged_spans();
        let messages: usize = ranges.iter().map(|range| range.span.end - range.span.start).sum();
        let commas = ranges.len().saturating_sub(1);
        out.reserve(self.head.len() + messages + commas + END.len());
        out.push(self.head.as_bytes());
        for (at, BodySpan { is_fresh, span }) in ranges.iter().enumerate() {
            if at > 0 {
                out.push(b",");
            }
            let text = if *is_fresh { self.fresh.as_str() } else { self.cache.text() };
            out.push(text.as_bytes().get(span.start..span.end).unwrap_or(&[]));
        }
        out.push(END);
    }

    /// Returns the spans that are not empty. Spans that are adjacent in the cache are one, so that an unchanged history is one copy.
    fn merged_spans(&self) -> Vec<BodySpan> {
        let mut merged: Vec<BodySpan> = Vec::new();
        for next in self.spans.iter().filter(|next| next.span.end > next.span.start) {
            match merged.last_mut() {
                Some(last) if !last.is_fresh && !next.is_fresh && last.span.end + 1 == next.span.start => {
                    last.span.end = next.span.end;
                }
                _ => merged.push(*next),
            }
        }
        merged
    }
}
