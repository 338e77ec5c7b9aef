//! The cached encodings of one dialect.

use crate::finding::Report;
use crate::id::hash_words;
use std::ops::Range;

/// What an encoder returns besides the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireEncoding {
    /// The number of wire messages.
    pub count: u32,
    /// True if the dialect's rules accept it.
    pub is_valid: bool,
    /// The number of cache breakpoints in it, or more.
    pub cache_breakpoints: usize,
}

/// The range of a text that encodes one message, as zero or more wire messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodedSpan {
    pub start: usize,
    pub end: usize,
    /// The number of wire messages.
    pub count: u32,
    /// The hash of its bytes.
    pub hash: u64,
    /// True if the dialect's rules accept it; otherwise the body is repaired.
    pub is_valid: bool,
    /// The number of cache breakpoints in it, or more.
    pub cache_breakpoints: usize,
}

impl EncodedSpan {
    /// Returns the span from `start` to the end of `text`.
    pub fn of(text: &str, start: usize, encoding: WireEncoding) -> Self {
        let WireEncoding { count, is_valid, cache_breakpoints } = encoding;
        let encoded = text.get(start..).unwrap_or_default();
        let hash = hash_words(1, encoded.as_bytes());
        Self { start, end: text.len(), count, hash, is_valid, cache_breakpoints }
    }
}

/// Minimum number of encoded messages whose average length predicts the rest.
const FEW_MESSAGES: usize = 16;

/// Bytes of memory for the next message, above the average.
const RESERVED_AHEAD: usize = 8 * 1024;

/// The encodings of stored messages, by their index in history.
#[derive(Clone, Debug, Default)]
pub struct EncodingCache {
    /// The signature of the settings that the encodings depend on.
    settings: u64,
    text: String,
    /// The number of bytes of `text` that no span refers to any more.
    dead: usize,
    spans: Vec<Option<CachedMessage>>,
    /// Number of `Some` in `spans`.
    count: usize,
    /// The spans of the last body: hash and count.
    last: Vec<(u64, u32)>,
}

#[derive(Clone, Debug)]
struct CachedMessage {
    signature: u64,
    span: EncodedSpan,
    /// The findings of encoding it, which each body's report repeats.
    report: Report,
}

impl EncodingCache {
    /// Prepares for a body. Different settings or a shorter history clear the cache.
    pub fn prepare(&mut self, settings: u64, messages: usize) {
        if settings != self.settings || messages < self.spans.len() || self.dead > self.text.len() / 2 {
            self.text.clear();
            self.spans.clear();
            self.count = 0;
            self.dead = 0;
            self.settings = settings;
        }
        self.spans.resize_with(messages, || None);
    }

    /// Returns the text that the spans refer to.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the span of the message at `index` in history. Encodes the message if no encoding with this signature is cached.
    pub fn span(
        &mut self,
        index: usize,
        signature: u64,
        report: &mut Report,
        encode: &mut dyn FnMut(&mut String, &mut Report) -> WireEncoding,
    ) -> EncodedSpan {
        if index >= self.spans.len() {
            self.spans.resize_with(index + 1, || None);
        }
        let Some(cached) = self.spans.get_mut(index) else { return EncodedSpan::default() };
        if let Some(message) = cached.as_ref().filter(|message| message.signature == signature) {
            report.extend_from_slice(&message.report);
            return message.span;
        }
        match cached.take() {
            Some(old) => self.dead += old.span.end - old.span.start,
            None => self.count += 1,
        }
        self.reserve_rest(index);
        let start = self.text.len();
        let mut findings = Report::new();
        let encoding = encode(&mut self.text, &mut findings);
        let span = EncodedSpan::of(&self.text, start, encoding);
        if span.end > start {
            // With its comma in the cache, adjacent encodings are copied into a body at once.
            self.text.push(',');
        }
        report.extend_from_slice(&findings);
        if let Some(cached) = self.spans.get_mut(index) {
            *cached = Some(CachedMessage { signature, span, report: findings });
        }
        span
    }

    /// Reserves memory for the remaining messages of a first pass, from the average length so far. Otherwise the text of a long history
    /// is copied at each growth. Applies only after a sixteenth of the messages.
    fn reserve_rest(&mut self, index: usize) {
        let is_full = self.text.capacity().saturating_sub(self.text.len()) < RESERVED_AHEAD;
        let is_first_pass = self.count == index + 1 && self.dead == 0;
        let is_enough = index >= FEW_MESSAGES && index >= self.spans.len() / 16;
        if let (true, Some(average)) = (is_full && is_first_pass && is_enough, self.text.len().checked_div(index)) {
            let rest = self.spans.len().saturating_sub(index).saturating_mul(average);
            self.text.reserve(rest + rest / 16 + RESERVED_AHEAD);
        }
    }

    /// Returns the number of leading wire messages that are byte-identical to the last body, and keeps this body for the next call.
    ///
    /// `intact` are the bytes of the body from the first message to the first byte that a repair changed. Messages after it count as
    /// changed, in this call and in the next one.
    pub fn stable_prefix(&mut self, spans: impl Iterator<Item = EncodedSpan>, intact: Range<usize>) -> u32 {
        let mut at = intact.start;
        let mut now: Vec<(u64, u32)> = Vec::with_capacity(self.last.len() + 2);
        for span in spans.filter(|span| span.count > 0) {
            at += span.end - span.start + 1;
            if at > intact.end {
                break;
            }
            now.push((span.hash, span.count));
        }
        let mut same = 0;
        for (new, last) in now.iter().zip(&self.last) {
            if new != last {
                break;
            }
            same += new.1;
        }
        self.last = now;
        same
    }
}
