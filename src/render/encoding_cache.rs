//! The cached encodings of one dialect.

use super::encoded_text::{EncodedText, extend_prefix};
use crate::finding::Report;
use crate::json::Json;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;

/// What an encoder returns besides the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WireEncoding {
    /// The number of wire messages.
    pub count: u32,
    /// True if the dialect's rules accept it.
    pub is_valid: bool,
    /// The number of cache breakpoints in it, or more.
    pub cache_breakpoints: usize,
    /// The number of names in it that are unique in a body, or more.
    pub unique_names: usize,
    /// True if it contains reasoning of an answer in its own dialect.
    pub has_reasoning: bool,
}

/// The range of a text that encodes one message, as zero or more wire messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EncodedSpan {
    pub start: usize,
    pub end: usize,
    /// The number of wire messages.
    pub count: u32,
    /// The index of the hash of its first wire message.
    pub first_hash: usize,
    /// The hash of its wire messages.
    pub hash: u64,
    /// True if the dialect's rules accept it; otherwise the body is repaired.
    pub is_valid: bool,
    /// The number of cache breakpoints in it, or more.
    pub cache_breakpoints: usize,
    /// The number of names in it that are unique in a body, or more.
    pub unique_names: usize,
    /// True if it contains reasoning of an answer in its own dialect.
    pub has_reasoning: bool,
}

impl EncodedSpan {
    /// Returns the span from `start`, an index in the text and one in the hashes, to the end of `encoded`.
    pub fn of(encoded: &EncodedText, start: (usize, usize), encoding: WireEncoding) -> Self {
        let WireEncoding { count, is_valid, cache_breakpoints, unique_names, has_reasoning } = encoding;
        let (start, first_hash) = start;
        let hashes = encoded.hashes.get(first_hash..).unwrap_or_default();
        let hash = hashes.iter().fold(1, |sum, item| extend_prefix(sum, *item));
        let end = encoded.text.len();
        Self { start, end, count, first_hash, hash, is_valid, cache_breakpoints, unique_names, has_reasoning }
    }

    /// Returns the hashes of its wire messages in `encoded`, which it refers to.
    pub fn hashes<'e>(&self, encoded: &'e EncodedText) -> &'e [u64] {
        let count = usize::try_from(self.count).unwrap_or(usize::MAX);
        encoded.hashes.get(self.first_hash..self.first_hash.saturating_add(count)).unwrap_or_default()
    }

    fn bytes_with_comma(&self) -> usize {
        self.end - self.start + 1
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
    encoded: EncodedText,
    /// The number of bytes of `text` that no span refers to any more.
    dead: usize,
    spans: Vec<Option<CachedMessage>>,
    /// Number of `Some` in `spans`.
    count: usize,
    /// The encodings of answers without their reasoning.
    bare: BTreeMap<usize, CachedMessage>,
    /// The spans of the last body.
    last: Vec<SentSpan>,
    /// What preceded the messages of the last body: the hashes of the texts.
    last_head: Option<HeadTexts>,
    /// The hashes of the last instructions and tools, by the hashes of their texts.
    member_hashes: [Option<(u64, u64)>; 2],
    /// The hash of the last head that was checked, and the members of the repaired one, if it was repaired.
    last_check: Option<(u64, Option<Rc<Json>>)>,
    /// The findings of the last head that was repaired.
    of_head: Report,
}

/// Hashes of the texts that precede the messages of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeadTexts {
    pub instructions: u64,
    pub tools: u64,
    pub model: u64,
    /// The agent that the request is of.
    pub agent: u64,
}

/// The encoding of a message in the last body.
#[derive(Clone, Copy, Debug)]
struct SentSpan {
    hash: u64,
    /// The number of wire messages.
    count: u32,
    /// The number of bytes, with the comma after it.
    bytes: usize,
    /// The hash of the list up to its end.
    list: u64,
}

impl SentSpan {
    fn is_of(&self, span: &EncodedSpan) -> bool {
        self.hash == span.hash && self.count == span.count && self.bytes == span.bytes_with_comma()
    }
}

/// How much of a body repeats the last one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StablePrefix {
    /// The number of leading wire messages.
    pub messages: u32,
    /// Their bytes, with the commas after them.
    pub bytes: usize,
    /// The index of the first message that differs from the last body's, among those with a wire form; `None` if the
    /// body contains all of the last one, or a repair changed it there.
    pub first_changed: Option<usize>,
    /// True if the body repeats all of the last one.
    pub is_whole: bool,
    /// The hash of all wire messages of this body, if no repair changed it.
    pub list: u64,
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
        if settings != self.settings || messages < self.spans.len() || self.dead > self.encoded.text.len() / 2 {
            self.encoded = EncodedText::default();
            self.spans.clear();
            self.bare.clear();
            self.count = 0;
            self.dead = 0;
            self.settings = settings;
        }
        self.spans.resize_with(messages, || None);
    }

    /// Returns what the spans refer to.
    pub fn encoded(&self) -> &EncodedText {
        &self.encoded
    }

    /// Returns the span of the message at `index` in history. Encodes the message if no encoding with this signature is
    /// cached.
    pub fn span(
        &mut self,
        index: usize,
        signature: u64,
        report: &mut Report,
        encode: &mut dyn FnMut(&mut EncodedText, &mut Report) -> WireEncoding,
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
        let mut findings = Report::new();
        let span = self.add(&mut |encoded| encode(encoded, &mut findings));
        report.extend_from_slice(&findings);
        if let Some(cached) = self.spans.get_mut(index) {
            *cached = Some(CachedMessage { signature, span, report: findings });
        }
        span
    }

    /// Returns the span of the message at `index` in history without its reasoning, as [`span`](Self::span) does with
    /// it.
    pub fn bare_span(
        &mut self,
        index: usize,
        signature: u64,
        encode: &mut dyn FnMut(&mut EncodedText) -> WireEncoding,
    ) -> EncodedSpan {
        if let Some(cached) = self.bare.get(&index).filter(|cached| cached.signature == signature) {
            return cached.span;
        }
        let span = self.add(encode);
        let cached = CachedMessage { signature, span, report: Report::new() };
        if let Some(old) = self.bare.insert(index, cached) {
            self.dead += old.span.end - old.span.start;
        }
        span
    }

    fn add(&mut self, encode: &mut dyn FnMut(&mut EncodedText) -> WireEncoding) -> EncodedSpan {
        let start = (self.encoded.text.len(), self.encoded.hashes.len());
        let encoding = encode(&mut self.encoded);
        let span = EncodedSpan::of(&self.encoded, start, encoding);
        if span.end > span.start {
            // With its comma in the cache, adjacent encodings are copied into a body at once.
            self.encoded.text.push(',');
        }
        span
    }

    /// Reserves memory for the remaining messages of a first pass, from the average length so far. Otherwise the text
    /// of a long history is copied at each growth. Applies only after a sixteenth of the messages.
    fn reserve_rest(&mut self, index: usize) {
        let text = &mut self.encoded.text;
        let is_full = text.capacity().saturating_sub(text.len()) < RESERVED_AHEAD;
        let is_first_pass = self.count == index + 1 && self.dead == 0;
        let is_enough = index >= FEW_MESSAGES && index >= self.spans.len() / 16;
        if let (true, Some(average)) = (is_full && is_first_pass && is_enough, text.len().checked_div(index)) {
            let rest = self.spans.len().saturating_sub(index).saturating_mul(average);
            text.reserve(rest + rest / 16 + RESERVED_AHEAD);
        }
    }

    /// Returns how much of the last body this one repeats, and keeps this body for the next call.
    ///
    /// `spans` say whether they refer to `fresh` or to this cache. `intact` are the bytes of the body from the first
    /// message to the first byte that a repair changed. Messages after it count as changed, in this call and in the
    /// next one.
    pub fn stable_prefix(
        &mut self,
        spans: impl Iterator<Item = (EncodedSpan, bool)>,
        fresh: &EncodedText,
        intact: Range<usize>,
    ) -> StablePrefix {
        let Self { last, encoded, .. } = self;
        let mut end = intact.start;
        let mut now = spans.filter(|(span, _)| span.count > 0).take_while(|(span, _)| {
            end = end.saturating_add(span.bytes_with_comma());
            end <= intact.end
        });
        let mut stable = StablePrefix::default();
        let (mut repeated, mut changed) = (0, None);
        for next in now.by_ref() {
            let Some(known) = last.get(repeated).filter(|known| known.is_of(&next.0)) else {
                changed = Some(next);
                break;
            };
            repeated += 1;
            stable.messages += known.count;
            stable.bytes += known.bytes;
            stable.list = known.list;
        }
        stable.is_whole = repeated == last.len();
        stable.first_changed = (!stable.is_whole && changed.is_some()).then_some(repeated);
        last.truncate(repeated);
        last.extend(changed.into_iter().chain(now).map(|(span, is_fresh)| {
            let hashes = span.hashes(if is_fresh { fresh } else { encoded });
            stable.list = hashes.iter().fold(stable.list, |list, item| extend_prefix(list, *item));
            SentSpan { hash: span.hash, count: span.count, bytes: span.bytes_with_comma(), list: stable.list }
        }));
        stable
    }

    /// Returns what precedes the messages of the last body, and keeps this one's for the next call.
    pub fn replace_head(&mut self, head: HeadTexts) -> Option<HeadTexts> {
        self.last_head.replace(head)
    }

    /// Returns the members of the repaired head, if the head with this hash needs a repair. It is checked if it is not
    /// the last one. Findings are added to the report if the last repair did not have them.
    pub fn checked_head(
        &mut self,
        hash: u64,
        report: &mut Report,
        check: &mut dyn FnMut() -> Option<(Rc<Json>, Report)>,
    ) -> Option<Rc<Json>> {
        if let Some((last, repaired)) = &self.last_check
            && *last == hash
        {
            return repaired.clone();
        }
        let repaired = check().map(|(repaired, findings)| {
            report.extend(findings.iter().filter(|finding| !self.of_head.contains(finding)).cloned());
            self.of_head = findings;
            repaired
        });
        self.last_check.insert((hash, repaired)).1.clone()
    }

    /// Returns the hash of a member with this text. It is computed if the text is not the last one.
    pub fn member_hash(&mut self, member: usize, text: u64, compute: &mut dyn FnMut() -> u64) -> u64 {
        let Some(known) = self.member_hashes.get_mut(member) else { return compute() };
        match *known {
            Some((last, hash)) if last == text => hash,
            _ => known.insert((text, compute())).1,
        }
    }
}
