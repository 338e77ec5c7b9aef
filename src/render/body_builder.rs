//! A body while its messages are added: the spans of their encodings, most of them in the cache.

use super::body_buffer::BodyBuffer;
use super::encoded_text::EncodedText;
use super::encoding_cache::{EncodedSpan, EncodingCache, StablePrefix};
use super::joined_message::JoinedMessage;
use super::message_encoder::MessageEncoder;
use crate::finding::Report;
use crate::json::Json;
use crate::message::Role;
use crate::replay::{DraftMessage, DraftOrigin};

/// The end of a body, after its messages.
const END: &[u8] = b"]}";

/// The encoding of a message in a body.
#[derive(Clone, Copy)]
pub struct BodySpan {
    /// True if it is in `fresh`, false if it is in the cache.
    pub is_fresh: bool,
    /// The index of the message in the draft.
    pub index: Option<usize>,
    pub span: EncodedSpan,
}

/// A body while its messages are added.
pub struct BodyBuilder<'c, 'd, 'h> {
    /// The body up to the first message.
    head: String,
    pub encoder: MessageEncoder,
    pub cache: &'c mut EncodingCache,
    /// In the order of the messages.
    pub spans: Vec<BodySpan>,
    /// The encodings of messages that are not stored.
    pub fresh: EncodedText,
    /// True until a message of the user.
    is_leading: bool,
    /// False if the dialect's rules may reject the first messages.
    may_begin: bool,
    /// The last message that has a wire form.
    newest: Option<&'d DraftMessage<'h>>,
}

impl<'c, 'd, 'h> BodyBuilder<'c, 'd, 'h> {
    pub fn new(head: String, encoder: MessageEncoder, cache: &'c mut EncodingCache) -> Self {
        let (spans, fresh) = (Vec::new(), EncodedText::default());
        Self { head, encoder, cache, spans, fresh, is_leading: true, may_begin: true, newest: None }
    }

    /// Adds the next message of the draft.
    pub fn push(&mut self, index: usize, message: JoinedMessage<'d, 'h>, report: &mut Report) {
        match message.item.origin {
            DraftOrigin::Stored(stored) => self.push_stored(index, stored, message, report),
            DraftOrigin::Live(_) | DraftOrigin::Created | DraftOrigin::Replacement | DraftOrigin::LateResult => {
                self.push_fresh(Some(index), message, report);
            }
        }
        let item = message.item;
        if self.encoder.begins_list(item) {
            // A reducer may have put something before it.
            let (last, earlier) = self.spans.split_last_mut().unzip();
            if let (Some(last), Some(earlier)) = (last, earlier) {
                last.span.is_valid &= earlier.iter().all(|body_span| body_span.span.count == 0);
            }
        }
        let spec = self.encoder.spec;
        if let Some(BodySpan { span, .. }) = self.spans.last_mut().filter(|last| last.span.count > 0) {
            self.is_leading &= item.message.role != Role::User;
            self.may_begin &= !self.is_leading || spec.messages.may_begin(item);
            span.is_valid &= self.newest.replace(item).is_none_or(|before| spec.messages.may_follow(before, item));
        }
    }

    /// Adds a stored message. It is encoded if its encoding is not cached.
    pub fn push_stored(&mut self, index: usize, stored: usize, message: JoinedMessage<'_, '_>, report: &mut Report) {
        let encoder = &self.encoder;
        let mut encode = |out: &mut EncodedText, report: &mut Report| encoder.encode(out, message, report);
        let span = self.cache.span(stored, message.signature(), report, &mut encode);
        self.spans.push(BodySpan { is_fresh: false, index: Some(index), span });
    }

    /// Adds a message that is not stored.
    pub fn push_fresh(&mut self, index: Option<usize>, message: JoinedMessage<'_, '_>, report: &mut Report) {
        let start = (self.fresh.text.len(), self.fresh.hashes.len());
        let encoding = self.encoder.encode(&mut self.fresh, message, report);
        self.spans.push(BodySpan { is_fresh: true, index, span: EncodedSpan::of(&self.fresh, start, encoding) });
    }

    /// Returns an answer without its reasoning.
    pub fn without_reasoning(&mut self, from: BodySpan, message: JoinedMessage<'_, '_>) -> BodySpan {
        let (encoder, EncodedSpan { start, end, .. }) = (&self.encoder, from.span);
        let mut encode = |out: &mut EncodedText| {
            let encoded = out.text.get(start..end).unwrap_or_default().to_owned();
            encoder.encode_bare(out, message, &encoded)
        };
        let span = match message.item.origin {
            DraftOrigin::Stored(stored) if !from.is_fresh => {
                self.cache.bare_span(stored, message.signature(), &mut encode)
            }
            _ => {
                let start = (self.fresh.text.len(), self.fresh.hashes.len());
                let encoding = encode(&mut self.fresh);
                EncodedSpan::of(&self.fresh, start, encoding)
            }
        };
        BodySpan { span, ..from }
    }

    /// Returns what a span refers to.
    pub fn encoded(&self, body_span: &BodySpan) -> &EncodedText {
        if body_span.is_fresh { &self.fresh } else { self.cache.encoded() }
    }

    /// Marks the body as one that the rules must check.
    pub fn require_check(&mut self) {
        if let Some(last) = self.spans.last_mut() {
            last.span.is_valid = false;
        }
    }

    /// Checks that the dialect allows the first and the last message at their places. If the body is continued, any may
    /// be the last.
    pub fn check_first_and_last(&mut self, is_continued: bool) {
        if let Some(first) = self.spans.first_mut() {
            first.span.is_valid &= self.may_begin;
        }
        let last = self.spans.iter_mut().rev().find(|last| last.span.count > 0);
        if let Some(last) = last.filter(|_| !is_continued) {
            last.span.is_valid &= self.newest.is_none_or(|item| self.encoder.spec.messages.may_end(item));
        }
    }

    /// Checks that the body has no more cache breakpoints than the dialect allows.
    pub fn check_cache_breakpoints(&mut self) {
        let Some(breakpoints) = self.encoder.spec.prompt_cache.breakpoints else { return };
        let count: usize = self.spans.iter().map(|body_span| body_span.span.cache_breakpoints).sum();
        if count > 0 && count + self.encoder.cache_breakpoints_in(&self.head) > breakpoints.limit {
            self.spans
                .iter_mut()
                .for_each(|body_span| body_span.span.is_valid &= body_span.span.cache_breakpoints == 0);
        }
    }

    /// Checks that no name which is unique in a body comes twice.
    pub fn check_unique_names(&mut self) {
        let Some(names) = &self.encoder.spec.rules.unique_names else { return };
        let named = |span: &&BodySpan| span.span.unique_names > 0;
        if self.spans.iter().map(|body_span| body_span.span.unique_names).sum::<usize>() < 2 {
            return;
        }
        let lists: Vec<Json> = self
            .spans
            .iter()
            .filter(named)
            .map(|body_span| {
                let text = self.encoded(body_span).text.get(body_span.span.start..body_span.span.end);
                Json::trusted(format!("[{}]", text.unwrap_or_default()))
            })
            .collect();
        let messages: Vec<_> = lists.iter().flat_map(|list| list.view().items()).collect();
        if (names.repeats)(&messages) {
            self.spans.iter_mut().for_each(|body_span| body_span.span.is_valid &= body_span.span.unique_names == 0);
        }
    }

    /// Returns false if the rules of the dialect may reject the body.
    pub fn is_valid(&self) -> bool {
        self.spans.iter().all(|body_span| body_span.span.is_valid)
    }

    /// Returns how much of the last body this one repeats. `changed` is the index of the first byte that a repair
    /// changed.
    pub fn stable_prefix(&mut self, changed: usize) -> StablePrefix {
        let spans = self.spans.iter().map(|body_span| (body_span.span, body_span.is_fresh));
        self.cache.stable_prefix(spans, &self.fresh, self.head.len()..changed)
    }

    /// Writes the bytes of the body.
    pub fn assemble(&self, out: &mut dyn BodyBuffer) {
        let ranges = self.merged_spans();
        let messages: usize = ranges.iter().map(|range| range.span.end - range.span.start).sum();
        let commas = ranges.len().saturating_sub(1);
        out.reserve(self.head.len() + messages + commas + END.len());
        out.push(self.head.as_bytes());
        for (at, range) in ranges.iter().enumerate() {
            if at > 0 {
                out.push(b",");
            }
            let text = self.encoded(range).text.as_bytes();
            out.push(text.get(range.span.start..range.span.end).unwrap_or(&[]));
        }
        out.push(END);
    }

    /// Returns the spans that are not empty. Spans that are adjacent in the cache are one, so that an unchanged history
    /// is one copy.
    pub fn merged_spans(&self) -> Vec<BodySpan> {
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
